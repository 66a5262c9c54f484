"""Ratios and targets of a result."""

import pytest
from benchmark_kit import measurement, result

from zoo_lab.bench.result import BenchmarkResult, Goal, Targets

PEERS = {"slow": measurement(8.0, 100), "fast": measurement(4.0, 300)}


def test_ratios_refer_to_the_peer_with_the_shortest_time():
    found = result(measurement(2.0, 150), peers=PEERS, bound=0.5)
    assert found.best_peer == "fast"
    assert found.speedup == 2.0
    assert found.memory_ratio == 0.5
    assert found.bound_ratio == 0.25


def test_each_target_is_compared():
    targets = Targets(time=2.0, memory=0.4, bound=0.3, peers={"slow": 3.5, "other": 1.0})
    found = result(measurement(2.0, 150), peers=PEERS, bound=0.5, targets=targets)
    assert found.met == {"time": True, "memory": False, "floor": False, "slow": True}


def test_targets_are_not_compared_with_other_parameters():
    found = result(measurement(2.0), peers=PEERS, targets=Targets(time=2.0), changed={"size": 3})
    assert found.met == {}


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal(seconds=2.5), True),
        (Goal(seconds=1.5), False),
        (Goal(ratio=1.9), True),
        (Goal(ratio=2.1), False),
        (Goal(seconds=2.5, ratio=2.1), False),
    ],
)
def test_a_goal_is_compared_with_any_parameters(goal, met):
    found = result(measurement(2.0), peers=PEERS, goal=goal, changed={"size": 3})
    assert found.met == {"goal": met}


@pytest.mark.parametrize("peers", [{}, {"fails": None}])
def test_without_measured_peers_there_is_no_ratio(peers):
    found = result(measurement(2.0, 1), peers=peers, targets=Targets(time=2.0, memory=1.0))
    assert (found.best_peer, found.speedup, found.memory_ratio, found.met) == (None, None, None, {})


def test_json_has_the_ratios_and_is_read_back():
    found = result(measurement(2.0, 150), peers=PEERS, targets=Targets(time=3.0))
    text = found.model_dump_json()
    assert '"speedup":2.0' in text
    assert '"met":{"time":false}' in text
    assert BenchmarkResult.model_validate_json(text) == found
