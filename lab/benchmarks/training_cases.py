"""The models and files that `training.py` measures."""

import os
import random
from pathlib import Path
from typing import Any

import numpy as np

import zoo

VOCAB = 10_000
SPECIAL = ("pad", "bos", "eos", "unk")  # in the order of the model's IDs
TEXTS = ("base", "small", "tiny")
WIDTHS = {"base": (512, 6, 8), "small": (256, 3, 4), "tiny": (16, 1, 2)}
"""Width, number of layers in encoder and decoder, and number of heads."""


def make_spec(case: str, folder: Path, *, precision: str, compile: bool) -> dict[str, Any]:
    """Return the spec of a case, whose files are in the folder or in $ZOO_DATA/multi30k."""
    spec = _text_spec(case, folder) if case in TEXTS else _image_spec(folder)
    spec["train"] |= {
        "optimiser": {"type": "adamw", "lr": 1e-4},
        "schedule": {"type": "inverse-sqrt", "warmup": 4000},
        "clip": 1.0,
        "precision": precision,
        "compile": compile,
        "steps": 10**9,
    }
    return {"zoo": 1, "name": case, **spec}


def _text_spec(case: str, folder: Path) -> dict[str, Any]:
    width, layers, heads = WIDTHS[case]
    part = {
        "layers": layers,
        "attention": {"heads": heads},
        "feed_forward": {"hidden": 4 * width},
    }
    text = {"type": "text", "tokenizer": str(folder / "words.json")}
    source, target = text_files(folder)
    return {
        "extends": "transformer-base",
        "model": {"source": {"vocab": VOCAB, "dim": width}, "encoder": part, "decoder": part},
        "preprocessing": {"source": text, "target": text},
        "train": {
            "data": {"type": "parallel-text", "source": source, "target": target},
            "batch": {"tokens": 256 if case == "tiny" else 4096},
        },
    }


def _image_spec(folder: Path) -> dict[str, Any]:
    part = {
        "layers": 6,
        "attention": {"heads": 4},
        "feed_forward": {"hidden": 1024},
        "position": {"length": 65},
    }
    return {
        "extends": "vit-base",
        "model": {"source": {"size": 8, "dim": 256}, "classes": 10, "encoder": part},
        "preprocessing": {"source": {"type": "image", "size": 64}, "target": "label"},
        "train": {
            "data": {"type": "image-folder", "folder": str(folder / "images")},
            "batch": {"items": 64},
        },
    }


def text_files(folder: Path) -> tuple[str, str]:
    """Return the files of source and target: Multi30k, or those of `write_files`."""
    data = Path(os.environ.get("ZOO_DATA", folder)) / "multi30k"
    if data.is_dir():
        return str(data / "train.en.xz"), str(data / "train.de.xz")
    return str(folder / "source.txt"), str(folder / "target.txt")


def write_files(folder: Path, *, lines: int, images: int) -> None:
    """Write random texts, a tokenizer, and images of 64 x 64 pixels with 10 labels."""
    rng = random.Random(0)
    words = [f"w{number}" for number in range(VOCAB - len(SPECIAL))]
    for name in ("source", "target"):
        texts = (" ".join(rng.choices(words, k=rng.randint(5, 30))) for _ in range(lines))
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    tokenizer = folder / "words.json"
    zoo.train_tokenizer(text_files(folder), tokenizer, type="words", vocab=VOCAB, special=SPECIAL)
    if images:
        _write_images(folder / "images", images)


def _write_images(folder: Path, count: int) -> None:
    from PIL import Image

    pixels = np.random.default_rng(0)
    for number in range(count):
        path = folder / str(number % 10) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(pixels.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        coarse.resize((64, 64)).save(path)
