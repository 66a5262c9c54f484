"""Matching of names takes polynomial time, and a map that takes too long is rejected."""

import re

import pytest
import torch

from zoo.errors import ZooError
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping import matcher
from zoo_exchange.mapping.matcher import MatchingWork
from zoo_exchange.mapping.pattern import Pattern
from zoo_exchange.mapping.planner import plan_tensors
from zoo_exchange.mapping.rules import Endpoint, Rule, TensorMap


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("".join(f"{{n{i}}}" for i in range(30)) + "x", "1" * 900 + "y"),
        ("{p:a|aa}" + "{p}" * 30 + "x", "a" * 60 + "y"),
        ("{p:|a}{q:|a}" * 8 + "{p}" * 10 + "x", "a" * 50 + "y"),
    ],
)
def test_a_name_that_almost_matches_takes_few_steps(text, name):
    work = MatchingWork()
    assert Pattern(text).match(name, work) is None
    assert work.steps < 300_000


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("{a}{b}", "(0|[1-9][0-9]{0,8})" * 2), ("{p:a|ab|}{q:b|bc|c}", "(ab|a|)(bc|b|c)")],
)
def test_the_same_parts_as_a_regular_expression(text, pattern):
    split = Pattern(text)._matcher.split
    for name in ("12", "105", "00", "1", "ab", "abc", "abbc", "c", "abcc", "1234567890123"):
        found = re.fullmatch(pattern, name)
        assert split(name) == (list(found.groups()) if found else None)


def test_too_many_placeholders_raise():
    with pytest.raises(ZooError, match="more than 32 placeholders"):
        Pattern(".".join(f"{{n{i}}}" for i in range(40)))


def test_a_map_that_takes_too_long_raises(monkeypatch):
    monkeypatch.setattr(matcher, "MAX_STEPS", 2_000)
    names = {f"{n}.{n}x": TensorMeta((1,), torch.float32) for n in range(100, 200)}
    pattern = Pattern("{a}{b}{c}.{d}{e}")
    rules = [Rule([Endpoint(pattern)], [Endpoint(pattern)])]
    with pytest.raises(ZooError, match="too long to match"):
        plan_tensors(TensorMap("map.yaml", rules), names, names)
