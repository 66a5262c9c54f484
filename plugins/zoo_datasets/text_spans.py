"""Dataset 'text-spans'."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo import DataError
from zoo.plugin import Dataset, Example, Examples, Field, TextLines, truncate

_FIELDS = {"source": Field("texts"), "target": Field("labels")}
_WORD = re.compile(r"\w+|[^\w\s]")  # as the preprocessor 'words' divides texts


class TextSpans(Dataset):
    """Texts with labelled spans, one JSON object per line, as words with the tags B-, I- and O.

    ``{"text": "Ada wrote", "spans": [[0, 3, "PER"]]}``: the first character of a span, the one
    after its last, and its label; or ``{"start": 0, "end": 3, "label": "PER"}``. The text is
    divided into words and single other characters; a span must begin and end where words do. The
    file may be compressed (``.gz``, ``.xz``, ``.bz2``).

    Args:
        file: the file.
        text: the key of the text.
        spans: the key of the list of spans.

    Fields:
        source: texts, the words. target: labels, their tags.
    """

    name: ClassVar[str] = "text-spans"

    def __init__(self, *, file: str, text: str = "text", spans: str = "spans") -> None:
        self.file = file
        self.text = text
        self.spans = spans

    def fields(self) -> Mapping[str, Field]:
        return _FIELDS

    def open(self, *, evaluation: bool = False) -> Examples:
        return _Texts(TextLines(self.file), self.text, self.spans)

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        first = '{"text": "Ada Lovelace wrote.", "spans": [[0, 12, "PER"]]}\n'
        second = '{"text": "in Paris", "spans": [{"start": 3, "end": 8, "label": "LOC"}]}\n'
        (folder / "a.jsonl").write_text(first + second, encoding="utf-8")
        return {"file": str(folder / "a.jsonl")}


class _Texts(Examples):
    def __init__(self, lines: TextLines, text: str, spans: str) -> None:
        if not len(lines):
            raise DataError("the file has no lines", str(lines.path))
        self.lines = lines
        self.text = text
        self.spans = spans

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Example:
        try:
            row = json.loads(self.lines.require(index))
            text, spans = row[self.text], row[self.spans]
            found = [_read_span(span) for span in spans]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DataError(
                f"expected a JSON object with '{self.text}', a text, and '{self.spans}', a list of "
                "[start, end, label]",
                self.origin(index),
            ) from None
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"'{self.text}' is not a text or empty", self.origin(index))
        return self._to_words(text, sorted(found), self.origin(index))

    def _to_words(self, text: str, spans: list[tuple[int, int, str]], origin: str) -> Example:
        words = list(_WORD.finditer(text))
        starts = {word.start(): n for n, word in enumerate(words)}
        ends = {word.end(): n for n, word in enumerate(words)}
        tags = ["O"] * len(words)
        for start, end, label in spans:
            if not 0 <= start < end <= len(text):
                raise DataError(
                    f"span [{start}, {end}] is not in the text, which has {len(text)} characters",
                    origin,
                )
            first, last = starts.get(start), ends.get(end)
            if first is None or last is None:
                shown = truncate(repr(text[start:end]), 60)
                raise DataError(
                    f"span [{start}, {end}], {shown}, does not begin and end with words", origin
                )
            if any(tag != "O" for tag in tags[first : last + 1]):
                raise DataError(f"span [{start}, {end}] overlaps another one", origin)
            tags[first : last + 1] = [f"B-{label}", *[f"I-{label}"] * (last - first)]
        return {"source": [word.group() for word in words], "target": tags}

    def origin(self, index: int) -> str:
        return self.lines.origin(index)


def _read_span(span: Any) -> tuple[int, int, str]:
    """Return the start, the end and the label of a span; raise an error if it has none."""
    values = [span[key] for key in ("start", "end", "label")] if isinstance(span, dict) else span
    start, end, label = values
    if type(start) is not int or type(end) is not int or not isinstance(label, str) or not label:
        raise ValueError
    return start, end, label
