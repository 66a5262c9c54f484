"""Which evaluation is the best, with one and with several monitored values."""

import json

import pytest

from zoo.training.state import RunState

LOSS = {"loss": True}
BOTH = {"loss": True, "accuracy": False}


def observe(state, lower, *rows):
    """Observe an evaluation of (loss, accuracy) at each step; return where each was the best."""
    found = []
    for loss, accuracy in rows:
        state.step += 1
        found.append(state.observe({"loss": loss, "accuracy": accuracy}, lower))
    return found


def test_one_value_must_be_better_than_its_best():
    state = RunState()
    assert observe(state, LOSS, (2.0, 0.5), (2.0, 0.9), (1.0, 0.1)) == [True, False, True]
    assert state.best["name"] == "loss"
    assert state.best["value"] == 1.0
    assert observe(state, LOSS, (1.0, 0.1), (3.0, 0.1)) == [False, False]
    assert state.stale == 2
    assert state.best_steps(3, LOSS) == [3, 4, 1]


def test_no_value_of_a_list_may_be_worse_than_its_best():
    state = RunState()
    rows = [(2.0, 0.5), (1.0, 0.4), (1.5, 0.9), (1.0, 0.9), (0.5, 0.9)]
    assert observe(state, BOTH, *rows) == [True, False, False, True, True]
    assert state.best["monitored"] == {"loss": 0.5, "accuracy": 0.9}
    assert state.best["step"] == 5


def test_patience_counts_evaluations_in_which_no_value_reaches_its_best():
    state, counts = RunState(), []
    for row in [(1.0, 0.5), (1.1, 0.4), (1.2, 0.5), (1.1, 0.4), (1.1, 0.4), (0.9, 0.1)]:
        observe(state, BOTH, row)
        counts.append(state.stale)
    assert counts == [0, 1, 0, 1, 2, 0]
    assert state.records == {"loss": 0.9, "accuracy": 0.5}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_not_finite_is_never_the_best(value):
    state = RunState()
    assert observe(state, LOSS, (value, 0.5), (3.0, 0.5), (value, 0.5)) == [False, True, False]
    assert (state.best["step"], state.stale) == (2, 1)
    assert state.best_steps(9, LOSS) == [2]
    assert state.values == {"accuracy": 0.5}
    json.dumps(state.as_json(), allow_nan=False)


def test_one_of_two_values_that_is_not_finite_is_not_the_best():
    state, nan = RunState(), float("nan")
    assert observe(state, BOTH, (2.0, nan), (nan, 0.5), (2.0, 0.5)) == [False, False, True]
    assert state.best["monitored"] == {"loss": 2.0, "accuracy": 0.5}


def test_evaluations_of_a_new_phase_are_compared_among_themselves():
    state = RunState()
    observe(state, LOSS, (1.0, 0.5), (1.5, 0.5))
    state.begin_phase()
    assert (state.stale, state.best["step"]) == (0, 1)
    assert observe(state, LOSS, (2.0, 0.5), (1.8, 0.5), (1.9, 0.5)) == [True, True, False]
    assert (state.stale, state.best["step"]) == (1, 4)
    assert state.best_steps(9, LOSS) == [4, 5, 3]


def test_the_best_step_is_first_even_if_another_has_a_lower_loss():
    state = RunState()
    observe(state, BOTH, (1.0, 0.9), (0.9, 0.5), (0.8, 0.5))
    assert state.best_steps(1, BOTH) == [1]
    assert state.best_steps(2, BOTH) == [1, 3]


@pytest.mark.parametrize("lower", [LOSS, BOTH])
def test_a_state_restored_from_json_continues_with_the_same_best(lower):
    state = RunState()
    observe(state, lower, (1.0, 0.9), (0.9, 0.5))
    restored = RunState.from_json(json.loads(json.dumps(state.as_json())))
    rows = [(1.0, 0.9), (0.9, 0.9), (2.0, 1.0)]
    assert observe(restored, lower, *rows) == observe(state, lower, *rows)
    assert restored == state


def test_a_state_of_a_checkpoint_without_records_keeps_its_best():
    best = {"name": "loss", "value": 1.0, "step": 3, "values": {"loss": 1.0, "accuracy": 0.5}}
    state = RunState.from_json({"step": 3, "best": best, "scores": {"3": 1.0}})
    assert state.best["monitored"] == {"loss": 1.0}
    assert observe(state, LOSS, (1.5, 0.9), (0.5, 0.1)) == [False, True]
