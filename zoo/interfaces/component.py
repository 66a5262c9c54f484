"""Component: the base class of every kind, and its entry in the registry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from zoo.interfaces.signature import parameter_names


class Component:
    """Base class of every kind. The constructor's signature is the component's schema.

    Constructors are keyword-only and typed, without ``*args`` or ``**kwargs``.
    """

    kind: ClassVar[str]
    """The kind, set by the interface."""
    name: ClassVar[str]
    """The name that specs use."""
    version: ClassVar[int] = 1
    """Increased when parameters or their meaning change; artifacts record it."""
    paper: ClassVar[str] = ""
    """The publication: authors, year, title, and a link if there is one."""
    widths: ClassVar[tuple[str, ...]] = ()
    """Attributes of the built component that set the widths of other parts; error messages about
    conflicting widths refer to them."""
    test_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters for the laws, for those whose automatically chosen small values are not valid."""

    def extra_repr(self) -> str:
        """Return the constructor parameters that are plain attributes, for the repr of a module."""
        values = {name: getattr(self, name, None) for name in parameter_names(type(self))}
        plain = (bool, int, float, str, tuple, list)
        return ", ".join(f"{k}={v!r}" for k, v in values.items() if isinstance(v, plain))

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Convert the content of an older artifact from ``version`` to ``version + 1``.

        Called once for each version. Nested components are migrated first.

        Args:
            version: the version to convert from.
            params: the component's mapping in the spec, without the key 'type'.
            tensors: the component's tensors, by their names inside the component.
        """
        raise NotImplementedError


def rename_params(params: dict[str, Any], **renames: str) -> None:
    """Rename keys of a part's parameters in place, for use in `Component.migrate`."""
    for old, new in renames.items():
        if old in params:
            params[new] = params.pop(old)


@dataclass(frozen=True)
class Entry:
    """A registered component: the class and the plugin that provides it."""

    cls: type[Component]
    plugin: str
    distribution: str
    distribution_version: str

    @property
    def kind(self) -> str:
        return self.cls.kind

    @property
    def name(self) -> str:
        return self.cls.name

    @property
    def reference(self) -> str:
        """The qualified name, ``plugin:name``."""
        return f"{self.plugin}:{self.name}"

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, on one line."""
        paragraph = (inspect.getdoc(self.cls) or "").split("\n\n")[0]
        return " ".join(paragraph.split())

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "name": self.name,
            "version": self.cls.version,
            "plugin": self.plugin,
            "distribution": self.distribution,
            "paper": self.cls.paper,
            "summary": self.summary,
        }
