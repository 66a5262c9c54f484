"""Files with examples that cannot be used, and specs that train on them."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from training_kit import make_spec, write_files


class Case(NamedTuple):
    """A spec of eight examples, of which some cannot be used.

    Attributes:
        spec: the spec, relative to the folder of the files.
        origin: where the first of them is.
        reason: what is wrong with it.
        count: how many there are; 0 if the files as a whole cannot be used.
    """

    spec: dict[str, Any]
    origin: str
    reason: str
    count: int = 1


def _text_case(folder: Path, origin: str, reason: str, count: int = 1, **data: Any) -> Case:
    write_files(folder)
    (folder / "a.txt").write_text("a b c\n" * 8)
    files = {"type": "parallel-text", "source": "a.txt", "target": "b.txt"}
    spec = make_spec(Path(), data=data or files, validation=None, steps=2, batch={"items": 4})
    return Case(spec, origin, reason, count)


def missing_column(folder: Path) -> Case:
    (folder / "a.csv").write_text("text,class\n" + "a b,c\n" * 8)
    fields = {"source": {"column": "text"}, "target": {"column": "label"}}
    data = {"type": "csv", "file": "a.csv", "fields": fields}
    return _text_case(folder, "a.csv", "no column 'label'", 0, **data)


def missing_value(folder: Path) -> Case:
    (folder / "a.tsv").write_text("a b\tc\n" * 2 + "a b\n" * 2 + "a b\tc\n" * 4)
    reason = "the line has 1 columns, separated by tabs, but column 1 (from 0) is 'target'"
    return _text_case(folder, "a.tsv:3", reason, 2, type="parallel-text", file="a.tsv")


def unequal_lines(folder: Path) -> Case:
    (folder / "b.txt").write_text("a b c\n" * 7)
    return _text_case(folder, "a.txt has 8 lines", "b.txt has 7", 0)


def undecodable_bytes(folder: Path) -> Case:
    (folder / "b.txt").write_bytes(b"a b\n" * 2 + b"a \xff\xfe\n" + b"a b\n" * 5)
    return _text_case(folder, "b.txt:3", "not valid UTF-8")


def empty_lines(folder: Path) -> Case:
    (folder / "b.txt").write_text("a b\n" * 3 + "\n \n" + "a b\n" * 3)
    return _text_case(folder, "b.txt:4", "the line is empty", 2)


def _image_spec(source: Any, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "zoo": 1,
        "name": "images",
        "extends": "vit-tiny",
        "metrics": [],
        "preprocessing": {"source": source, "target": "label"} if source else {},
        "train": {
            "data": data,
            "optimiser": {"type": "adamw", "lr": 1e-3},
            "batch": {"items": 4},
            "steps": 2,
        },
    }


def nan_features(folder: Path) -> Case:
    images = np.zeros((8, 3, 16, 16), np.float32)
    images[5, 0, 2, 3] = np.nan
    np.savez(folder / "a.npz", source=images, target=np.arange(8) % 5)
    fields = {
        "source": {"dims": [3, 16, 16]},
        "target": {"dims": [], "dtype": "integer"},
    }
    spec = _image_spec(None, {"type": "arrays", "file": "a.npz", "fields": fields})
    return Case(spec, "a.npz[5]", "contains nan")


def _write_images(folder: Path) -> dict[str, Any]:
    from PIL import Image

    for number in range(8):
        path = folder / "images" / "abcde"[number % 5] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((16, 16, 3), number, np.uint8)).save(path)
    return {"type": "image-folder", "folder": "images"}


def odd_image(folder: Path) -> Case:
    from PIL import Image

    data = _write_images(folder)
    Image.fromarray(np.zeros((15, 17, 3), np.uint8)).save(folder / "images/b/1.png")
    source = {"type": "image", "size": 16, "resize": "none"}
    return Case(_image_spec(source, data), "images/b/1.png", "17")


def broken_image(folder: Path) -> Case:
    data = _write_images(folder)
    path = folder / "images/c/2.png"
    path.write_bytes(path.read_bytes()[:40])
    source = {"type": "image", "size": 16}
    return Case(_image_spec(source, data), "images/c/2.png", "is not a valid PNG")


def _audio_case(folder: Path, reason: str, samples: int = 400, rate: int = 1000) -> Case:
    (folder / "wav").mkdir()
    sizes = {2: (samples, rate)}
    for number in range(8):
        count, hertz = sizes.get(number, (400, 1000))
        with wave.open(str(folder / f"wav/{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(hertz)
            waves = np.sin(np.arange(count)) * 2**14
            file.writeframes(waves.astype("<i2").tobytes())
    lines = "".join(f"{number}.wav\tab\n" for number in range(8))
    (folder / "texts.tsv").write_text(lines)
    write_characters(folder / "characters.json")
    spec = {
        "zoo": 1,
        "name": "audio",
        "extends": "deepspeech-ctc-tiny",
        "metrics": [],
        "preprocessing": {
            "source": {"type": "audio", "rate": 1000, "min_seconds": 0.1},
            "target": {"type": "text", "tokenizer": "characters.json"},
        },
        "train": {
            "data": {"type": "audio", "folder": "wav", "transcripts": "texts.tsv"},
            "optimiser": {"type": "adamw", "lr": 1e-3},
            "batch": {"items": 4},
            "steps": 2,
        },
    }
    return Case(spec, "wav/2.wav", reason)


def short_audio(folder: Path) -> Case:
    return _audio_case(folder, "the audio has 0.02 s; the minimum is 0.1 s", samples=20)


def empty_audio(folder: Path) -> Case:
    return _audio_case(folder, "the audio has no samples", samples=0)


def other_rate(folder: Path) -> Case:
    reason = "the audio has a sampling rate of 2000 Hz, but the model takes 1000 Hz"
    return _audio_case(folder, reason, rate=2000)


def write_characters(path: Path) -> None:
    """Write a tokenizer of single letters."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    vocabulary = {"<pad>": 0, "<unk>": 1, "a": 2, "b": 3, "c": 4, "d": 5}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.save(str(path))


CASES: list[Callable[[Path], Case]] = [
    missing_column,
    missing_value,
    unequal_lines,
    undecodable_bytes,
    empty_lines,
    nan_features,
    odd_image,
    broken_image,
    short_audio,
    empty_audio,
    other_rate,
]
