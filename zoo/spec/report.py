"""Report of a checked spec: its parts with output shapes, parameters and bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from zoo.acceleration import module_paths
from zoo.attention import recording
from zoo.errors import InvalidParameter, Problem, SpecError
from zoo.registry.blueprint import BuildNode, format_error
from zoo.registry.plugin_call import PluginCall
from zoo.registry.work_limit import WorkLimit
from zoo.spec.initialisation import initialised_weights
from zoo.spec.rate_groups import Rate, find_rates
from zoo.spec.spec import Spec
from zoo.spec.trainability import set_trained
from zoo.spec.training import Training


@dataclass(frozen=True)
class RateReport:
    """Parameters of one learning rate: the factor of the optimiser's, and the weight decay that
    replaces the optimiser's, if there is one."""

    lr_factor: float
    weight_decay: float | None
    parameters: int

    def __str__(self) -> str:
        decay = "" if self.weight_decay is None else f", weight decay {self.weight_decay:g}"
        return f"learning rate x {self.lr_factor:.3g}{decay}: {self.parameters:,} parameters"


@dataclass(frozen=True)
class UnfrozenReport:
    """What is also trained after a number of steps.

    Attributes:
        match: the patterns of what is unfrozen.
        rates: its parameters by learning rate.
    """

    at: int
    match: tuple[str, ...]
    rates: tuple[RateReport, ...]

    def lines(self) -> Iterator[str]:
        """Yield the report in words."""
        count = sum(rate.parameters for rate in self.rates)
        what = f"{', '.join(self.match)}, {count:,} parameters"
        yield f"also trained from step {self.at + 1:,} on: {what}"
        yield from (f"  {rate}" for rate in self.rates)


@dataclass(frozen=True)
class TrainedReport:
    """What a training changes from its first step on.

    Attributes:
        parameters: number of parameters that are trained.
        frozen: number of parameters that are not.
        later: number of steps, and number of all parameters that are trained after them.
        rates: parameters by learning rate, if there are several.
        unfrozen: what is also trained after a number of steps.
    """

    parameters: int
    frozen: int
    later: tuple[tuple[int, int], ...] = ()
    rates: tuple[RateReport, ...] = ()
    unfrozen: tuple[UnfrozenReport, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the report in words."""
        if self.frozen:
            yield f"trained: {self.parameters:,} parameters; frozen: {self.frozen:,}"
        yield from (f"  {rate}" for rate in self.rates)
        for each in self.unfrozen:
            yield from each.lines()


def report_trained(spec: Spec, model: nn.Module) -> TrainedReport | None:
    """Return what the section ``train`` trains of a model on the meta device, which is changed.

    None if it trains the whole model with one learning rate.
    """
    if spec.sections.train is None:
        return None
    training: Training = spec.sections.train.build()
    if not (training.freeze or training.groups or training.depth_decay):
        return None
    set_trained(model, training)
    first = _trained(model)
    rates = _report_rates(training, model, first)
    before, later, unfrozen = first, [], []
    for step in sorted({each.at for each in training.unfreeze}):
        set_trained(model, training, step)
        now = _trained(model)
        later.append((step, sum(now.values())))
        added = {name: size for name, size in now.items() if name not in before}
        match = [text for each in training.unfreeze if each.at == step for text in each.match]
        unfrozen.append(UnfrozenReport(step, tuple(match), _report_rates(training, model, added)))
        before = now
    set_trained(model, training)
    trained = sum(first.values())
    return TrainedReport(
        trained,
        sum(weight.numel() for weight in model.parameters()) - trained,
        tuple(later),
        rates if training.groups or training.depth_decay else (),
        tuple(unfrozen),
    )


def _report_rates(
    training: Training, model: nn.Module, sizes: Mapping[str, int]
) -> tuple[RateReport, ...]:
    """Return how many parameters of these, which are trained now, have each rate."""
    rates, counts = find_rates(training, model), dict[Rate, int]()
    for name, size in sizes.items():
        rate = rates.get(name, Rate())
        counts[rate] = counts.get(rate, 0) + size
    found = [RateReport(rate.factor, rate.weight_decay, n) for rate, n in counts.items()]
    return tuple(sorted(found, key=lambda each: -each.lr_factor))


def _trained(model: nn.Module) -> dict[str, int]:
    """Return the size of each parameter that is trained now, by name."""
    return {name: w.numel() for name, w in model.named_parameters() if w.requires_grad}


@dataclass(frozen=True)
class AccelerationPath:
    """The path of all modules for which an acceleration gives the same reasons.

    Args:
        acceleration: name of the acceleration.
        modules: names of the modules, with ``*`` in place of indices.
        device: 'cuda' if a GPU is available, else 'cpu'.
        evaluation: reason for the reference path in evaluation mode; None if it is accelerated.
        training: reason for the reference path in training mode; None if it is accelerated.
    """

    acceleration: str
    modules: tuple[str, ...]
    device: str
    evaluation: str | None
    training: str | None

    def describe(self) -> str:
        """Return the path and the reason in one line."""
        evaluation, training = (_describe(each) for each in (self.evaluation, self.training))
        if evaluation == training:
            return evaluation
        return f"{evaluation}; in training: {training}"


def find_paths(model: nn.Module) -> list[AccelerationPath]:
    """Return the paths of the parts of a model on this machine, in both modes.

    A call can still use the reference path because of its arguments, for example if it returns the
    attention weights.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    modules: dict[tuple[str, str | None, str | None], dict[str, None]] = {}
    for path in module_paths(model, device):
        key = path.acceleration, path.evaluation, path.training
        modules.setdefault(key, {})[re.sub(r"\.\d+(?=\.|$)", ".*", path.name)] = None
    return [
        AccelerationPath(acceleration, tuple(names), device.type, evaluation, training)
        for (acceleration, evaluation, training), names in modules.items()
    ]


def _describe(reason: str | None) -> str:
    return "accelerated" if reason is None else f"reference path ({reason})"


# Batch and length of two runs; dimensions that differ between them are shown as letters.
_EXAMPLE_SIZES = ((2, 3), (3, 4))

Failure = tuple[Exception, BuildNode]
"""An exception and a part it passed through."""


@dataclass
class ReportNode:
    """A part of the tree; parts built from one blueprint, such as layers, are one node."""

    path: str
    kind: str
    type: str
    plugin: str | None
    shape: str | None
    parameters: int
    bytes: int
    count: int = 1
    children: list[ReportNode] = field(default_factory=list)

    def walk(self) -> Iterator[ReportNode]:
        yield self
        for child in self.children:
            yield from child.walk()

    def as_json(self) -> dict[str, Any]:
        names = ("path", "kind", "type", "plugin", "shape", "parameters", "bytes", "count")
        return {name: getattr(self, name) for name in names}


@dataclass
class InitReport:
    """The initialiser of a spec, and the number of parameters that it initialises."""

    type: str
    plugin: str | None
    parameters: int


@dataclass
class Report:
    """Report of a checked spec; shared parameters count once in the totals."""

    name: str
    parameters: int
    bytes: int
    tree: ReportNode
    init: InitReport | None = None
    paths: list[AccelerationPath] = field(default_factory=list)
    trained: TrainedReport | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": True,
            "name": self.name,
            "parameters": self.parameters,
            "bytes": self.bytes,
            "init": asdict(self.init) if self.init else None,
            "parts": [part.as_json() for part in self.tree.walk()],
            "paths": [asdict(path) for path in self.paths],
            "trained": asdict(self.trained) if self.trained else None,
        }


