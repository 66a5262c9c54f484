"""Laws as pytest parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zoo.errors import RegistryError, suggest
from zoo.interfaces import Component
from zoo.registry.component_registry import default_registry
from zoo.testing.configuration import Configuration, configurations
from zoo.testing.importers import ImporterConfiguration
from zoo.testing.law import Law
from zoo.testing.laws import IMPORTER_LAWS
from zoo.testing.run import laws_for, rejection_reason, run_law


@dataclass(frozen=True)
class Case:
    """One law for one configuration; ``case.run()`` fails the test if the law is violated."""

    config: Configuration | ImporterConfiguration
    law: Law

    def __str__(self) -> str:
        where = f"[{self.config.label}]" if self.config.label else ""
        return f"{self.config.kind}-{self.config.name}{where}-{self.law.name}"

    def run(self) -> None:
        import pytest  # not needed by `zoo test-plugin`

        outcome = run_law(self.law, self.config)
        if outcome.status == "skipped":
            pytest.skip(outcome.message)
        if outcome.status == "failed":
            pytest.fail(f"{self}: {self.law.statement} {outcome.message}", pytrace=False)


def cases(*, plugin: str | None = None) -> list[Case]:
    """Return all laws for all registered components and importers, or for those of one plugin.

    ``@pytest.mark.parametrize("case", zoo.testing.cases(plugin="mine"), ids=str)``
    """
    registry = default_registry()
    selected = [entry for entry in registry.components() if plugin in (None, entry.plugin)]
    importers = [i for p in registry.plugins if plugin in (None, p.name) for i in p.importers]
    if not selected and not importers:
        names = {entry.plugin for entry in registry.components()}
        raise RegistryError(
            f"no plugin named '{plugin}' has components or importers{suggest(str(plugin), names)}"
        )
    found = [case for entry in selected for case in component_cases(entry.cls)]
    configs = [ImporterConfiguration(importer) for importer in importers]
    return found + [Case(config, law) for config in configs for law in IMPORTER_LAWS]


def component_cases(component: type[Component]) -> Iterator[Case]:
    """Yield all laws for each configuration that the component accepts."""
    for index, config in enumerate(configurations(component)):
        if index == 0 or rejection_reason(config) is None:
            for law in laws_for(component, index):
                yield Case(config, law)
