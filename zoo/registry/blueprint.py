"""`Blueprint`: a validated component that has not been built yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

from zoo.errors import InvalidParameter, Place, Problem, SpecError, WidthConflict, ZooError
from zoo.interfaces import Entry
from zoo.interfaces.signature import Slot, constructor_arguments, parameters
from zoo.registry.plugin_call import PluginCall, PluginExit

C = TypeVar("C", covariant=True)


@dataclass(frozen=True)
class Blueprint(Generic[C]):
    """A component class with validated parameters; the parent builds it, once or several times.

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
        """Return a blueprint for use in Python; slots take blueprints."""
        known = {p.name: p for p in parameters(component) if not p.from_parent}
        problems = [
            Problem(f"{component.__name__} has no parameter '{key}'; it has: {', '.join(known)}")
            for key in params
            if key not in known
        ]
        parsed = dict(params)
        for key, value in params.items():
            if key in known and known[key].slot is None:
                parsed[key], errors = known[key].parse(value)
                problems += [Problem(f"{key}: {why}") for _, why in errors]
            elif key in known:
                problems += _validate_slot(key, known[key].slot, value)
        problems += [
            Problem(f"parameter '{key}' of {component.__name__} is missing")
            for key, parameter in known.items()
            if parameter.required and key not in params
        ]
        if problems:
            raise SpecError(problems)
        return cls(component, parsed)

    @property
    def label(self) -> str:
        """The name of the part in messages."""
        return self.entry.name if self.entry else getattr(self.cls, "name", self.cls.__name__)

    def build(self, **from_parent: Any) -> C:
        """Build the part. Values that its constructor does not declare `FromParent` are ignored."""
        known = {p.name for p in parameters(self.cls) if p.from_parent}
        needed = {p.name for p in parameters(self.cls) if p.from_parent and p.required}
        missing = needed - from_parent.keys()
        if missing:
            passed = ", ".join(sorted(from_parent)) or "nothing"
            raise self._spec_error(
                f"requires {', '.join(sorted(missing))} from its parent, "
                f"but the parent passes {passed}"
            )
        node = BuildNode(self, {key: value for key, value in from_parent.items() if key in known})
        parent_nodes = _build_stack.get()
        token = _build_stack.set((*parent_nodes, node))
        try:
            with PluginCall():
                values = {**self.params, **node.from_parent}
                node.part = self.cls(**constructor_arguments(self.cls, values))
        except SpecError:
            raise
        except WidthConflict as conflict:
            raise self._spec_error(_explain_conflict(conflict, (*parent_nodes, node))) from conflict
        except InvalidParameter as error:
            raise self._spec_error(str(error), error.parameter) from error
        except ZooError as error:
            raise self._spec_error(str(error)) from error
        except Exception as error:
            raise self._spec_error(f"could not be built: {format_error(error)}") from error
        finally:
            _build_stack.reset(token)
        if parent_nodes:
            parent_nodes[-1].children.append(node)
        return cast(C, node.part)

    def _spec_error(self, message: str, parameter: str | None = None) -> SpecError:
        """Return an error with the place of the part, or of the value of a parameter."""
        if self.path == "":
            return SpecError([Problem(f"'{self.label}' {message}", "", self.place)])
        if parameter in self.places:
            return SpecError([Problem(message, f"{self.path}.{parameter}", self.places[parameter])])
        return SpecError([Problem(message, self.path, self.place)])

    @contextmanager
    def report_errors(self, action: str) -> Iterator[None]:
        """Raise SpecError with the place of the part for an error of plugin code in the block."""
        try:
            with PluginCall():
                yield
        except SpecError:
            raise
        except InvalidParameter as error:
            raise self._spec_error(str(error), error.parameter) from error
        except Exception as error:
            failed = f"{action} failed: {format_error(error)}"
            message = str(error) if isinstance(error, ZooError) else failed
            raise SpecError([Problem(message, self.path, self.place)]) from error

    def resolve(self) -> dict[str, Any]:
        """Return the part as a spec with every default written out and every name qualified."""
        out: dict[str, Any] = {"type": self.entry.reference} if self.entry else {}
        for parameter in parameters(self.cls):
            if parameter.from_parent:
                continue
            value = self.params.get(parameter.name, parameter.default)
            out[parameter.name] = _resolve_value(value, parameter.slot)
        return out

    def children(self) -> Iterator[Blueprint[Any]]:
        """Yield the blueprints in the slots of this one."""
        for parameter in parameters(self.cls):
            if parameter.slot:
                yield from parameter.slot.parts(self.params.get(parameter.name))

    def walk(self) -> Iterator[Blueprint[Any]]:
        """Yield this blueprint and all below it."""
        yield self
        for child in self.children():
            yield from child.walk()


