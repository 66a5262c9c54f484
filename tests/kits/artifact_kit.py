"""A small model with shared weights and computed buffers, and helpers for saved files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from zoo.artifact.layout import Layout, layout_tensors, tensor_bytes
from zoo.errors import ZooError
from zoo.interfaces import Model, Outputs
from zoo.registry.component_registry import ComponentRegistry


class Tied(Model):
    """Embedding and output share weights; one buffer is persistent, one is computed."""

    name: ClassVar[str] = "kit-tied"
    on_build: ClassVar[Callable[[], None]] = staticmethod(lambda: None)

    def __init__(self, *, vocab: int = 11, dim: int = 4) -> None:
        super().__init__()
        type(self).on_build()
        if vocab > 10**6:
            raise ZooError(f"vocab ({vocab}) must be at most 1,000,000")
        self.read = nn.Embedding(vocab, dim)
        self.speak = nn.Linear(dim, vocab, bias=False)
        self.speak.weight = self.read.weight
        self.register_buffer("seen", torch.arange(3))
        self.register_buffer("offset", torch.linspace(0.1, 1, dim), persistent=False)

    def forward(self, batch: Any) -> Outputs:
        tokens = batch["source"]
        logits = self.speak(self.read(tokens) + self.offset)
        return Outputs(logits, tokens, torch.ones_like(tokens, dtype=torch.bool))

    def example(self, batch: int, length: int, generator: Any = None) -> dict[str, Tensor]:
        return {"source": torch.randint(0, 4, (batch, length), generator=generator)}


class TiedV2(Tied):
    """Version 2, without a migration."""

    version: ClassVar[int] = 2


class Overlapping(Tied):
    """One buffer is a view of another."""

    name: ClassVar[str] = "kit-overlapping"

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("all", torch.arange(6.0))
        self.register_buffer("some", self.all[:2])


REGISTRY = ComponentRegistry.from_environment({"ZOO_PLUGINS": "none"}).with_components(
    [Tied, Overlapping], plugin="kit"
)
TIED = {"zoo": 1, "name": "kit", "model": "kit-tied"}


def all_tensors(model: Model) -> dict[str, Tensor]:
    """Return parameters and all buffers, including computed ones."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def assert_same_bits(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        other = theirs[name]
        assert (tensor.dtype, tensor.shape) == (other.dtype, other.shape), name
        assert torch.equal(tensor.flatten().view(torch.uint8), other.flatten().view(torch.uint8))


def rewrite(
    file: Path, change: Callable[[dict[str, Tensor]], object] = dict, **metadata: str | None
) -> None:
    """Rewrite a file with other tensors or metadata; None removes a key.

    Hashes and digest are updated.
    """
    with safe_open(file, framework="pt") as opened:
        merged = {**opened.metadata(), **metadata}
    tensors = {name: tensor.clone() for name, tensor in load_file(file).items()}
    change(tensors)
    write_file(file, {key: text for key, text in merged.items() if text is not None}, tensors)


def write_file(file: Path, metadata: dict[str, str], tensors: dict[str, Tensor]) -> None:
    """Write a file with these tensors and metadata; hashes and digest are computed."""
    table = layout_tensors(tensors)
    raw = {name: tensor_bytes(tensors[name]) for name in table}
    if "hashes" in metadata:
        metadata["hashes"] = json.dumps({n: hashlib.sha256(raw[n]).hexdigest() for n in table})
    if "digest" in metadata:
        metadata["digest"] = Layout(metadata, table).digest()
    file.write_bytes(Layout(metadata, table).encode() + b"".join(raw[name] for name in table))
