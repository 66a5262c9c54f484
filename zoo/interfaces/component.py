"""What all parts share: a name, a version, a paper; and who provides them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


class Component:
    """Base of every kind. The constructor's signature is the part's schema.

    Constructors are keyword-only and typed, with no ``*args`` or ``**kwargs``.
    """

    kind: ClassVar[str]
    """The kind, set by the interface."""
    name: ClassVar[str]
    """The name a spec uses."""
    version: ClassVar[int] = 1
    """Raised when parameters or meaning change; artifacts record it."""
    paper: ClassVar[str] = ""
    """Where the idea was published: authors, year, title, and a link if there is one."""
    widths: ClassVar[tuple[str, ...]] = ()
    """Attributes of a built part that size its neighbours; traced when widths conflict."""
    test_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters for the laws, where a small guess from the signature won't do."""

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an artifact of an older version holds, as the version after it would have it.

        Called once for each step, from ``version`` to ``version + 1``, with the part's node of
        the spec (without its type) and the tensors under its place in the model, by the names
        they have there. Parts inside this one are migrated before it.
        """
        raise NotImplementedError


def rename_params(params: dict[str, Any], **renames: str) -> None:
    """Rename keys of a part's parameters in place, for use in `Component.migrate`."""
    for old, new in renames.items():
        if old in params:
            params[new] = params.pop(old)


@dataclass(frozen=True)
class Entry:
    """A component as registered: the class and the plugin that offers it."""

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
        """The name no other plugin can take: ``plugin:name``."""
        return f"{self.plugin}:{self.name}"

    @property
    def summary(self) -> str:
        """The docstring's first sentence, on one line."""
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
