"""Building models from specs, on the meta device for checks and with weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any, TypeVar

import torch

from zoo.acceleration import prepare
from zoo.acceleration.first_operations import prepare_operations
from zoo.adapters.attachment import attach, check_replaced, reset_adapters
from zoo.errors import Problem, SpecError, ZooError
from zoo.interfaces import Entry, Model
from zoo.interfaces.importer import Importer
from zoo.interfaces.signature import parameters
from zoo.registry.blueprint import Blueprint, BuildNode, record_build
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.registry.work_limit import WorkLimit
from zoo.spec.contracts import contract_problems
from zoo.spec.data_contract import data_problems
from zoo.spec.initialisation import initialise
from zoo.spec.memory import check_memory, model_bytes
from zoo.spec.meta import SkipInit
from zoo.spec.objective_check import fitted_objective
from zoo.spec.report import Report, build_report, check_example
from zoo.spec.spec import Source, Spec, draft_spec, sort_problems
from zoo.spec.trainability import trained_problems
from zoo.spec.training import MAX_STEPS, Training

T = TypeVar("T")


def components(kind: str | None = None) -> list[Entry]:
    """Return the components of all installed plugins, or those of one kind."""
    return default_registry().components(kind)


def compose(
    source: Source,
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    seed: int = 0,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
) -> Model:
    """Check a spec and build its model with weights, as `zoo.compose` of a spec without a base."""
    target_device = resolve_device(device)
    prepare_operations(target_device)
    target_dtype = resolve_dtype(dtype)
    valid_seed = resolve_seed(seed)
    spec, tree = _check(source, overrides, registry, None, _run_example)
    what = f"the model of spec '{spec.name}'"
    check_memory(what, model_bytes(tree.part), torch.device("cpu"))
    check_memory(what, model_bytes(tree.part, target_dtype), target_device)
    prepare(tree.part, target_device, registry)
    return build_model(spec, valid_seed).to(device=target_device, dtype=target_dtype)


def build_model(spec: Spec, seed: int) -> Model:
    """Build the model of a checked spec on the CPU, with weights initialised from a seed."""
    with torch.random.fork_rng(devices=[]), record_build() as root:
        torch.default_generator.manual_seed(seed)  # does not seed the GPUs
        model = spec.sections.model.build()
        init = spec.sections.init
        if init is not None:
            with init.report_errors("initialisation"):
                initialise(model, init.build())
        _attach_adapters(spec, root)
        reset_adapters(model, seed)
    return attach_metadata(root.children[0], spec)


def _attach_adapters(spec: Spec, root: BuildNode) -> None:
    """Build the adapters of a spec, attach them to the model, and move them to the model's tree."""
    tree = root.children[0]
    problems: list[Problem] = []
    for name, blueprint in spec.sections.adapters.items():
        try:
            adapter = blueprint.build()
            tree.children.append(root.children.pop())
            with blueprint.report_errors("attaching the adapter"):
                attach(tree.part, name, adapter)
                check_replaced(tree.part)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)


def check_spec(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> tuple[Spec, Report]:
    """Return the spec and its report; raise SpecError with all problems of reading and building."""
    return _check(source, overrides, registry, None, build_report)


def validate_spec(
    source: Source,
    *,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
    importer: Importer | None = None,
) -> Spec:
    """Return the spec as `check_spec` does, without a report; it runs one example, not two."""
    return _check(source, overrides, registry, importer, check_example)[0]


def _check(
    source: Source,
    overrides: Iterable[str],
    registry: ComponentRegistry | None,
    importer: Importer | None,
    run: Callable[[Spec, BuildNode, BuildNode | None], T],
) -> tuple[Spec, T]:
    draft = draft_spec(source, overrides=overrides, registry=registry, importer=importer)
    problems = list(draft.problems)
    if draft.spec is None:
        raise SpecError(problems)
    try:
        root = _build_sections(draft.spec)
        problems += contract_problems(draft.spec, root, registry or default_registry())
        problems += data_problems(draft.spec, root, registry or default_registry())
        problems += trained_problems(draft.spec, root.children[0].part)
        if not problems:
            return draft.spec, run(draft.spec, root.children[0], fitted_objective(draft.spec, root))
    except SpecError as error:
        problems += error.problems
    raise SpecError(sort_problems(problems))


def _run_example(spec: Spec, tree: BuildNode, objective: BuildNode | None) -> BuildNode:
    check_example(spec, tree, objective)
    return tree


def build_on_meta(spec: Spec) -> BuildNode:
    """Build all parts on the meta device without initialising them; return the model's tree."""
    return _build_sections(spec).children[0]


def _build_sections(spec: Spec) -> BuildNode:
    """Return the root of the parts that `build_on_meta` builds, the model's tree first."""
    sections = spec.sections
    problems: list[Problem] = []
    with record_build() as root, torch.device("meta"), SkipInit(), WorkLimit():
        try:
            sections.model.build()
            _attach_adapters(spec, root)
        except SpecError as error:
            problems += error.problems
        for blueprint in (
            sections.init,
            sections.sampler,
            *sections.filters,
            sections.objective,
        ):
            try:
                if blueprint is not None:
                    blueprint.build()
            except SpecError as error:
                problems += error.problems
        if sections.train is not None:
            try:
                _build_training(sections.train.build())
            except SpecError as error:
                problems += error.problems
    if problems:
        raise SpecError(problems)
    return root


def _build_training(training: Training) -> None:
    """Build the components of the section ``train``; no file is opened."""
    problems: list[Problem] = []
    for blueprint in (
        *training.datasets().values(),
        training.optimiser,
        training.schedule,
        training.evaluate.sampler,
    ):
        try:
            if blueprint is not None:
                blueprint.build(steps=training.steps or MAX_STEPS)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)


