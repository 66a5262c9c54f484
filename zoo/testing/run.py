"""Running laws on a component."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from zoo.errors import MissingExtra, RegistryError, SpecError, suggest
from zoo.interfaces import Acceleration, Component
from zoo.interfaces.importer import Importer
from zoo.registry.component_registry import default_registry
from zoo.registry.discovery import validate_component
from zoo.testing.configuration import Configuration, ImporterConfiguration, configurations
from zoo.testing.law import Law, LawViolation, NotApplicable, Outcome
from zoo.testing.laws import LAWS


def check(component: type[Component] | Importer, **params: Any) -> list[Outcome]:
    """Run all laws of the component's kind on all configurations; raise LawViolation on failure.

    With `params`, only that configuration is tested. An importer is tested on its `test_config`.
    """
    outcomes = list(run_laws(component, **params))
    if isinstance(component, type) and issubclass(component, Acceleration):
        outcomes += _missing_cases(component)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if failed:
        raise LawViolation(failed)
    return outcomes


def _missing_cases(component: type[Acceleration]) -> list[Outcome]:
    """Return a failure if an acceleration has no cases, so that most laws test nothing."""
    if any(call for dtype in component.dtypes for call in component().cases(dtype)):
        return []
    reason = "it has no cases; define the method 'cases'"
    return [Outcome(component.name, "", "same-results", "failed", reason)]


def run_laws(
    component: type[Component] | Importer, *, only: Collection[str] = (), **params: Any
) -> Iterator[Outcome]:
    """Yield the outcome of each law, including failures.

    Args:
        only: names of laws; default: all.
        params: the only configuration to test.
    """
    if isinstance(component, Importer):
        for law in importer_laws():
            if not only or law.name in only:
                yield run_law(law, ImporterConfiguration(component))
        return
    problem = validate_component(component)
    if problem:
        yield Outcome(
            getattr(component, "__name__", str(component)), "", "contract", "failed", problem
        )
        return
    for index, config in enumerate(configurations(component, **params)):
        reason = rejection_reason(config)
        if reason and index > 0:
            yield Outcome(component.name, config.label, "rejected", "skipped", reason)
            continue
        for law in laws_for(component, index):
            if not only or law.name in only:
                yield run_law(law, config)


def importer_laws() -> list[Law]:
    """Return the laws of importers, which a plugin provides."""
    modules = (name for plugin in default_registry().plugins for name in plugin.importer_laws)
    return [law for name in modules for law in importlib.import_module(name).LAWS]


def laws_for(component: type[Component], index: int) -> list[Law]:
    """Return the laws to run on the configuration with this index."""
    return [law for law in LAWS[component.kind] if index == 0 or not law.per_class]


def run_law(law: Law, config: Configuration | ImporterConfiguration) -> Outcome:
    """Run one law on one configuration, or on an importer."""

    def outcome(status: Any, message: str = "") -> Outcome:
        return Outcome(config.name, config.label, law.name, status, message)

    try:
        law.run(config)
    except (NotApplicable, MissingExtra) as reason:
        return outcome("skipped", str(reason))
    except AssertionError as error:
        return outcome("failed", _one_line(error) or law.statement)
    except Exception as error:
        if isinstance(error.__cause__, MissingExtra):
            return outcome("skipped", str(error.__cause__))
        return outcome("failed", f"{type(error).__name__}: {_one_line(error)}")
    return outcome("passed")


def rejection_reason(config: Configuration) -> str | None:
    """Return the reason for which the component rejects a configuration, or None."""
    try:
        config.build()
    except SpecError as error:
        return str(error)
    except Exception:
        return None  # a bug, which the laws report
    return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


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

    ``@pytest.mark.parametrize("case", zoo.testing.run(plugin="mine"), ids=str)``
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
    return found + [Case(config, law) for config in configs for law in importer_laws()]


def component_cases(component: type[Component]) -> Iterator[Case]:
    """Yield all laws for each configuration that the component accepts."""
    for index, config in enumerate(configurations(component)):
        if index == 0 or rejection_reason(config) is None:
            for law in laws_for(component, index):
                yield Case(config, law)
