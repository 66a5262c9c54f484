"""Dataset 'audio'."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from zoo import DataError, ZooError
from zoo.plugin import (
    Dataset,
    Example,
    Examples,
    Field,
    TextLines,
    audio_length,
    expand_path,
    read_audio,
)
from zoo_datasets.folders import list_classes, list_files, read_rows

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")


class AudioFolder(Dataset):
    """Recordings with a transcript or a label each.

    Reads WAV files; FLAC, Ogg, MP3 and AIFF files with the extra ``audio``. Without
    ``transcripts``, the label is the name of the folder (``FOLDER/CLASS/*.wav``) or, if the files
    are not in such folders, the name of the file up to the first ``_`` (``FOLDER/yes_17.wav``).

    Args:
        folder: folder of recordings.
        transcripts: text file with lines ``name<TAB>text``; the text of each file in ``folder``.
        target: whether the texts are transcripts or names of classes.

    Fields:
        source: audio. target: text or label.
    """

    name: ClassVar[str] = "audio"
    test_params: ClassVar[Mapping[str, Any]] = {"transcripts": "transcripts.tsv"}

    def __init__(
        self,
        *,
        folder: str,
        transcripts: str | None = None,
        target: Literal["text", "label"] = "text",
    ) -> None:
        if transcripts is None and target == "text":
            raise ZooError("set 'transcripts', or target: label to use the names of folders")
        self.folder = folder
        self.transcripts = transcripts
        self.target = target

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("audio"), "target": Field(self.target)}

    def open(self, *, evaluation: bool = False) -> Examples:
        folder = expand_path(self.folder)
        if self.transcripts is not None:
            rows = read_rows(TextLines(self.transcripts), folder, 2)
            return _Recordings([str(folder / name) for name, _ in rows], [text for _, text in rows])
        found = list_classes(folder, SUFFIXES)
        if not found:
            files = list_files(folder, SUFFIXES)
            found = [(path, Path(path).stem.partition("_")[0]) for path in files]
        if not found:
            raise DataError("the folder has no recordings", str(folder))
        return _Recordings([path for path, _ in found], [label for _, label in found])

    @classmethod
    def write_example(cls, folder: Path) -> dict[str, Any]:
        for length, name in ((4, "a.wav"), (6, "b.wav")):
            samples = np.arange(length, dtype="<i2").tobytes()
            form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
            data = form + struct.pack("<4sI", b"data", len(samples)) + samples
            header = struct.pack("<4sI4s", b"RIFF", 4 + len(data), b"WAVE")
            (folder / name).write_bytes(header + data)
        (folder / "transcripts.tsv").write_text("b.wav\tyes\na.wav\tno\n", encoding="utf-8")
        return {"folder": str(folder), "transcripts": str(folder / "transcripts.tsv")}


class _Recordings(Examples):
    def __init__(self, paths: Sequence[str], targets: Sequence[str]) -> None:
        self.paths = paths
        self.targets = targets

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Example:
        return {"source": read_audio(self.paths[index]), "target": self.targets[index]}

    def origin(self, index: int) -> str:
        return self.paths[index]

    def sizes(self) -> Sequence[int]:
        return [_length(path) for path in self.paths]


def _length(path: str) -> int:
    try:
        return audio_length(path)
    except DataError:
        return 0  # raised again when the example is read
