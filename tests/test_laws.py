"""All laws on all configurations of all registered components."""

import pytest

from zoo.registry.component_registry import default_registry
from zoo.testing import cases

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_component_satisfies_the_law(case):
    case.run()


def test_every_registered_component_has_cases():
    registered = {(entry.kind, entry.name) for entry in default_registry().components()}
    registered |= {("importer", importer.name) for importer in default_registry().importers}
    tested = {(case.config.kind, case.config.name) for case in CASES}
    assert tested == registered
