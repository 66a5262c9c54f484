"""Names of the tensors of a model, and assignment of weights to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from zoo.acceleration import prepare
from zoo.artifact.layout import DTYPE_NAMES
from zoo.errors import ArtifactError, SpecError
from zoo.interfaces import Model
from zoo.interfaces.module_parts import COMPILED, each_part
from zoo.registry.component_registry import ComponentRegistry
from zoo.registry.work_limit import MAX_BYTES, WorkLimit
from zoo.spec.composition import attach_metadata, build_on_meta
from zoo.spec.meta import SkipInit
from zoo.spec.spec import Spec

_MAX_SHOWN = 8


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers by name. Shared tensors are listed once.

    Names do not contain the wrappers that `torch.compile` adds.
    """
    tensors: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            if COMPILED in name:
                name = ".".join(part for part in name.split(".") if part != COMPILED)
            tensors[name] = tensor
    return tensors


def check_plain(tensors: Mapping[str, Tensor]) -> None:
    """Raise ArtifactError for tensors without dense values of their own."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            found = f"a {type(tensor).__name__}"
        elif type(tensor.detach()) is not Tensor or tensor.layout != torch.strided:
            found = f"a {type(tensor.detach()).__name__} with layout {tensor.layout}"
        elif tensor.is_meta:
            found = "on the meta device and has no values"
        else:
            continue
        raise ArtifactError(
            f"this model cannot be saved: {name} is {found}; expected a dense torch.Tensor"
        )


def load_weights(
    source: object,
    spec: Spec,
    tensors: Mapping[str, Tensor],
    *,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
    registry: ComponentRegistry | None = None,
) -> Model:
    """Build the model of a spec with these weights, without a copy if device and dtype match.

    Args:
        device: the device of the model; default: each tensor stays on its device.
        registry: its accelerations prepare the first call on the device meanwhile.
    """
    try:
        tree = build_on_meta(spec.model_only())
    except SpecError as error:
        raise ArtifactError(
            f"{source}: the spec is not valid with the installed components:\n{error}"
        ) from None
    model = attach_metadata(tree, spec)
    expected = named_tensors(model)
    check_tensors(source, tensors, expected)
    modules = each_part(model)
    if device is not None and registry is not None:
        prepare(model, device, registry)

    def move(tensor: Tensor, device: torch.device | None, dtype: torch.dtype | None) -> Tensor:
        if dtype is None and (device is None or tensor.device == device):
            return tensor
        return tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None)

    _assign_tensors(
        modules, [(old, move(tensors[name], device, dtype)) for name, old in expected.items()]
    )
    buffers = (buffer for module in modules for buffer in module._buffers.values())
    if any(buffer is not None and buffer.is_meta for buffer in buffers):
        computed = _compute_buffers(source, model, spec)
        like = next((p for p in model.parameters() if p.is_floating_point()), None)
        target = (device, dtype) if like is None else (like.device, like.dtype)
        _assign_tensors(modules, [(old, move(new, *target)) for old, new in computed])
    return model


def check_tensors(
    source: object, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> None:
    """Raise ArtifactError, with the differences, unless the tensors are exactly the model's."""
    wrong = [
        f"missing: {name} {list(tensor.shape)}"
        for name, tensor in expected.items()
        if name not in found
    ]
    for name, tensor in found.items():
        if name not in expected:
            wrong.append(f"unexpected: {name} {list(tensor.shape)}")
            continue
        dtype, shape = expected[name].dtype, expected[name].shape
        if tensor.dtype != dtype and not _is_compatible_dtype(tensor.dtype, dtype):
            stored = DTYPE_NAMES.get(tensor.dtype, tensor.dtype)
            required = DTYPE_NAMES.get(dtype, dtype)
            wrong.append(f"dtype mismatch: {name} is {stored}, expected {required}")
        if tensor.shape != shape:
            shapes = f"is {list(tensor.shape)}, expected {list(shape)}"
            wrong.append(f"shape mismatch: {name} {shapes}")
    if wrong:
        more = f"\n  and {len(wrong) - _MAX_SHOWN} more" if len(wrong) > _MAX_SHOWN else ""
        listed = "".join(f"\n  {line}" for line in wrong[:_MAX_SHOWN])
        raise ArtifactError(f"{source}: the weights do not match the spec:{listed}{more}")


def _is_compatible_dtype(found: torch.dtype, expected: torch.dtype) -> bool:
    """Return whether a dtype can be loaded: floats of 16 bits or more are interchangeable."""
    return expected.is_floating_point and found.is_floating_point and found.itemsize >= 2


def _assign_tensors(modules: Sequence[nn.Module], pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Replace tensors of modules without a copy, in every module that shares them."""
    fresh = {id(old): (old, new) for old, new in pairs}
    parameters: dict[int, nn.Parameter] = {}
    for module in modules:
        for key, parameter in module._parameters.items():
            if (number := id(parameter)) in fresh:
                if number not in parameters:
                    old, new = fresh[number]
                    parameters[number] = nn.Parameter(new, requires_grad=old.requires_grad)
                module._parameters[key] = parameters[number]
        for key, buffer in module._buffers.items():
            if id(buffer) in fresh:
                module._buffers[key] = fresh[id(buffer)][1]


def _compute_buffers(source: object, model: Model, spec: Spec) -> list[tuple[Tensor, Tensor]]:
    """Return the buffers that are not saved, with the values that the constructor computes.

    The model is built a second time without initialising its parameters, so that their memory is
    reserved but never used. The memory is limited by the size of the weights.
    """
    absent = {name: buffer for name, buffer in model.named_buffers() if buffer.is_meta}
    weights = sum(tensor.nbytes for tensor in model.state_dict().values())
    limit = WorkLimit(max_bytes=MAX_BYTES + 4 * weights)
    try:
        with torch.random.fork_rng(devices=[]), SkipInit(), limit:
            real = dict(spec.sections.model.build().named_buffers())
    except SpecError as error:
        raise ArtifactError(f"{source}: the buffers cannot be computed: {error}") from None
    return [(buffer, real[name]) for name, buffer in absent.items()]
