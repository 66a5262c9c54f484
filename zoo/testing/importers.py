"""An importer under test."""

from __future__ import annotations

from dataclasses import dataclass

from zoo.interfaces.importer import Importer


@dataclass(frozen=True)
class ImporterConfiguration:
    """An importer, for laws; the counterpart of a `Configuration` of a component."""

    importer: Importer
    kind: str = "importer"
    label: str = ""

    @property
    def name(self) -> str:
        return self.importer.name
