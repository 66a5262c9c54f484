"""Laws of benchmarks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from zoo.interfaces.signature import parameters
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law

_CPU = torch.device("cpu")


@contextmanager
def _prepared(config: Configuration, seed: int) -> Iterator[Any]:
    """Yield a benchmark with inputs of the seed, on the CPU; compiled functions run without
    compilation."""
    benchmark = config.build()
    with torch.random.fork_rng(devices=[]), torch.compiler.set_stance("force_eager"):
        torch.manual_seed(seed)
        benchmark.prepare(_CPU)
        yield benchmark


def deferred_inputs(config: Configuration) -> None:
    """The constructor creates no tensors and modules; `prepare` does."""
    created = [name for name, value in vars(config.build()).items() if _has_memory(value)]
    assert not created, f"the constructor creates {', '.join(created)}"


def _has_memory(value: Any) -> bool:
    return isinstance(value, (Tensor, nn.Module))


def valid_declaration(config: Configuration) -> None:
    """The device type is 'cuda' or 'cpu', targets are positive, peers that have a target exist,
    values of `sweep` are valid, and floor and number of items are not negative."""
    with _prepared(config, 0) as benchmark:
        _check_declaration(config, benchmark)


def _check_declaration(config: Configuration, benchmark: Any) -> None:
    assert benchmark.device_type in ("cuda", "cpu"), f"device_type is {benchmark.device_type!r}"
    targets = [benchmark.target, benchmark.memory_target, benchmark.floor_target]
    for target in (*targets, *benchmark.peer_targets.values()):
        assert target is None or target > 0, f"a target is {target}, not a positive number"
    peers = benchmark.peers()
    assert peers, "it has no peers"
    unknown = benchmark.peer_targets.keys() - peers.keys()
    assert not unknown, f"peer_targets has {sorted(unknown)}, the peers are {sorted(peers)}"
    schema = {parameter.name: parameter for parameter in parameters(config.cls)}
    for name, values in benchmark.sweep.items():
        for point in values:
            given = point if isinstance(point, Mapping) else {name: point}
            for key, value in given.items():
                assert key in schema, f"sweep has {key!r}, which is not a parameter"
                errors = schema[key].validate(value)
                assert not errors, f"sweep has {key}={value!r}: {errors[0][1]}"
    for amount in benchmark.floor():
        assert 0 <= amount < math.inf, f"the floor has {amount}"
    items = benchmark.items()
    if items is not None:
        assert items[0] > 0, f"the number of items is {items[0]}"


def checked_results(config: Configuration) -> None:
    """`check` passes for two seeds, before and after the computation has run."""
    for seed in (0, 1):
        with _prepared(config, seed) as benchmark:
            for _ in range(2):
                try:
                    benchmark.check()
                except AssertionError as error:
                    raise AssertionError(f"check fails with seed {seed}: {error}") from None
                benchmark.run()


def peers_run(config: Configuration) -> None:
    """Each installed peer runs twice on the CPU; compiled functions run without compilation."""
    with _prepared(config, 0) as benchmark, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of other libraries
        for name, prepare in benchmark.peers().items():
            try:
                run = prepare()
            except ImportError:
                continue
            try:
                run()
                run()
            except Exception as error:
                raise AssertionError(f"the peer '{name}' raises {error!r}") from error


LAWS = (
    Law("deferred-inputs", deferred_inputs),  # first: `bounded-cost` runs only the constructor
    Law("valid-declaration", valid_declaration),
    Law("checked-results", checked_results),
    Law("peers-run", peers_run),
)
