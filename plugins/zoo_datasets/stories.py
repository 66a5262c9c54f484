"""Dataset 'stories'."""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pydantic

from zoo import DataError
from zoo.plugin import Dataset, Example, Examples, Field, TextLines


class Stories(Dataset):
    r"""Questions about stories, in the format of the bAbI tasks.

    A line is ``number sentence`` or ``number question<TAB>answer[<TAB>supporting lines]``; the
    number 1 starts a new story. Each question is an example, with the sentences before it. Several
    files are read as one, for joint training.

    Args:
        files: a text file, or several.
        max_sentences: keep the last sentences of a story, at most this many; default: all.
        target: whether the answer is a class, as in memory networks, or a text.
        punctuation: whether the full stop or question mark at the end of a sentence is kept.

    Fields:
        story: texts. question: text. target: label or text.
    """

    name: ClassVar[str] = "stories"
    paper: ClassVar[str] = (
        "Weston et al. 2015, Towards AI-Complete Question Answering, arXiv:1502.05698"
    )

    def __init__(
        self,
        *,
        files: str | Annotated[list[str], pydantic.Field(min_length=1)],
        max_sentences: Annotated[int, pydantic.Field(ge=1)] | None = None,
        target: Literal["label", "text"] = "label",
        punctuation: bool = True,
    ) -> None:
        self.files = [files] if isinstance(files, str) else files
        self.max_sentences = max_sentences
        self.target = target
        self.punctuation = punctuation

    def fields(self) -> Mapping[str, Field]:
        return {"story": Field("texts"), "question": Field("text"), "target": Field(self.target)}

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Questions([TextLines(file) for file in self.files], self)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        text = (
            "1 Mary went home.\n2 John ran.\n3 Where is Mary?\thome\t1\n4 Mary left.\n"
            "5 Who left?\tMary\t4\n1 Sandra slept.\n2 Who slept?\tSandra\t1\n"
        )
        (folder / "qa1.txt").write_text(text, encoding="utf-8")
        return {"files": str(folder / "qa1.txt")}


class _Questions(Examples):
    def __init__(self, files: Sequence[TextLines], dataset: Stories) -> None:
        self.files = files
        self.max_sentences = dataset.max_sentences
        self.ending = "" if dataset.punctuation else ".?"
        self.questions = array("Q")  # file, first line of the story, line of the question
        for number, lines in enumerate(files):
            first = 0
            for index, line in enumerate(lines.raw()):
                if line.startswith(b"1 "):
                    first = index
                if b"\t" in line:
                    self.questions.extend((number, first, index))
        if not self.questions:
            names = ", ".join(str(lines.path) for lines in files)
            raise DataError("no line is a question with a tab and an answer", names)

    def __len__(self) -> int:
        return len(self.questions) // 3

    def __getitem__(self, index: int) -> Example:
        number, first, last = self.questions[3 * index : 3 * index + 3]
        lines = self.files[number]
        sentences = []
        for line, text in enumerate(lines.read(first, last), first):
            if "\t" not in text:
                sentences.append(self._sentence(text, lines.origin(line)))
        question, answer, *_ = lines[last].split("\t")
        if not sentences or not answer.strip():
            missing = "answer" if sentences else "sentence before it"
            raise DataError(f"the question has no {missing}", lines.origin(last))
        return {
            "story": sentences[-self.max_sentences :] if self.max_sentences else sentences,
            "question": self._sentence(question, lines.origin(last)),
            "target": answer.strip(),
        }

    def _sentence(self, line: str, origin: str) -> str:
        return _remove_number(line, origin).rstrip(self.ending)

    def origin(self, index: int) -> str:
        return self.files[self.questions[3 * index]].origin(self.questions[3 * index + 2])


def _remove_number(line: str, origin: str) -> str:
    number, _, text = line.strip().partition(" ")
    if not number.isdecimal() or not text.strip():
        raise DataError("expected a number and a sentence", origin)
    return text.strip()
