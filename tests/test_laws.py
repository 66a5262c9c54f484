"""All laws on all configurations of all registered components."""

import pytest

from zoo.registry.component_registry import default_registry
from zoo.testing import cases

CASES = cases()

# Laws that take long: on variants of a component, and in a process of their own.
SLOW_VARIANTS = {
    "compiles",
    "independent-items",
    "padding-invariance",
    "save-load",
}
SLOW_KINDS = {
    "acceleration",
    "dataset",
    "filter",
    "initialiser",
    "metric",
    "optimiser",
    "part",
    "schedule",
}


def _parameter(case):
    is_slow = (case.config.label and case.law.name in SLOW_VARIANTS) or (
        case.law.name == "bounded-cost" and case.config.kind in SLOW_KINDS
    )
    return pytest.param(case, id=str(case), marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_component_satisfies_the_law(case):
    case.run()


def test_every_registered_component_has_cases():
    registered = {(entry.kind, entry.name) for entry in default_registry().components()}
    registered |= {("importer", importer.name) for importer in default_registry().importers}
    tested = {(case.config.kind, case.config.name) for case in CASES}
    assert tested == registered
