"""Every integer of every shipped spec, set to 10**10: checked or rejected at little cost."""

import copy
from functools import cache, partial

import pytest

import zoo
from zoo.errors import ZooError
from zoo.registry.component_registry import default_registry
from zoo.spec.meta import skip_dynamo_import
from zoo.testing.laws.cost import run_with_limits, supports_limits

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")
HUGE = 10**10


def _integers(node, part="spec", path=()):
    """Yield the path of each integer, with the type of its part and the name of the parameter."""
    if isinstance(node, dict):
        slot = [part, *(key for key in path[-2:] if isinstance(key, str))]
        part = node.get("type", f"{part}.{slot[-1]}")
        for key, value in node.items():
            yield from _integers(value, part, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _integers(value, part, (*path, index))
    elif type(node) is int:
        yield path, (part, [key for key in path if isinstance(key, str)][-1])


@cache
def _cases():
    """Return spec name, path and parameter of every integer; small specs first."""
    names = sorted(default_registry().specs, key=lambda name: (not name.endswith("-tiny"), name))
    return [
        (name, path, parameter)
        for name in names
        for path, parameter in _integers(_resolved(name))
        if path != ("zoo",)
    ]


@cache
def _resolved(name):
    return zoo.load_spec(name).resolve()


def _check(name, path):
    data = copy.deepcopy(_resolved(name))
    node = data
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = HUGE
    try:
        with skip_dynamo_import():
            zoo.check(data)
    except ZooError as error:
        if "MemoryError" in str(error) or "operations" in str(error):
            return str(error)
    return ""


def _problems(cases):
    tasks = [partial(_check, name, path) for name, path, _ in cases]
    found = zip(cases, run_with_limits(tasks), strict=True)
    return [(name, path, problem) for (name, path, _), problem in found if problem]


@pytest.mark.slow
def test_a_huge_value_of_any_parameter_is_checked_or_rejected_at_little_cost():
    by_parameter = {}
    for case in _cases():
        by_parameter.setdefault(case[-1], case)
    assert len(by_parameter) > 100
    assert not _problems(list(by_parameter.values()))


@pytest.mark.slow
def test_a_huge_value_of_any_integer_in_a_shipped_spec_is_checked_or_rejected_at_little_cost():
    assert len(_cases()) > 700
    assert not _problems(_cases())