def build_report(spec: Spec, tree: BuildNode, objective: BuildNode | None = None) -> Report:
    """Run the model on the meta device and return shapes and sizes of its parts.

    Args:
        objective: also run on the outputs of the model, if given.
    """
    root = _build_node(tree, _shapes(tree, objective))
    init = _build_init_report(spec, tree)
    paths, trained = find_paths(tree.part), report_trained(spec, tree.part)
    return Report(spec.name, root.parameters, root.bytes, root, init, paths, trained)


def check_example(spec: Spec, tree: BuildNode, objective: BuildNode | None = None) -> None:
    """Run the model, and the objective on its outputs, on one example on the meta device; raise
    SpecError if that fails."""
    _run_example(tree, objective, _EXAMPLE_SIZES[-1], WorkLimit())
    _build_init_report(spec, tree)


def _build_init_report(spec: Spec, tree: BuildNode) -> InitReport | None:
    blueprint = spec.sections.init
    if blueprint is None:
        return None
    with blueprint.report_errors("initialisation"):
        weights = initialised_weights(tree.part, blueprint.build())
        count = sum(weight.tensor.numel() for weight in weights)
    entry = blueprint.entry
    return InitReport(blueprint.label, entry.plugin if entry else None, count)


def _build_node(node: BuildNode, shapes: dict[int, str]) -> ReportNode:
    blueprint = node.blueprint
    entry = blueprint.entry
    parameters, size = _count(node.part)
    part = ReportNode(
        path=blueprint.path,
        kind=entry.kind if entry else type(node.part).__name__.lower(),
        type=blueprint.label,
        plugin=entry.plugin if entry else None,
        shape=shapes.get(id(node.part)),
        parameters=parameters,
        bytes=size,
    )
    by_path: dict[str, ReportNode] = {}
    for child in (_build_node(child_node, shapes) for child_node in node.children):
        if child.path in by_path:
            _merge(by_path[child.path], child)
        else:
            by_path[child.path] = child
    part.children = list(by_path.values())
    return part


