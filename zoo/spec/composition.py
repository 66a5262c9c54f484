"""Blueprint tree to model: first on the meta device, where size costs nothing, then for real."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from zoo.errors import Problem, SpecError, ZooError
from zoo.interfaces import Component, Entry, Model
from zoo.registry.blueprint import BuildNode, record_build
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.meta import SkipInit
from zoo.spec.report import Report, build_report
from zoo.spec.spec import Source, Spec, draft_spec


def components(kind: str | None = None) -> list[Entry]:
    """Everything the installed plugins offer, or what they offer of one kind."""
    return default_registry().components(kind)


def check(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> Report:
    """What the spec describes, or SpecError with all its faults; allocates no weights."""
    return check_spec(source, overrides=overrides, registry=registry)[1]


def compose(
    source: Source,
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    seed: int = 0,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
) -> Model:
    """The model that a spec describes, checked, built and initialised from the seed.

    The weights are drawn on the CPU, so a seed means the same model on every device.
    """
    place = resolve_device(device)
    kind = resolve_dtype(dtype)
    spec, _ = check_spec(source, overrides=overrides, registry=registry)
    with torch.random.fork_rng(devices=[]), record_build() as root:
        torch.default_generator.manual_seed(seed)  # leaves the GPUs' generators alone
        spec.sections.model.build()
    return attach_metadata(root.children[0], spec).to(device=place, dtype=kind)


def check_spec(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> tuple[Spec, Report]:
    """The spec and its report, or SpecError with every fault of reading and of building."""
    draft = draft_spec(source, overrides=overrides, registry=registry)
    problems = list(draft.problems)
    if draft.spec is None:
        raise SpecError(problems)
    try:
        tree = build_on_meta(draft.spec)
        if not problems:
            return draft.spec, build_report(draft.spec, tree)
    except SpecError as error:
        problems += error.problems
    raise SpecError(problems)


def build_on_meta(spec: Spec) -> BuildNode:
    """The tree of built parts, with shapes and no storage; the model is its root."""
    sections = spec.sections
    problems: list[Problem] = []
    with record_build() as root, torch.device("meta"), SkipInit():
        for blueprint in (
            sections.model,
            sections.sampler,
            *sections.filters,
            sections.objective,
        ):
            try:
                if blueprint is not None:
                    blueprint.build()
            except SpecError as error:
                problems += error.problems
    if problems:
        raise SpecError(problems)
    return root.children[0]


def attach_metadata(tree: BuildNode, spec: Spec) -> Model:
    """The model at the root of a built tree, with the spec and the lock it came from on it.

    A part written in Python has no name that a file could give it, so such a model has no spec.
    """
    model: Model = tree.part
    if any(b.entry is None and issubclass(b.cls, Component) for b in spec.root.walk()):
        return model
    model.spec = spec.resolve()
    model.providers = tuple(spec.lock())
    model.component_paths = tuple(_component_paths(tree, spec))
    return model


def _component_paths(tree: BuildNode, spec: Spec) -> Iterator[dict[str, Any]]:
    """Where each component stands: its path in the spec, and every place in the model."""
    names = {id(module): name for name, module in tree.part.named_modules()}
    found: dict[str, list[str]] = {}
    for frame in tree.walk():
        if id(frame.part) in names:
            found.setdefault(frame.blueprint.path, []).append(names[id(frame.part)])
    for blueprint in spec.root.walk():
        entry, path = blueprint.entry, blueprint.path
        if entry:
            at = list(dict.fromkeys(found.get(path, [])))
            yield {"path": path, "kind": entry.kind, "type": entry.reference, "at": at}


def resolve_device(device: str | torch.device) -> torch.device:
    """The device, or ZooError if there is none of that name here."""
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ZooError(f"device '{device}' is unknown: {str(error).splitlines()[0]}") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ZooError(f"device '{device}' is asked for, but torch sees no CUDA device here")
    try:
        torch.empty(0, device=chosen)
    except Exception as error:
        raise ZooError(f"device '{device}' cannot be used: {str(error).splitlines()[0]}") from None
    return chosen


def resolve_dtype(dtype: Any) -> torch.dtype:
    """The dtype of that name, float32 for None, or ZooError if weights cannot be of it."""
    kinds = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
        "float64": torch.float64,
    }
    if dtype is None:
        return torch.float32
    if isinstance(dtype, torch.dtype) and dtype in kinds.values():
        return dtype
    if dtype not in kinds:
        raise ZooError(f"dtype '{dtype}' is none of {', '.join(kinds)}")
    return kinds[dtype]
