"""A small language for weights: how the tensors of another library become those of a model."""

from zoo.mapping.planning import Job, Plan, plan
from zoo.mapping.reading import OPERATIONS, read_map
from zoo.mapping.rules import Map

__all__ = ["OPERATIONS", "Job", "Map", "Plan", "plan", "read_map"]
