"""The laws as pytest parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zoo.errors import RegistryError, suggest
from zoo.interfaces import Component
from zoo.registry.component_registry import default_registry
from zoo.testing.configuration import Configuration, configurations
from zoo.testing.law import Law
from zoo.testing.laws import LAWS
from zoo.testing.run import rejection_reason, run_law


@dataclass(frozen=True)
class Case:
    """One law on one configuration of one component: ``case.run()`` fails if it is broken."""

    config: Configuration
    law: Law

    def __str__(self) -> str:
        cls = self.config.cls
        where = f"[{self.config.label}]" if self.config.label else ""
        return f"{cls.kind}-{cls.name}{where}-{self.law.name}"

    def run(self) -> None:
        import pytest  # the command line runs laws where pytest is not installed

        outcome = run_law(self.law, self.config)
        if outcome.status == "skipped":
            pytest.skip(outcome.message)
        if outcome.status == "failed":
            pytest.fail(f"{self}: {self.law.statement} {outcome.message}", pytrace=False)


def cases(*, plugin: str | None = None) -> list[Case]:
    """All laws over all that is registered, or over what one plugin offers.

    ``@pytest.mark.parametrize("case", zoo.testing.cases(plugin="mine"), ids=str)``
    """
    registry = default_registry()
    chosen = [entry for entry in registry.components() if plugin in (None, entry.plugin)]
    if not chosen:
        names = {entry.plugin for entry in registry.components()}
        raise RegistryError(
            f"no plugin named '{plugin}' offers components{suggest(str(plugin), names)}"
        )
    return [case for entry in chosen for case in component_cases(entry.cls)]


def component_cases(component: type[Component]) -> Iterator[Case]:
    """All laws over the configurations of one component that it does not refuse."""
    for index, config in enumerate(configurations(component)):
        if index == 0 or rejection_reason(config) is None:
            for law in LAWS[component.kind]:
                yield Case(config, law)
