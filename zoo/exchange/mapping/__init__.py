"""A small language for weights: how the tensors of another library become those of a model."""

from zoo.exchange.mapping.map_file import OPERATIONS, read_map
from zoo.exchange.mapping.planning import Job, Plan, plan
from zoo.exchange.mapping.rules import Map

__all__ = ["OPERATIONS", "Job", "Map", "Plan", "plan", "read_map"]
