"""All laws on all benchmarks, and a benchmark that breaks each of them."""

import pytest
from broken_benchmarks import BROKEN

from zoo.testing.run import run_law
from zoo_lab.bench.laws import benchmark_cases
from zoo_lab.bench.registered import benchmarks

CASES = [case for entry in benchmarks() for case in benchmark_cases(entry.cls)]
SLOW_VARIANTS = {"checked-results", "peers-run"}


def _parameter(case):
    is_slow = case.law.name == "bounded-cost" or (
        case.config.label and case.law.name in SLOW_VARIANTS
    )
    return pytest.param(case, id=str(case), marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_benchmark_satisfies_the_law(case):
    case.run()


def _outcome(name, benchmark):
    case = next(case for case in benchmark_cases(benchmark) if case.law.name == name)
    return run_law(case.law, case.config)


@pytest.mark.parametrize(
    ("law", "broken", "valid"), BROKEN, ids=[f"{law}-{cls.__name__}" for law, cls, _ in BROKEN]
)
def test_the_law_fails_only_for_the_broken_benchmark(law, broken, valid):
    assert _outcome(law, valid).status == "passed"
    assert _outcome(law, broken).status == "failed"
