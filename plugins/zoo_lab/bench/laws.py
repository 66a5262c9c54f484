"""Laws of benchmarks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from zoo.errors import SpecError
from zoo.interfaces.signature import parameters
from zoo.registry.blueprint import Blueprint
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.document import document_from_data
from zoo.spec.reader import SpecReader
from zoo.testing.configuration import Configuration, configurations
from zoo.testing.law import Law
from zoo.testing.laws.common import check_summary_and_arguments, valid_schema
from zoo.testing.laws.cost import bounded_cost_law
from zoo.testing.run import Case
from zoo_lab.bench.benchmark import Benchmark

_CPU = torch.device("cpu")


class BenchmarkConfiguration(Configuration):
    """One configuration of a benchmark, which is not a kind that specs can name."""

    def blueprint(self) -> Blueprint[Any]:
        document = document_from_data(dict(self.params))
        reader = SpecReader(document, ComponentRegistry())
        blueprint = reader.part(self.cls, document.data)
        if blueprint is None or reader.problems:
            raise SpecError(reader.problems)
        return blueprint


def benchmark_cases(cls: type[Benchmark]) -> Iterator[Case]:
    """Yield the laws for each configuration of a benchmark, as parameters of a test.

    ``@pytest.mark.parametrize("case", benchmark_cases(MyBenchmark), ids=str)``
    """
    for index, found in enumerate(configurations(cls)):
        config = BenchmarkConfiguration(found.cls, found.params, found.overrides)
        yield from (Case(config, law) for law in LAWS if index == 0 or not law.per_class)


def documented(config: Configuration) -> None:
    """The docstring has a first sentence and every argument."""
    check_summary_and_arguments(config.cls)


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
    values of `sweep` are valid, and bound and number of items are not negative."""
    with _prepared(config, 0) as benchmark:
        _check_declaration(config, benchmark)


def _check_declaration(config: Configuration, benchmark: Any) -> None:
    assert benchmark.device_type in ("cuda", "cpu"), f"device_type is {benchmark.device_type!r}"
    targets = [benchmark.target, benchmark.memory_target, benchmark.bound_target]
    targets += [benchmark.goal().seconds, benchmark.goal().ratio]
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
    for amount in benchmark.bound():
        assert 0 <= amount < math.inf, f"the bound has {amount}"
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


_RUNNING = (
    Law("deferred-inputs", deferred_inputs),  # first: `bounded-cost` runs only the constructor
    Law("valid-declaration", valid_declaration),
    Law("checked-results", checked_results),
    Law("peers-run", peers_run),
)
LAWS = (
    Law("documented", documented, per_class=True),
    Law("valid-schema", valid_schema, per_class=True),
    *_RUNNING,
    bounded_cost_law(_RUNNING),
)
