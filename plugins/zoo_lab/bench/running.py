"""Measuring one benchmark in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from zoo.errors import one_line
from zoo_lab.bench.benchmark import Benchmark
from zoo_lab.bench.bound import bound_seconds
from zoo_lab.bench.measuring import measure
from zoo_lab.bench.memory import release_memory
from zoo_lab.bench.result import (
    NOT_INSTALLED,
    BenchmarkResult,
    Measurement,
    PeerResult,
    ResultCallback,
    Targets,
)
from zoo_lab.bench.selection import BenchmarkCase

_SEED = 0


def run_benchmark(
    case: BenchmarkCase,
    device: torch.device,
    *,
    repeats: int,
    peers: bool,
    progress: ResultCallback,
) -> BenchmarkResult:
    """Check a benchmark, measure it and its peers, each in a fresh state.

    Nothing is measured if the check fails. An error of a peer ends only that peer.

    Args:
        case: the benchmark and its parameters.
        repeats: number of measured calls of each.
        peers: whether to measure the peers.
        progress: called with the result so far after each step.
    """
    result = _empty_result(case, device)
    progress(result)
    try:
        prepare_case(case, device).check()
    except Exception as error:
        result.check = _describe(error)
        result.problem = "not measured: the check failed"
        return result
    result.check = "passed"
    benchmark = prepare_case(case, device)
    run = partial(
        measure, device=device, repeats=repeats, cpu_memory=benchmark.memory_target is not None
    )
    result.items, result.goal = benchmark.items(), benchmark.goal()
    bound = benchmark.bound()
    result.bound = bound_seconds(bound, device)
    result.bound_bytes, result.bound_operations = bound
    try:
        result.ours = run(benchmark.timed())
    except Exception as error:
        result.problem = _describe(error)
        return result
    progress(result)
    for name, prepare in benchmark.peers().items() if peers else ():
        release_memory(device)
        result.peers.append(_measure_peer(name, prepare, run))
        progress(result)
    result.versions = _versions(benchmark.packages)
    return result


def _empty_result(case: BenchmarkCase, device: torch.device) -> BenchmarkResult:
    cls = case.entry.cls
    assert issubclass(cls, Benchmark)
    return BenchmarkResult(
        benchmark=case.entry.name,
        plugin=case.entry.plugin,
        summary=case.entry.summary,
        params=dict(case.params),
        changed=dict(case.changed),
        device=str(device),
        targets=Targets(
            time=cls.target,
            memory=cls.memory_target,
            bound=cls.bound_target,
            peers=dict(cls.peer_targets),
        ),
    )


def prepare_case(case: BenchmarkCase, device: torch.device) -> Benchmark:
    """Return a new benchmark with its inputs, which are the same each time."""
    release_memory(device)
    torch.manual_seed(_SEED)
    benchmark = case.build()
    benchmark.prepare(device)
    return benchmark


def _measure_peer(
    name: str, prepare: Callable[[], Callable[[], Any]], run: Callable[..., Measurement]
) -> PeerResult:
    torch.manual_seed(_SEED)
    try:
        function = prepare()
    except ImportError as error:
        return PeerResult(name=name, problem=f"{NOT_INSTALLED}: {one_line(str(error))}")
    except Exception as error:
        return PeerResult(name=name, problem=_describe(error))
    try:
        return PeerResult(name=name, measurement=run(function))
    except Exception as error:
        return PeerResult(name=name, problem=_describe(error))


def _describe(error: Exception) -> str:
    """Return the type and the first line of an error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = NOT_INSTALLED
    return found
