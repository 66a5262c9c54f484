"""Weights and models put together: which tensors a model holds, and putting them in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from zoo.artifact.layout import DTYPE_NAMES
from zoo.errors import ArtifactError, SpecError
from zoo.interfaces import Model
from zoo.spec.composition import attach_metadata, build_on_meta
from zoo.spec.meta import SkipInit
from zoo.spec.spec import Spec

_MAX_SHOWN = 8


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name; what several places share counts once."""
    held: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            held[name] = tensor
    return held


def load_weights(
    source: object,
    spec: Spec,
    tensors: Mapping[str, Tensor],
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
) -> Model:
    """The model of a spec with these weights; not copied where device and dtype are theirs."""
    try:
        tree = build_on_meta(spec)
    except SpecError as error:
        raise ArtifactError(f"{source}: its spec does not hold here:\n{error}") from None
    model = attach_metadata(tree, spec)
    expected = named_tensors(model)
    _check_tensors(source, tensors, expected)

    def to_target(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
        return tensor.to(device, dtype if tensor.is_floating_point() else None)

    _assign_tensors(
        model, [(old, to_target(tensors[name], dtype)) for name, old in expected.items()]
    )
    computed = _computed_buffers(model, spec)
    if computed:
        floats = (p.dtype for p in model.parameters() if p.is_floating_point())
        like = next(floats, dtype)
        _assign_tensors(model, [(old, to_target(new, like)) for old, new in computed])
    return model


def _check_tensors(
    source: object, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> None:
    """Refuse tensors that are not exactly the model's, and list the differences."""
    wrong = [
        f"missing: {name} {list(tensor.shape)}"
        for name, tensor in expected.items()
        if name not in found
    ]
    for name, tensor in found.items():
        if name not in expected:
            wrong.append(f"surplus: {name} {list(tensor.shape)}")
            continue
        wanted = expected[name]
        if tensor.dtype != wanted.dtype and not _is_compatible_dtype(tensor.dtype, wanted.dtype):
            kind = DTYPE_NAMES.get(tensor.dtype, tensor.dtype)
            wrong.append(f"wrong dtype: {name} is {kind}, should be like {wanted.dtype}")
        if tensor.shape != wanted.shape:
            shapes = f"is {list(tensor.shape)}, should be {list(wanted.shape)}"
            wrong.append(f"misshapen: {name} {shapes}")
    if wrong:
        more = f"\n  and {len(wrong) - _MAX_SHOWN} more" if len(wrong) > _MAX_SHOWN else ""
        listed = "".join(f"\n  {line}" for line in wrong[:_MAX_SHOWN])
        raise ArtifactError(f"{source} does not hold the weights of its spec:{listed}{more}")


def _is_compatible_dtype(found: torch.dtype, expected: torch.dtype) -> bool:
    """A float may be stored in any float's precision of 16 bits or more; all else is what it is."""
    return expected.is_floating_point and found.is_floating_point and found.itemsize >= 2


def _assign_tensors(model: nn.Module, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """New tensors in the place of old ones, uncopied; what is shared is filled everywhere."""
    fresh: dict[int, Tensor] = {}
    for old, new in pairs:
        keeps = isinstance(old, nn.Parameter)
        fresh[id(old)] = nn.Parameter(new, requires_grad=old.requires_grad) if keeps else new
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for key, value in table.items():
                if id(value) in fresh:
                    table[key] = fresh[id(value)]  # type: ignore[assignment]


def _computed_buffers(model: Model, spec: Spec) -> list[tuple[Tensor, Tensor]]:
    """Buffers that no file holds, because the constructor computes them, and their values.

    The model is built again for them, but its parameters stay as the system hands out memory:
    untouched, so that they cost neither time nor room.
    """
    absent = {name: buffer for name, buffer in model.named_buffers() if buffer.is_meta}
    if not absent:
        return []
    with torch.random.fork_rng(devices=[]), SkipInit():
        real = dict(spec.sections.model.build().named_buffers())
    return [(buffer, real[name]) for name, buffer in absent.items()]
