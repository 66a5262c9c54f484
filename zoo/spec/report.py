"""What a spec describes, in numbers: its parts with shapes, parameters and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

from zoo.attention import recording
from zoo.errors import Problem, SpecError
from zoo.registry.blueprint import BuildNode, format_error
from zoo.spec.spec import Spec

# Two runs at these sizes tell which dimensions follow the batch and the length.
_EXAMPLE_SIZES = ((2, 3), (3, 4))

Failure = tuple[Exception, BuildNode]
"""An error, and a part it came through."""


@dataclass
class ReportNode:
    """One part of the tree; parts that a parent builds alike, layer by layer, count together."""

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
class Report:
    """A checked spec; parameters that two parts share count once in the total."""

    name: str
    parameters: int
    bytes: int
    tree: ReportNode

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": True,
            "name": self.name,
            "parameters": self.parameters,
            "bytes": self.bytes,
            "parts": [part.as_json() for part in self.tree.walk()],
        }


def build_report(spec: Spec, tree: BuildNode) -> Report:
    """Runs the model on the meta device to see its shapes, and counts."""
    shapes = _shapes(tree)
    root = _build_node(tree, shapes)
    return Report(spec.name, root.parameters, root.bytes, root)


def _build_node(frame: BuildNode, shapes: dict[int, str]) -> ReportNode:
    blueprint = frame.blueprint
    entry = blueprint.entry
    parameters, size = _count(frame.part)
    part = ReportNode(
        path=blueprint.path,
        kind=entry.kind if entry else type(frame.part).__name__.lower(),
        type=blueprint.label if entry else "",
        plugin=entry.plugin if entry else None,
        shape=shapes.get(id(frame.part)),
        parameters=parameters,
        bytes=size,
    )
    by_path: dict[str, ReportNode] = {}
    for child in (_build_node(below, shapes) for below in frame.children):
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
    for mine, theirs in zip(part.children, other.children, strict=False):
        _merge(mine, theirs)


def _count(part: Any) -> tuple[int, int]:
    """Parameters, and the bytes of all that a saved model holds."""
    if not isinstance(part, nn.Module):
        return 0, 0
    weights = list(part.parameters())
    held = weights + list(part.buffers())
    return sum(w.numel() for w in weights), sum(t.numel() * t.element_size() for t in held)


def _shapes(tree: BuildNode) -> dict[int, str]:
    """The output shape of each part by id, with letters for what follows the input."""
    seen: list[dict[int, tuple[int, ...]]] = []
    for batch, length in _EXAMPLE_SIZES:
        try:
            # Recording keeps attention on its reference path, where every part is called.
            with _trace_shapes(tree) as (shapes, failed), recording(tree.part), torch.no_grad():
                tree.part.eval()
                tree.part(tree.part.example(batch, length, torch.Generator()))
        except Exception as error:
            if isinstance(error, NotImplementedError) or "on meta tensors" in str(error):
                return {}  # a part that needs real numbers to run; its shapes stay unknown
            last = next((frame for raised, frame in failed if raised is error), tree).blueprint
            message = f"fails on an example of its own: {format_error(error)}"
            raise SpecError([Problem(message, last.path, last.place)]) from error
        seen.append(shapes)
    return {
        key: _symbolic_shape(shape, seen[1][key])
        for key, shape in seen[0].items()
        if key in seen[1] and len(shape) == len(seen[1][key])
    }


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
    """Notes the first output shape of each part, and the parts an error came through."""
    shapes: dict[int, tuple[int, ...]] = {}
    failed: list[Failure] = []
    wrapped: list[nn.Module] = []
    for frame in tree.walk():
        if isinstance(frame.part, nn.Module):
            frame.part.forward = _wrap_forward(frame, frame.part.forward, shapes, failed)
            wrapped.append(frame.part)
    try:
        yield shapes, failed
    finally:
        for part in wrapped:
            del part.forward


def _wrap_forward(
    frame: BuildNode, method: Any, shapes: dict[int, tuple[int, ...]], failed: list[Failure]
) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            result = method(*args, **kwargs)
        except Exception as error:
            failed.append((error, frame))  # innermost first
            raise
        tensor = _first_tensor(result)
        if tensor is not None:
            shapes.setdefault(id(frame.part), tuple(tensor.shape))
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
