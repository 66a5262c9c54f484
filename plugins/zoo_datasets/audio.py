"""Dataset 'audio'."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic

from zoo import DataError, ZooError
from zoo.plugin import (
    Dataset,
    Example,
    Examples,
    Field,
    FileBytes,
    TextLines,
    audio_length,
    expand_path,
    read_audio,
)
from zoo_datasets.array_rows import read_npz
from zoo_datasets.audio_archive import ArchivedRecordings
from zoo_datasets.folders import list_classes, list_files, read_paths, read_rows

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".aiff", ".aif")


class AudioFolder(Dataset):
    """Recordings with a transcript or a label each.

    Reads WAV files; FLAC, Ogg, MP3 and AIFF files with the extra ``audio``. Without
    ``transcripts``, the label is the name of the folder (``FOLDER/CLASS/*.wav``) or, if the files
    are not in such folders, the name of the file up to the first ``_`` (``FOLDER/yes_17.wav``).

    Args:
        folder: folder of recordings; or a ``.npz`` file with the samples of each in an array.
        transcripts: text file with lines ``name<TAB>text``; the text of each recording.
        target: whether the texts are transcripts or names of classes.
        rate: sampling rate of the arrays of a ``.npz`` file in Hz.

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
        rate: Annotated[int, pydantic.Field(ge=1)] | None = None,
    ) -> None:
        if transcripts is None and target == "text":
            raise ZooError("set 'transcripts', or target: label to use the names of folders")
        self.folder = folder
        self.transcripts = transcripts
        self.target = target
        self.rate = rate

    def fields(self) -> Mapping[str, Field]:
        return {"source": Field("audio"), "target": Field(self.target)}

    def open(self, *, evaluation: bool = False) -> Examples:
        path = expand_path(self.folder)
        if FileBytes.suffix_of(path) == ".npz":
            return self._open_archive()
        if self.transcripts is not None:
            return _Recordings(read_paths(self.transcripts, path))
        found = list_classes(path, SUFFIXES)
        if not found:
            found = [(file, _prefix(Path(file).stem)) for file in list_files(path, SUFFIXES)]
        if not found:
            raise DataError("the folder has no recordings", str(path))
        return _Recordings(found)

    def _open_archive(self) -> Examples:
        path, arrays = read_npz(self.folder)
        if self.rate is None:
            raise DataError("set 'rate', the sampling rate of the arrays in Hz", path)
        if self.transcripts is not None:
            rows = read_rows(TextLines(self.transcripts), arrays.__contains__)
        else:
            rows = [(name, _prefix(name)) for name in sorted(arrays)]
        return ArchivedRecordings(path, arrays, rows, self.rate)

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


def _prefix(name: str) -> str:
    return name.partition("_")[0]


class _Recordings(Examples):
    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Example:
        path, target = self.rows[index]
        return {"source": read_audio(path), "target": target}

    def decodes_files(self) -> bool:
        return True

    def origin(self, index: int) -> str:
        return self.rows[index][0]

    def sizes(self) -> Sequence[int]:
        return [_length(path) for path, _ in self.rows]


def _length(path: str) -> int:
    try:
        return audio_length(path)
    except DataError:
        return 0  # raised again when the example is read
