"""Workers run several tasks each; one that fails or dies stops nothing."""

import fcntl
import multiprocessing
import signal
import time

import pytest
from pool_kit import work

from zoo.training.interruption import Terminated, raise_on_termination
from zoo_lab.process_pool import run_in_workers


def test_a_worker_is_used_again_unless_its_state_is_unknown(tmp_path):
    kinds = ["fine", "error", "bug", "crash", "fine"]
    tasks = [(kind, tmp_path / f"{index}") for index, kind in enumerate(kinds)]
    outcomes = list(run_in_workers(tasks, work, 1))
    assert [outcome.task for outcome in outcomes] == tasks
    assert [outcome.problem for outcome in outcomes] == [
        None,
        "the spec is wrong",
        "RuntimeError: the device is lost",
        "the process ended with exit code 7",
        None,
    ]
    first, second, third, fourth, fifth = ((tmp_path / str(i)).read_text() for i in range(5))
    assert first == second == third
    assert len({third, fourth, fifth}) == 3


def test_no_task_is_started_after_the_deadline(tmp_path):
    tasks = [("fine", tmp_path / "0")]
    assert list(run_in_workers(tasks, work, 2, deadline=time.monotonic())) == []
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_takes_too_long_is_stopped_and_the_next_one_is_started(tmp_path):
    tasks = [("endless", tmp_path / "0"), ("endless", tmp_path / "1")]
    outcomes = list(run_in_workers(tasks, work, 1, max_seconds=0.05))
    assert [outcome.task for outcome in outcomes] == tasks
    assert [outcome.problem for outcome in outcomes] == ["stopped after 0.05 s"] * 2


def test_processes_of_a_worker_with_a_time_limit_end_with_it(tmp_path):
    (outcome,) = run_in_workers([("child", tmp_path / "0")], work, 1, max_seconds=600)
    assert outcome.problem == "the process ended with exit code 7"
    with (tmp_path / "0.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for the end of the child
    assert not (tmp_path / "0.survived").exists()


def test_sigterm_ends_the_workers_once(tmp_path):
    tasks = [(kind, tmp_path / kind) for kind in ("endless", "fine")]
    before = signal.getsignal(signal.SIGTERM)

    def run():
        try:
            for outcome in run_in_workers(tasks, work, 2):
                assert outcome.task == tasks[1]
                signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Terminated) as caught, raise_on_termination():
        run()
    assert caught.value.exit_code == 143
    assert multiprocessing.active_children() == []
    assert signal.getsignal(signal.SIGTERM) is before
