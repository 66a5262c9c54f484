"""Maps: rules that convert the tensors of another library to the parameters of a model."""

from zoo_exchange.mapping.map_file import read_map
from zoo_exchange.mapping.map_schema import OPERATIONS
from zoo_exchange.mapping.originals import Originals
from zoo_exchange.mapping.planner import plan_tensors
from zoo_exchange.mapping.rules import TensorMap
from zoo_exchange.mapping.tensor_plan import TensorJob, TensorPlan

__all__ = [
    "OPERATIONS",
    "Originals",
    "TensorJob",
    "TensorMap",
    "TensorPlan",
    "plan_tensors",
    "read_map",
]
