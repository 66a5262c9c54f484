"""Program 'count-model': the perplexity of an n-gram model with Kneser-Ney smoothing."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from zoo import DataError
from zoo.plugin import Part, Program, ProgramRun, TextLines
from zoo_language.kneser_ney import KneserNey


class CountModelProgram(Program, Part):
    r"""Perplexity of an n-gram model with interpolated Kneser-Ney smoothing, from text files.

    .. math:: p(w \mid h) = \frac{\max(c(hw) - D, 0) + D\, T(h)\, p(w \mid h')}{c(h)}

    as in the decoder `ngram`, whose order is limited by the vocabulary; here an n-gram is coded by
    its context and its last word. Words are separated by spaces, ``<eos>`` follows every line, and
    the context continues over lines. The vocabulary is that of the training file; other words are
    ``<unk>``.

    Paper: Kneser and Ney 1995; Chen and Goodman 1998, section 2.7.

    Args:
        train: text file that is counted.
        validation: text file.
        test: text file.
        order: length of the n-grams, including the predicted word.

    Shapes:
        text files -> {validation/perplexity, test/perplexity}.
    """

    name: ClassVar[str] = "count-model"
    paper: ClassVar[str] = "Kneser and Ney 1995, Improved backing-off for M-gram language modeling"
    test_params: ClassVar[Mapping[str, Any]] = {
        "train": "train.txt", "validation": "val.txt", "test": "test.txt"
    }  # fmt: skip

    def __init__(
        self,
        *,
        train: str,
        validation: str,
        test: str,
        order: Annotated[int, Field(ge=1, le=8)] = 5,
    ) -> None:
        self.train = train
        self.validation = validation
        self.test = test
        self.order = order

    def run(self, run: ProgramRun) -> Mapping[str, float]:
        words: dict[str, int] = {"<unk>": 0}
        stream = [words.setdefault(word, len(words)) for word in _read_words(self.train)]
        model = KneserNey(np.array(stream), self.order, len(words))
        values = {}
        for part, file in (("validation", self.validation), ("test", self.test)):
            ids = np.array([words.get(word, 0) for word in _read_words(file)])
            values[f"{part}/perplexity"] = math.exp(-float(model.logprobs(ids).mean()))
        return values


def _read_words(file: str) -> Iterator[str]:
    lines = TextLines(file)
    if not len(lines):
        raise DataError("the file has no text", str(lines.path))
    for line in lines:
        yield from line.split()
        yield "<eos>"
