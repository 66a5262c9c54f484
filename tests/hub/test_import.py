"""Import of a repository of another library."""

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


def test_repository_is_imported(hub: Hub, tmp_path: Path) -> None:
    source = zoo.compose(SPEC, seed=5).state_dict()
    tensors = {f"t{index}": source[name] for index, name in enumerate(NAMES)}
    index = {"weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}
    commit = hub.repo("org/source").add(
        {
            "config.json": b"{}",
            "model-00001-of-00001.safetensors": save(tensors),
            "model.safetensors.index.json": json.dumps(index).encode(),
            "modeling_trap.py": b"raise SystemExit",
            "pytorch_model.bin": b"\x80\x04",
        }
    )
    mapped = {"zoo": 1, "rename": {name: f"t{i}" for i, name in enumerate(NAMES)}}
    out = zoo.import_model("org/source", tmp_path / "m.safetensors", spec=SPEC, map=mapped)
    imported = zoo.load(out).state_dict()
    assert all(torch.equal(imported[name], source[name]) for name in NAMES)
    provenance = read_header(out).provenance
    assert (provenance["imported"], provenance["commit"]) == ("org/source", commit)
    assert not hub.requests_to("modeling_trap|pytorch_model")
