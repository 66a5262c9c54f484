"""What holds for every component, whatever its kind."""

from __future__ import annotations

import inspect
import re

import torch
from torch import nn

from zoo.interfaces.signature import parameters
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.tiny import TinyEmbedding


def documented(config: Configuration) -> None:
    """The docstring opens with a sentence and has an equation, the shapes and every argument."""
    text = inspect.getdoc(config.cls) or ""
    first = " ".join(text.split("\n\n")[0].split())
    assert first.endswith("."), f"the docstring's first paragraph is no sentence: {first!r}"
    assert ".. math::" in text, "the docstring has no equation (.. math::)"
    assert "Shapes:" in text, "the docstring has no section 'Shapes:'"
    missing = [
        p.name for p in parameters(config.cls) if not re.search(rf"^\s+{p.name}: ", text, re.M)
    ]
    assert not missing, f"the docstring's 'Args:' leaves out: {', '.join(missing)}"


def has_paper(config: Configuration) -> None:
    """The component names the paper or book it comes from."""
    assert config.cls.paper.strip(), "'paper' is empty"


def valid_schema(config: Configuration) -> None:
    """Every default obeys its own type and limits, and every parameter has a JSON Schema."""
    for parameter in parameters(config.cls):
        if parameter.from_parent or parameter.slot:
            continue
        parameter.json_schema()
        if not parameter.required:
            faults = parameter.validate(parameter.default)
            assert not faults, f"default {parameter.name}={parameter.default!r}: {faults[0][1]}"


def seeded_init(config: Configuration) -> None:
    """One seed always makes the same weights, and another seed never matters to shapes."""
    first, second = config.build(seed=3), config.build(seed=3)
    if not isinstance(first, nn.Module):
        raise NotApplicable("it has no weights")
    other = config.build(seed=4).state_dict()
    for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b), f"{name} differs between two builds with one seed"
        assert other[name].shape == a.shape, f"{name} changes shape with the seed"


def meta_device(config: Configuration) -> None:
    """It builds on the meta device, without storage, to the same shapes."""
    real = config.build()
    if not isinstance(real, nn.Module):
        raise NotApplicable("it has no weights")
    from_parent = dict(config.parent_values())
    with torch.device("meta"):
        if config.cls.kind == "decoder":
            from_parent["embedding"] = TinyEmbedding()
        meta = config.blueprint().build(**from_parent)
    shapes = {name: tensor.shape for name, tensor in real.state_dict().items()}
    for name, tensor in meta.state_dict().items():
        assert tensor.is_meta, f"{name} takes storage on {tensor.device} under torch.device('meta')"
        assert tensor.shape == shapes[name], f"{name} has another shape on the meta device"


LAWS = (
    Law("documented", documented),
    Law("has-paper", has_paper),
    Law("valid-schema", valid_schema),
    Law("seeded-init", seeded_init),
    Law("meta-device", meta_device),
)