def attach_metadata(tree: BuildNode, spec: Spec) -> Model:
    """Attach the resolved spec and its components to a built model, and return it.

    A model with an unregistered part has no spec, because a file could not name the part.
    """
    model: Model = tree.part
    spec = spec.without_training()
    if any(_has_unregistered_part(blueprint) for blueprint in spec.root.walk()):
        return model
    model.spec = spec.resolve()
    model.providers = tuple(spec.providers())
    model.component_paths = tuple(_component_paths(tree, spec))
    model.component_entries = tuple(dict.fromkeys(b.entry for b in spec.root.walk() if b.entry))
    return model


def _has_unregistered_part(blueprint: Blueprint[Any]) -> bool:
    """Return whether a slot holds a class that is not registered and not the class of the slot."""
    for parameter in parameters(blueprint.cls):
        value = blueprint.params.get(parameter.name)
        slot = parameter.slot
        if slot and any(p.entry is None and p.cls is not slot.target for p in slot.parts(value)):
            return True
    return False


def _component_paths(tree: BuildNode, spec: Spec) -> Iterator[dict[str, Any]]:
    """Yield each component's path in the spec and its module names in the model."""
    names = {id(module): name for name, module in tree.part.named_modules()}
    modules: dict[str, list[str]] = {}
    for node in tree.walk():
        if id(node.part) in names:
            modules.setdefault(node.blueprint.path, []).append(names[id(node.part)])
    for blueprint in spec.root.walk():
        entry, path = blueprint.entry, blueprint.path
        if entry:
            at = list(dict.fromkeys(modules.get(path, [])))
            yield {"path": path, "kind": entry.kind, "type": entry.reference, "at": at}


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the device; raise ZooError if it is unknown or not available."""
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError):
        is_gpu = str(device).lower().startswith(("gpu", "cuda", "nvidia"))
        hint = "did you mean 'cuda'?" if is_gpu else "expected, for example, cpu, cuda or cuda:1"
        raise ZooError(f"device '{device}' is unknown; {hint}") from None
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ZooError(f"device '{device}' is not available: torch finds no CUDA device")
    try:
        torch.empty(0, device=resolved)
    except Exception as error:
        raise ZooError(f"device '{device}' cannot be used: {str(error).splitlines()[0]}") from None
    return resolved


def resolve_dtype(dtype: Any) -> torch.dtype:
    """Return a floating dtype by name, float32 for None; raise ZooError for any other."""
    dtypes = {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
        "float64": torch.float64,
    }
    if dtype is None:
        return torch.float32
    if isinstance(dtype, torch.dtype) and dtype in dtypes.values():
        return dtype
    if dtype not in dtypes:
        raise ZooError(f"dtype '{dtype}' is not one of {', '.join(dtypes)}")
    return dtypes[dtype]


def resolve_seed(seed: int) -> int:
    """Return a random seed; raise ZooError if torch does not accept it."""
    if not isinstance(seed, Integral) or not -(2**63) <= seed < 2**64:
        raise ZooError(f"seed is {seed!r}; expected an integer from -2**63 to 2**64 - 1")
    return int(seed)
