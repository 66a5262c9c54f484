"""A repository of another library comes in from the Hub as a folder does."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from hub_server import Hub
from safetensors.torch import save

import zoo
from zoo.artifact import read_header

SPEC = {
    "zoo": 1,
    "name": "small",
    "model": {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 7, "dim": 4},
        "encoder": {"type": "gru", "hidden": 3},
        "decoder": {"type": "plain-rnn", "cell": "gru", "hidden": 3, "init": "copy"},
    },
}
NAMES = [
    "source.table.weight",
    *(f"encoder.stack.layers.0.0.{w}_{s}" for w in ("weight", "bias") for s in ("ih", "hh")),
    "decoder.embedding.table.weight",
    *(f"decoder.cells.cells.0.{w}_{s}" for w in ("weight", "bias") for s in ("ih", "hh")),
    "decoder.out.weight",
    "decoder.out.bias",
]


def test_a_repository_comes_in_by_its_name(hub: Hub, tmp_path: Path) -> None:
    theirs = zoo.compose(SPEC, seed=5).state_dict()
    tensors = {f"t{index}": theirs[name] for index, name in enumerate(NAMES)}
    index = {"weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}
    commit = hub.repo("org/theirs").add(
        {
            "config.json": b"{}",
            "model-00001-of-00001.safetensors": save(tensors),
            "model.safetensors.index.json": json.dumps(index).encode(),
            "modeling_trap.py": b"raise SystemExit",
            "pytorch_model.bin": b"\x80\x04",
        }
    )
    mapped = {"zoo": 1, "rename": {name: f"t{i}" for i, name in enumerate(NAMES)}}
    out = zoo.import_model("org/theirs", tmp_path / "m.safetensors", spec=SPEC, map=mapped)
    ours = zoo.load(out).state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in NAMES)
    told = read_header(out).provenance
    assert (told["imported"], told["commit"]) == ("org/theirs", commit)
    assert not hub.requests_to("modeling_trap|pytorch_model")
