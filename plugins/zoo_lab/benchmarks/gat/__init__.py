"""Benchmarks of graph attention."""

from zoo_lab.benchmarks.gat.benchmark_gat_batch import GatBatch
from zoo_lab.benchmarks.gat.benchmark_gat_layer import GatLayer
from zoo_lab.benchmarks.gat.benchmark_gat_layer_cpu import GatLayerCpu
from zoo_lab.benchmarks.gat.benchmark_gatv2_layer import GatV2Layer

BENCHMARKS = (
    GatBatch,
    GatLayer,
    GatV2Layer,
    GatLayerCpu,
)
