"""Every law of its kind on every configuration of every registered component."""

import pytest

from zoo.registry.component_registry import default_registry
from zoo.testing import cases

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_obeys_the_law(case):
    case.run()


def test_everything_registered_is_under_the_laws():
    registered = {(entry.kind, entry.name) for entry in default_registry().components()}
    tried = {(case.config.cls.kind, case.config.cls.name) for case in CASES}
    assert tried == registered
