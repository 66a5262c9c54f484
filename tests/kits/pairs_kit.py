"""A small task of pairs of texts, whose losses compare all examples of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ENCODER = {
    "type": "transformer",
    "layers": 1,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 16, "activation": "gelu"},
    "position": "sinusoidal",
}
_TOKENS = {"type": "token", "vocab": 12, "dim": 8}


def make_model(kind: str, dropout: float = 0.0) -> dict[str, Any]:
    """Return the section `model` of a sentence encoder or of two towers of texts."""
    encoder = {**_ENCODER, "dropout": dropout}
    if kind == "sentence-encoder":
        return {"type": kind, "source": _TOKENS, "encoder": encoder}
    tower = {"embedding": _TOKENS, "encoder": encoder, "dim": 8}
    bias = {"bias": -2.0} if kind == "sigmoid-contrastive" else {}
    return {"type": "two-towers", "source": tower, "target": tower, "scale": 5.0, **bias}


def make_pairs_spec(folder: Path, kind: str, **train: Any) -> dict[str, Any]:
    """Return a spec that trains on the texts of `training_kit.write_files`.

    Args:
        kind: "sentence-encoder", with hard negatives, or the objective of two towers.
        train: replaces settings of the section.
    """
    keys = ["source", "target", *(["negative"] if kind == "sentence-encoder" else [])]

    def data(split: str, count: int) -> dict[str, Any]:
        sides = [(folder / f"{split}.{side}").read_text().split("\n") for side in keys[:2]]
        rows = [(a, b, b[::-1])[: len(keys)] for a, b in zip(*sides, strict=True)]
        file = folder / f"{split}-{len(keys)}.tsv"
        lines = ["\t".join(keys), *("\t".join(row) for row in rows[:count])]
        file.write_text("\n".join(lines) + "\n")
        return {"type": "csv", "file": str(file), "fields": {key: {"column": key} for key in keys}}

    text = {"type": "text", "tokenizer": str(folder / "words.json")}
    return {
        "zoo": 1,
        "name": "tiny-pairs",
        "model": make_model(kind),
        "objective": "cross-entropy" if kind == "sentence-encoder" else kind,
        "metrics": ["retrieval"],
        "preprocessing": dict.fromkeys(keys, text),
        "train": {
            "data": data("train", 60),
            "validation": data("validation", 10),
            "optimiser": {"type": "sgd", "lr": 0.05},
            "batch": {"items": 7},
            "steps": 4,
            "clip": 1.0,
            "log": {"every": 1},
            "evaluate": {"every": 4},
            **train,
        },
    }
