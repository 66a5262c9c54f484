"""A Blueprint is a validated, unbuilt component; its parent builds it, as often as it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

from zoo.errors import Place, Problem, SpecError, WidthConflict, ZooError
from zoo.interfaces import Entry
from zoo.interfaces.signature import Slot, parameters

C = TypeVar("C", covariant=True)


@dataclass(frozen=True)
class Blueprint(Generic[C]):
    """A part as its spec describes it.

    >>> from zoo.testing.tiny import TinyScorer
    >>> Blueprint.of(TinyScorer).build(query_dim=4, key_dim=6)
    TinyScorer(
      (W): Linear(in_features=6, out_features=4, bias=False)
    )
    """

    fills_slots: ClassVar[bool] = True

    cls: type[C]
    params: dict[str, Any]
    path: str = ""
    place: Place | None = None
    places: dict[str, Place] = field(default_factory=dict)
    entry: Entry | None = None

    @classmethod
    def of(cls, component: type[C], **params: Any) -> Blueprint[C]:
        """A blueprint written in Python; slots take blueprints."""
        known = {p.name: p for p in parameters(component) if not p.from_parent}
        problems = [
            Problem(f"{component.__name__} has no parameter '{key}'; it has: {', '.join(known)}")
            for key in params
            if key not in known
        ]
        for key, value in params.items():
            if key in known and known[key].slot is None:
                problems += [Problem(f"{key}: {why}") for _, why in known[key].validate(value)]
            elif key in known:
                problems += _validate_slot(key, known[key].slot, value)
        problems += [
            Problem(f"{component.__name__} needs a value for '{key}'")
            for key, parameter in known.items()
            if parameter.required and key not in params
        ]
        if problems:
            raise SpecError(problems)
        return cls(component, params)

    @property
    def label(self) -> str:
        """How messages call the part."""
        return self.entry.name if self.entry else getattr(self.cls, "name", self.cls.__name__)

    def build(self, **from_parent: Any) -> C:
        """The part itself; the parent gives what only it knows, the part takes what it declares."""
        known = {p.name for p in parameters(self.cls) if p.from_parent}
        needed = {p.name for p in parameters(self.cls) if p.from_parent and p.required}
        if needed - from_parent.keys():
            lacking, offered = (
                ", ".join(sorted(needed - from_parent.keys())),
                ", ".join(sorted(from_parent)),
            )
            raise self._spec_error(
                f"needs {lacking} from its parent, which gives: {offered or 'nothing'}"
            )
        frame = BuildNode(self, {key: value for key, value in from_parent.items() if key in known})
        parent_frames = _build_stack.get()
        token = _build_stack.set((*parent_frames, frame))
        try:
            frame.part = self.cls(**self.params, **frame.from_parent)
        except SpecError:
            raise
        except WidthConflict as conflict:
            raise self._spec_error(
                _explain_conflict(conflict, (*parent_frames, frame))
            ) from conflict
        except ZooError as error:
            raise self._spec_error(str(error)) from error
        except Exception as error:
            raise self._spec_error(f"could not be built: {format_error(error)}") from error
        finally:
            _build_stack.reset(token)
        if parent_frames:
            parent_frames[-1].children.append(frame)
        return cast(C, frame.part)

    def _spec_error(self, message: str) -> SpecError:
        return SpecError(
            [
                Problem(
                    f"'{self.label}' {message}" if self.path == "" else message,
                    self.path,
                    self.place,
                )
            ]
        )

    def resolve(self) -> dict[str, Any]:
        """The part as a spec with nothing left to defaults and every name qualified."""
        out: dict[str, Any] = {"type": self.entry.reference} if self.entry else {}
        for parameter in parameters(self.cls):
            if parameter.from_parent:
                continue
            value = self.params.get(parameter.name, parameter.default)
            out[parameter.name] = _resolve_value(value, parameter.slot)
        return out

    def children(self) -> Iterator[Blueprint[Any]]:
        """The blueprints in this part's slots."""
        for value in self.params.values():
            if isinstance(value, Blueprint):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from (item for item in value if isinstance(item, Blueprint))

    def walk(self) -> Iterator[Blueprint[Any]]:
        """This blueprint and all below it."""
        yield self
        for child in self.children():
            yield from child.walk()


def format_error(error: BaseException) -> str:
    """An error in one line; torch adds a stack trace to some."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _validate_slot(key: str, slot: Slot | None, value: Any) -> list[Problem]:
    if slot is None or (value is None and slot.optional):
        return []
    items = value if slot.many and isinstance(value, (list, tuple)) else [value]
    return [
        Problem(f"{key}: should be a blueprint of {slot.target.__name__}")
        for item in items
        if not isinstance(item, Blueprint) or not issubclass(item.cls, slot.target)
    ]


def _resolve_value(value: Any, slot: Slot | None) -> Any:
    if slot is None or value is None:
        return list(value) if isinstance(value, tuple) else value
    if slot.many:
        return [item.resolve() for item in value]
    return value.resolve()


@dataclass
class BuildNode:
    """One part being built, or built: what its parent gave it, and the parts it built in turn."""

    blueprint: Blueprint[Any]
    from_parent: dict[str, Any]
    part: Any = None
    children: list[BuildNode] = field(default_factory=list)

    def walk(self) -> Iterator[BuildNode]:
        """This frame and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


_build_stack: ContextVar[tuple[BuildNode, ...]] = ContextVar("frames", default=())


@contextmanager
def record_build() -> Iterator[BuildNode]:
    """Keep the tree of parts built inside the block; its root's children are the topmost."""
    root = BuildNode(Blueprint(object, {}), {})
    token = _build_stack.set((root,))
    try:
        yield root
    finally:
        _build_stack.reset(token)


def _explain_conflict(conflict: WidthConflict, frames: Sequence[BuildNode]) -> str:
    """The conflict with the origin of each width, so that both lines can be found."""
    sides = []
    for name, width in conflict.widths.items():
        origin = _trace_width(width, frames)
        sides.append(f"{name} is {width}" + (f" (from {origin})" if origin else ""))
    return f"{conflict.reason}: {', '.join(sides)}"


def _trace_width(width: int, frames: Sequence[BuildNode]) -> str | None:
    """Which keys or parts of the spec a width may come from: follow the value up the parents."""
    found: list[str] = []
    for frame in reversed(frames):
        blueprint = frame.blueprint
        for key, value in blueprint.params.items():
            if type(value) is int and value == width:
                found.append(_format_location(f"{blueprint.path}.{key}", blueprint.places.get(key)))
        for child in reversed(frame.children):
            if width in (
                getattr(child.part, name, None) for name in getattr(child.part, "widths", ())
            ):
                found.append(_format_location(child.blueprint.path, child.blueprint.place))
        if width not in [value for value in frame.from_parent.values() if isinstance(value, int)]:
            break
    return " or ".join(dict.fromkeys(found)) or None


def _format_location(path: str, place: Place | None) -> str:
    return f"{path}, {place}" if place else path
