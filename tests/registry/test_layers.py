"""Equal layers: built on a device with values, copied on the meta device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import zoo
from zoo.errors import ZooError
from zoo.plugin import build_layers
from zoo.registry.work_limit import WorkLimit
from zoo.spec.composition import build_on_meta


class Layer(nn.Module):
    """Has a parameter that two modules share, a buffer, a list, and a reference to itself."""

    def __init__(self, activate: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.ones(2))
        self.records: list[int] = []
        self.itself = [self]
        self.activate = activate


def test_copies_have_their_own_modules_tensors_and_lists() -> None:
    calls: list[int] = []

    def build() -> Layer:
        calls.append(1)
        return Layer()

    with torch.device("meta"):
        first, second, third = build_layers(3, build)
    assert len(calls) == 1
    for layer in (first, second, third):
        assert isinstance(layer, Layer)
        assert layer.first.weight is layer.second.weight
        assert layer.itself == [layer]
    assert str(first) == str(second)
    tensors = [id(t) for m in (first, second, third) for t in (*m.parameters(), *m.buffers())]
    assert len(set(tensors)) == len(tensors) == 12
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in third.parameters())
    second.records.append(1)  # type: ignore[union-attr, operator]
    second.first.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    assert first.records == third.records == []
    assert not first.first._forward_hooks  # type: ignore[union-attr]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_layers_with_values_or_attributes_that_cannot_be_copied_are_built(device: str) -> None:
    calls: list[int] = []

    def build() -> Layer:
        calls.append(1)
        return Layer(activate=(lambda: calls.clear()) if device == "meta" else None)

    with torch.device(device):
        layers = build_layers(3, build)
    assert len(calls) == len(layers) == 3
    assert len(build_layers(0, build)) == 0
    if device == "cpu":
        assert not layers[0].first.weight.equal(layers[1].first.weight)  # type: ignore[union-attr]


def test_copies_count_as_much_work_as_layers_that_are_built() -> None:
    with torch.device("meta"), WorkLimit() as limit:
        build_layers(1, Layer)
        once = limit.operations
        build_layers(5, Layer)
        assert limit.operations == 6 * once
        with pytest.raises(ZooError, match="operations"):
            build_layers(10**9, Layer)


def test_the_components_of_copied_layers_are_recorded() -> None:
    spec = zoo.load_spec("gpt2-small", overrides=["model.decoder.layers=3"])
    tree = build_on_meta(spec.model_only())
    names = {id(module): name for name, module in tree.part.named_modules()}
    attentions = [n for n in tree.walk() if n.blueprint.path == "model.decoder.attention"]
    assert [names[id(node.part)] for node in attentions] == [
        f"decoder.blocks.{index}.attention" for index in range(3)
    ]
    scorers = [child for node in attentions for child in node.children]
    assert len({names[id(node.part)] for node in scorers}) == len(scorers) == 6