def _merge(part: ReportNode, other: ReportNode) -> None:
    part.count += other.count
    part.parameters += other.parameters
    part.bytes += other.bytes
    for child, other_child in zip(part.children, other.children, strict=False):
        _merge(child, other_child)


def _count(part: Any) -> tuple[int, int]:
    """Return the number of parameters, and the bytes of parameters and buffers."""
    if not isinstance(part, nn.Module):
        return 0, 0
    weights = list(part.parameters())
    tensors = weights + list(part.buffers())
    return sum(w.numel() for w in weights), sum(t.numel() * t.element_size() for t in tensors)


def _shapes(tree: BuildNode, objective: BuildNode | None) -> dict[int, str]:
    """Return the output shape of each part by id, with letters for dimensions of the input."""
    work_limit = WorkLimit()
    runs = [_run_example(tree, objective, size, work_limit) for size in _EXAMPLE_SIZES]
    return {
        key: _symbolic_shape(shape, runs[1][key])
        for key, shape in runs[0].items()
        if key in runs[1] and len(shape) == len(runs[1][key])
    }


def _run_example(
    tree: BuildNode, objective: BuildNode | None, size: tuple[int, int], work_limit: WorkLimit
) -> dict[int, tuple[int, ...]]:
    """Return the output shape of each part for an example of a batch size and a length.

    The shapes of a model with a part that needs values to run are unknown; they are not returned.
    """

    def run_model() -> Any:
        tree.part.eval()
        with torch.device("meta"):
            example = tree.part.example(*size)
        return tree.part(example)

    # Modules call every part while their weights are recorded.
    with recording(tree.part), work_limit:
        outputs, shapes = _run(tree, "forward pass on an example", run_model)
        if objective is not None and outputs is not None:
            loss = objective.part.eval()
            _run(objective, "loss of an example", lambda: loss(outputs))
    return shapes


def _run(
    tree: BuildNode, action: str, compute: Callable[[], Any]
) -> tuple[Any, dict[int, tuple[int, ...]]]:
    """Compute something on the meta device; return it, and the output shape of each part of a tree.

    Returns None and no shapes if a part needs values.

    Raises:
        SpecError: if a part raises an error, with its place.
    """
    try:
        with _trace_shapes(tree) as (shapes, failed), torch.no_grad(), PluginCall():
            return compute(), shapes
    except Exception as error:
        if isinstance(error, NotImplementedError) or "on meta tensors" in str(error):
            return None, {}
        source = next((node for raised, node in failed if raised is error), tree).blueprint
        if isinstance(error, InvalidParameter):
            with source.report_errors(action):
                raise
        message = f"{action} failed: {format_error(error)}"
        raise SpecError([Problem(message, source.path, source.place)]) from error


def _symbolic_shape(first: tuple[int, ...], second: tuple[int, ...]) -> str:
    letters = {
        (_EXAMPLE_SIZES[0][0], _EXAMPLE_SIZES[1][0]): "B",
        (_EXAMPLE_SIZES[0][1], _EXAMPLE_SIZES[1][1]): "S",
    }
    names = (
        str(a) if a == b else letters.get((a, b), "T") for a, b in zip(first, second, strict=True)
    )
    return f"[{', '.join(names)}]"


@contextmanager
def _trace_shapes(tree: BuildNode) -> Iterator[tuple[dict[int, tuple[int, ...]], list[Failure]]]:
    """Collect the first output shape of each part, and the parts an exception passes through."""
    shapes: dict[int, tuple[int, ...]] = {}
    failed: list[Failure] = []
    wrapped: list[nn.Module] = []
    for node in tree.walk():
        if isinstance(node.part, nn.Module):
            node.part.forward = _wrap_forward(node, node.part.forward, shapes, failed)
            wrapped.append(node.part)
    try:
        yield shapes, failed
    finally:
        for part in wrapped:
            del part.forward


def _wrap_forward(
    node: BuildNode,
    method: Any,
    shapes: dict[int, tuple[int, ...]],
    failed: list[Failure],
) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            with PluginCall():
                result = method(*args, **kwargs)
        except Exception as error:
            failed.append((error, node))  # innermost first
            raise
        tensor = _first_tensor(result)
        if tensor is not None:
            shapes.setdefault(id(node.part), tuple(tensor.shape))
        return result

    return wrapper


def _first_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if is_dataclass(value):
        value = [getattr(value, f.name) for f in fields(value)]
    if isinstance(value, (tuple, list)):
        return next((t for t in map(_first_tensor, value) if t is not None), None)
    return None