def format_error(error: BaseException) -> str:
    """Return the type and the first line of an error, without torch's stack trace."""
    if isinstance(error, PluginExit) and error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _validate_slot(key: str, slot: Slot | None, value: Any) -> list[Problem]:
    if slot is None or (value is None and slot.optional):
        return []
    expected = f"Blueprint[{slot.target.__name__}]"
    if slot.many and not isinstance(value, (list, tuple)):
        return [Problem(f"{key}: expected a list of {expected}, got {_type_name(value)}")]
    if slot.named and not isinstance(value, Mapping):
        return [Problem(f"{key}: expected a mapping of {expected}, got {_type_name(value)}")]
    return [
        Problem(f"{key}: expected {expected}, got {_type_name(item)}")
        for item in (slot.parts(value) if value is not None else [None])
        if not isinstance(item, Blueprint) or not issubclass(item.cls, slot.target)
    ]


def _type_name(value: Any) -> str:
    return (
        f"Blueprint[{value.cls.__name__}]" if isinstance(value, Blueprint) else type(value).__name__
    )


def _resolve_value(value: Any, slot: Slot | None) -> Any:
    if slot is None or value is None:
        return list(value) if isinstance(value, tuple) else value
    if slot.many:
        return [item.resolve() for item in value]
    if slot.named:
        return {name: item.resolve() for name, item in value.items()}
    return value.resolve()


@dataclass
class BuildNode:
    """A part being built: the values its parent passed, and the parts it has built."""

    blueprint: Blueprint[Any]
    from_parent: dict[str, Any]
    part: Any = None
    children: list[BuildNode] = field(default_factory=list)

    def walk(self) -> Iterator[BuildNode]:
        """Yield this node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


_build_stack: ContextVar[tuple[BuildNode, ...]] = ContextVar("build_stack", default=())


def innermost_node() -> BuildNode | None:
    """Return the part whose constructor runs, or None outside of a build."""
    nodes = _build_stack.get()
    return nodes[-1] if nodes else None


@contextmanager
def record_build() -> Iterator[BuildNode]:
    """Record the tree of parts built inside the block, as children of the yielded root."""
    root = BuildNode(Blueprint(object, {}), {})
    token = _build_stack.set((root,))
    try:
        yield root
    finally:
        _build_stack.reset(token)


def _explain_conflict(conflict: WidthConflict, nodes: Sequence[BuildNode]) -> str:
    """Return the conflict with the origin of each width in the spec."""
    sides = []
    for name, width in conflict.widths.items():
        origin = _trace_width(width, nodes)
        sides.append(f"{name} is {width}" + (f" (from {origin})" if origin else ""))
    return f"{conflict.reason}: {', '.join(sides)}"


def _trace_width(width: int, nodes: Sequence[BuildNode]) -> str | None:
    """Return the keys or parts of the spec a width may come from, searching up the parents."""
    origins: list[str] = []
    for node in reversed(nodes):
        blueprint = node.blueprint
        for key, value in blueprint.params.items():
            if type(value) is int and value == width:
                origins.append(
                    _format_location(f"{blueprint.path}.{key}", blueprint.places.get(key))
                )
        for child in reversed(node.children):
            if width in (
                getattr(child.part, name, None) for name in getattr(child.part, "widths", ())
            ):
                origins.append(_format_location(child.blueprint.path, child.blueprint.place))
        if width not in [value for value in node.from_parent.values() if isinstance(value, int)]:
            break
    return " or ".join(dict.fromkeys(origins)) or None


def _format_location(path: str, place: Place | None) -> str:
    return f"{path}, {place}" if place else path
