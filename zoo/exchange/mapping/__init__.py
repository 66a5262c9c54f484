"""Maps: rules that convert the tensors of another library to the parameters of a model."""

from zoo.exchange.mapping.map_file import read_map
from zoo.exchange.mapping.map_schema import OPERATIONS
from zoo.exchange.mapping.originals import Originals
from zoo.exchange.mapping.planner import plan_tensors
from zoo.exchange.mapping.rules import TensorMap
from zoo.exchange.mapping.tensor_plan import TensorJob, TensorPlan

__all__ = [
    "OPERATIONS",
    "Originals",
    "TensorJob",
    "TensorMap",
    "TensorPlan",
    "plan_tensors",
    "read_map",
]
