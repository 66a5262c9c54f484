"""Measuring a benchmark and its peers in this process."""

import pytest
import torch
from benchmark_kit import CPU, Peers, case
from tiny_benchmark import TinyBenchmark

from zoo_lab.bench.running import run_benchmark


def _run(cls, progress=lambda result: None, peers=True, **changed):
    return run_benchmark(case(cls, **changed), CPU, repeats=2, peers=peers, progress=progress)


def test_problems_of_peers_are_reported_and_end_nothing():
    result = _run(Peers)
    assert result.problem is None
    assert result.ours.repeats == 2
    problems = {peer.name: peer.problem for peer in result.peers}
    assert problems["fails"] == "ValueError: no such kernel"
    assert problems["not installed"] == "not installed: No module named 'no_such_package'"
    assert problems["call fails"].startswith("RuntimeError: shape")
    assert problems["torch"] is None
    assert result.best_peer == "torch"
    assert set(result.met) == {"torch"}
    assert result.versions == {"torch": torch.__version__, "no-such-package": "not installed"}


def test_nothing_is_measured_if_the_check_fails():
    class Wrong(TinyBenchmark):
        def run(self):
            return self.vector.sum()

    result = _run(Wrong)
    assert result.check.startswith("AssertionError: Scalars are not close")
    assert result.problem == "not measured: the check failed"
    assert (result.ours, result.peers) == (None, [])


def test_an_error_of_the_computation_is_reported():
    class Fails(TinyBenchmark):
        def check(self):
            pass

        def run(self):
            raise RuntimeError("out of memory")

    result = _run(Fails)
    assert (result.check, result.problem) == ("passed", "RuntimeError: out of memory")


def test_inputs_are_the_same_for_the_check_the_computation_and_the_peers():
    seen = []

    class Records(TinyBenchmark):
        def check(self):
            seen.append(self.vector.clone())

        def run(self):
            seen.append(self.vector.clone())

        def peers(self):
            return {"torch": lambda: lambda: seen.append(self.vector.clone())}

    _run(Records, size=5)
    assert len(seen) > 3
    for vector in seen:
        assert torch.equal(vector, seen[0])
        assert vector.shape == (5,)


def test_progress_has_what_was_measured_so_far():
    states = []
    _run(Peers, progress=lambda result: states.append((result.ours is not None, len(result.peers))))
    assert states == [(False, 0), (True, 0), (True, 1), (True, 2), (True, 3), (True, 4)]


def test_peers_can_be_left_out():
    result = _run(Peers, peers=False)
    assert (result.peers, result.speedup) == ([], None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_memory_on_the_gpu_is_that_of_the_computation():
    class Allocates(TinyBenchmark):
        def run(self):
            torch.empty(2**20, device="cuda")
            return self.vector.square().sum()  # a matrix product would allocate a workspace

    result = run_benchmark(
        case(Allocates), torch.device("cuda"), repeats=3, peers=True, progress=lambda result: None
    )
    assert 2**22 <= result.ours.memory < 2**22 + 2**16
    assert result.peers[0].measurement.memory < 2**16
