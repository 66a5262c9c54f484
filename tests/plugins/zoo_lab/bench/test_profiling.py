"""Profiles of benchmarks."""

from benchmark_kit import CPU, case
from tiny_benchmark import TinyBenchmark

from zoo_lab.bench.profiling import profile


def test_the_profile_names_the_operations_of_the_computation():
    assert "aten::dot" in profile(case(TinyBenchmark), CPU)
    assert "aten::cumsum" in profile(case(Sums), CPU)


class Sums(TinyBenchmark):
    def run(self):
        return self.vector.cumsum(0)
