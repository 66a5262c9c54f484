"""What holds for every component, whatever its kind."""

from __future__ import annotations

import inspect
import re

import torch
from torch import nn

from zoo.interfaces.signature import parameters
from zoo.testing.law import Law, NotApplicable
from zoo.testing.parts import TinyEmbedding
from zoo.testing.subject import Subject


def documented(subject: Subject) -> None:
    """The docstring opens with a sentence and has an equation, the shapes and every argument."""
    text = inspect.getdoc(subject.cls) or ""
    first = " ".join(text.split("\n\n")[0].split())
    assert first.endswith("."), f"the docstring's first paragraph is no sentence: {first!r}"
    assert ".. math::" in text, "the docstring has no equation (.. math::)"
    assert "Shapes:" in text, "the docstring has no section 'Shapes:'"
    missing = [
        p.name for p in parameters(subject.cls) if not re.search(rf"^\s+{p.name}: ", text, re.M)
    ]
    assert not missing, f"the docstring's 'Args:' leaves out: {', '.join(missing)}"


def published(subject: Subject) -> None:
    """The component names the paper or book it comes from."""
    assert subject.cls.paper.strip(), "'paper' is empty"


def honest_schema(subject: Subject) -> None:
    """Every default obeys its own type and limits, and every parameter has a JSON Schema."""
    for parameter in parameters(subject.cls):
        if parameter.given or parameter.slot:
            continue
        parameter.json_schema()
        if not parameter.required:
            faults = parameter.faults(parameter.default)
            assert not faults, f"default {parameter.name}={parameter.default!r}: {faults[0][1]}"


def seeded(subject: Subject) -> None:
    """One seed always makes the same weights, and another seed never matters to shapes."""
    first, second = subject.part(seed=3), subject.part(seed=3)
    if not isinstance(first, nn.Module):
        raise NotApplicable("it has no weights")
    other = subject.part(seed=4).state_dict()
    for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b), f"{name} differs between two builds with one seed"
        assert other[name].shape == a.shape, f"{name} changes shape with the seed"


def weightless_check(subject: Subject) -> None:
    """It builds on the meta device, without storage, to the same shapes."""
    real = subject.part()
    if not isinstance(real, nn.Module):
        raise NotApplicable("it has no weights")
    given = dict(subject.given())
    with torch.device("meta"):
        if subject.cls.kind == "decoder":
            given["embedding"] = TinyEmbedding()
        meta = subject.blueprint().build(**given)
    shapes = {name: tensor.shape for name, tensor in real.state_dict().items()}
    for name, tensor in meta.state_dict().items():
        assert tensor.is_meta, f"{name} takes storage on {tensor.device} under torch.device('meta')"
        assert tensor.shape == shapes[name], f"{name} has another shape on the meta device"


LAWS = (
    Law("documented", documented),
    Law("published", published),
    Law("honest-schema", honest_schema),
    Law("seeded", seeded),
    Law("weightless-check", weightless_check),
)
