"""Settings of a spec that change outputs but no weights, near the first difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zoo.artifact import named_tensors
from zoo.errors import ZooError
from zoo.interfaces import Model
from zoo.spec.composition import attach_metadata, build_on_meta, validate_spec

MAX_SETTINGS = 5
"""How many settings are listed."""
_TRAINING_KEYS = {"dropout", "std"}
_SPECIAL_TOKENS = (".padding", ".bos", ".eos")


@dataclass(frozen=True)
class _Setting:
    """A value of the spec, and where its component is in the model."""

    path: str
    value: bool | float | str | None
    modules: Sequence[str]
    groups: Sequence[str]
    """The keys between the component and the setting: ``norm`` for ``norm.eps``."""

    def last_uses(self, executed: Sequence[str]) -> tuple[int, int]:
        """Return the index of the last module named like the setting, and of any inside it.

        An index is -1 if no such module was executed.
        """
        named, inside = -1, -1
        for index, name in enumerate(executed):
            for module in self.modules:
                if f"{name}.".startswith(f"{module}." if module else ""):
                    parts = f"_{name.removeprefix(module)}".replace(".", "._").split(".")
                    if all(parts[-1].endswith(f"_{group}") for group in self.groups):
                        named = index
                    if all(any(p.endswith(f"_{group}") for p in parts) for group in self.groups):
                        inside = index
        return named, inside

    def __str__(self) -> str:
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.path}={value}"


def hidden_settings(model: Model, executed: Sequence[str]) -> list[str]:
    """Return a few settings of the modules that were executed, as ``path=value``.

    Numbers are first, then booleans and types of components, then words, each from the last module
    to the first, and settings of the whole model at the end. Settings that the names and shapes of
    weights reveal are left out: integers, except for special tokens, types of components with
    weights, and booleans whose other value gives other weights.
    """
    uses = [(setting, *setting.last_uses(executed)) for setting in _settings(model)]
    ranked = sorted(
        (use for use in uses if use[2] >= 0),
        key=lambda use: (use[0].modules == [""], _kind(use[0]), -use[1], -use[2]),
    )
    hidden: list[str] = []
    for setting, *_ in ranked:
        if len(hidden) < MAX_SETTINGS and not _is_revealed(model, setting):
            hidden.append(str(setting))
    return hidden


def _kind(setting: _Setting) -> int:
    if isinstance(setting.value, float):
        return 0
    if isinstance(setting.value, bool) or setting.path.endswith(".type"):
        return 1
    return 2 if isinstance(setting.value, str) else 3


def _settings(model: Model) -> Iterator[_Setting]:
    components = {
        row["path"]: row["at"]
        for row in model.component_paths
        if row["at"] and row["path"].startswith("model")
    }
    for path, value in _values((model.spec or {}).get("model"), "model"):
        owner = max((p for p in components if f"{path}.".startswith(f"{p}.")), key=len)
        yield _Setting(path, value, components[owner], path.removeprefix(owner).split(".")[1:-1])


def _values(node: Any, path: str) -> Iterator[tuple[str, bool | float | str | None]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key not in _TRAINING_KEYS:
                yield from _values(value, f"{path}.{key}")
    elif isinstance(node, (bool, float, str)) or path.endswith(_SPECIAL_TOKENS):
        yield path, node


def _is_revealed(model: Model, setting: _Setting) -> bool:
    """Return whether another value would have changed the names or shapes of the weights."""
    if setting.path.endswith(".type"):
        module = model.get_submodule(setting.modules[0])
        return any(True for _ in module.parameters())
    if not isinstance(setting.value, bool):
        return False
    override = f"{setting.path}={str(not setting.value).lower()}"
    try:
        spec = validate_spec(model.spec or {}, overrides=[override])
        other = attach_metadata(build_on_meta(spec), spec)
    except ZooError:  # the other value is not valid here
        return True
    return _shapes(other) != _shapes(model)


def _shapes(model: Model) -> dict[str, Sequence[int]]:
    return {name: tuple(tensor.shape) for name, tensor in named_tensors(model).items()}
