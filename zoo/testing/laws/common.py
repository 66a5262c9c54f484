"""Laws of all kinds."""

from __future__ import annotations

import inspect
import re

import torch
from torch import nn

from zoo.errors import with_article
from zoo.interfaces.signature import parameters
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable


def documented(config: Configuration) -> None:
    """The docstring has a first sentence, every argument, and an equation and the shapes; that of a
    dataset has its fields, and that of an acceleration only its arguments."""
    text = inspect.getdoc(config.cls) or ""
    check_summary_and_arguments(config.cls)
    if config.kind == "dataset":
        assert "Fields:" in text, "the docstring has no section 'Fields:'"
    elif config.kind != "acceleration":
        assert ".. math::" in text, "the docstring has no equation (.. math::)"
        assert "Shapes:" in text, "the docstring has no section 'Shapes:'"


def check_summary_and_arguments(cls: type) -> None:
    """Assert that the docstring begins with a sentence and lists every argument."""
    text = inspect.getdoc(cls) or ""
    first = " ".join(text.split("\n\n")[0].split())
    assert first.endswith("."), f"the first paragraph of the docstring is not a sentence: {first!r}"
    missing = [p.name for p in parameters(cls) if not re.search(rf"^\s+{p.name}: ", text, re.M)]
    assert not missing, f"'Args:' in the docstring does not list: {', '.join(missing)}"


def has_paper(config: Configuration) -> None:
    """`paper` names the publication of the component; datasets and accelerations need none."""
    if config.kind in ("acceleration", "dataset"):
        raise NotApplicable(f"{with_article(config.kind)} needs no publication")
    assert config.cls.paper.strip(), "'paper' is empty"


def valid_schema(config: Configuration) -> None:
    """Every default has the declared type and limits, and every parameter has a JSON Schema."""
    for parameter in parameters(config.cls):
        if parameter.from_parent or parameter.slot:
            continue
        parameter.json_schema()
        if not parameter.required:
            errors = parameter.validate(parameter.default)
            assert not errors, f"default {parameter.name}={parameter.default!r}: {errors[0][1]}"


def seeded_init(config: Configuration) -> None:
    """Two builds with one seed have equal weights; shapes do not depend on the seed."""
    first, second = config.build(seed=3), config.build(seed=3)
    if not isinstance(first, nn.Module):
        raise NotApplicable("it has no weights")
    other = config.build(seed=4).state_dict()
    for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b), f"{name} differs between two builds with one seed"
        assert other[name].shape == a.shape, f"the shape of {name} depends on the seed"


def meta_device(config: Configuration) -> None:
    """It can be built on the meta device, with the same shapes."""
    built = config.build()
    if not isinstance(built, nn.Module):
        raise NotApplicable("it has no weights")
    values = config.parent_values()
    with torch.device("meta"):
        meta = config.blueprint().build(**values, **config.parent_parts())
    shapes = {name: tensor.shape for name, tensor in built.state_dict().items()}
    for name, tensor in meta.state_dict().items():
        assert tensor.is_meta, f"{name} is on {tensor.device} under torch.device('meta')"
        assert tensor.shape == shapes[name], f"{name} has a different shape on the meta device"


LAWS = (
    Law("documented", documented, per_class=True),
    Law("has-paper", has_paper, per_class=True),
    Law("valid-schema", valid_schema, per_class=True),
    Law("seeded-init", seeded_init),
    Law("meta-device", meta_device),
)
