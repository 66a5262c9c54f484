"""A small language for weights: how the tensors of another library become those of a model."""

from zoo.exchange.mapping.map_file import OPERATIONS, read_map
from zoo.exchange.mapping.planner import Job, Plan, plan
from zoo.exchange.mapping.rules import TensorMap

__all__ = ["OPERATIONS", "Job", "Plan", "TensorMap", "plan", "read_map"]
