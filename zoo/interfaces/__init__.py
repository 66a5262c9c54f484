"""The interface of each kind, one file per kind."""

from zoo.interfaces.acceleration import Acceleration, Call, Declined
from zoo.interfaces.adapter import Adapter, AdapterLayer
from zoo.interfaces.alignment import Alignment
from zoo.interfaces.backbone import Backbone
from zoo.interfaces.batch_schema import BatchSchema, TensorSchema
from zoo.interfaces.component import Component, Entry, rename_params
from zoo.interfaces.contracts import OutputRequirement, OutputSchema
from zoo.interfaces.data import (
    AlignmentContext,
    Batch,
    GenerationOutput,
    Mask,
    Memory,
    Outputs,
    Samples,
    Selection,
    full_precision,
)
from zoo.interfaces.dataset import Audio, Dataset, Example, Examples, Field, Values
from zoo.interfaces.decoder import Decoder, State
from zoo.interfaces.embedding import Embedding
from zoo.interfaces.encoder import Encoder
from zoo.interfaces.filter import Filter
from zoo.interfaces.initialiser import ROLES, Initialiser, Role, Weight
from zoo.interfaces.metric import Metric
from zoo.interfaces.model import GenerationInputs, Model
from zoo.interfaces.objective import Objective
from zoo.interfaces.optimiser import Optimiser
from zoo.interfaces.part import Part
from zoo.interfaces.position import Position
from zoo.interfaces.preprocessor import Array, Arrays, Preprocessor
from zoo.interfaces.program import Program, ProgramRun
from zoo.interfaces.sampler import FrameSampler, Sampler, SearchConfig, SearchState
from zoo.interfaces.schedule import Schedule
from zoo.interfaces.scorer import Scorer

KINDS: dict[str, type[Component]] = {
    interface.kind: interface
    for interface in (
        Backbone,
        Embedding,
        Position,
        Scorer,
        Alignment,
        Encoder,
        Decoder,
        Initialiser,
        Filter,
        Sampler,
        Objective,
        Metric,
        Model,
        Part,
        Dataset,
        Preprocessor,
        Optimiser,
        Schedule,
        Acceleration,
        Adapter,
    )
}

__all__ = [
    "KINDS",
    "ROLES",
    "Acceleration",
    "Adapter",
    "AdapterLayer",
    "Alignment",
    "AlignmentContext",
    "Array",
    "Arrays",
    "Audio",
    "Backbone",
    "Batch",
    "BatchSchema",
    "Call",
    "Component",
    "Dataset",
    "Declined",
    "Decoder",
    "Embedding",
    "Encoder",
    "Entry",
    "Example",
    "Examples",
    "Field",
    "Filter",
    "FrameSampler",
    "GenerationInputs",
    "GenerationOutput",
    "Initialiser",
    "Mask",
    "Memory",
    "Metric",
    "Model",
    "Objective",
    "Optimiser",
    "OutputRequirement",
    "OutputSchema",
    "Outputs",
    "Part",
    "Position",
    "Preprocessor",
    "Program",
    "ProgramRun",
    "Role",
    "Sampler",
    "Samples",
    "Schedule",
    "Scorer",
    "SearchConfig",
    "SearchState",
    "Selection",
    "State",
    "TensorSchema",
    "Values",
    "Weight",
    "full_precision",
    "rename_params",
]
