"""The zoo: attention models made of parts you can see, swap, trust and share.

Only public names live here. Each is imported when first used, so that ``import zoo`` is free
and the command line answers before torch is loaded.
"""

from typing import TYPE_CHECKING, Any

_HOMES = {
    "zoo.artifact": ("save", "verify"),
    "zoo.attention": (
        "Attention",
        "Recorded",
        "choosing",
        "drawing",
        "fused_softmax",
        "recording",
        "refuse_drawing",
    ),
    "zoo.blueprint": ("Blueprint",),
    "zoo.composition": ("check", "components", "compose"),
    "zoo.decoding": ("decode", "speak", "stream"),
    "zoo.errors": (
        "ArtifactError",
        "HubError",
        "MissingExtra",
        "RegistryError",
        "SpecError",
        "WidthConflict",
        "ZooError",
        "ZooWarning",
    ),
    "zoo.exporting": ("export_model",),
    "zoo.generation": ("generate",),
    "zoo.hookspecs": ("hookimpl",),
    "zoo.hub.models": ("load", "pull"),
    "zoo.hub.publish": ("push", "save_folder"),
    "zoo.importer": ("Importer",),
    "zoo.importing": ("import_model",),
    "zoo.interfaces": (
        "Alignment",
        "Backbone",
        "Batch",
        "Choices",
        "Decoded",
        "Decoder",
        "Embedding",
        "Encoder",
        "Filter",
        "FrameSampler",
        "Look",
        "Mask",
        "Memory",
        "Metric",
        "Model",
        "Objective",
        "Outputs",
        "Position",
        "Sampler",
        "Scorer",
        "Search",
        "Selection",
        "Speech",
        "State",
        "Task",
        "full_precision",
    ),
    "zoo.registry": ("Registry",),
    "zoo.signature": ("Given",),
    "zoo.spec": ("Spec", "load_spec"),
    "zoo.tensors": ("Opened",),
    "zoo.vectors": ("Vectors", "vectors_of"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)

if TYPE_CHECKING:
    from zoo.artifact import save as save, verify as verify
    from zoo.attention import (
        Attention as Attention,
        Recorded as Recorded,
        choosing as choosing,
        drawing as drawing,
        fused_softmax as fused_softmax,
        recording as recording,
        refuse_drawing as refuse_drawing,
    )
    from zoo.blueprint import Blueprint as Blueprint
    from zoo.composition import check as check, components as components, compose as compose
    from zoo.decoding import decode as decode, speak as speak, stream as stream
    from zoo.errors import (
        ArtifactError as ArtifactError,
        HubError as HubError,
        MissingExtra as MissingExtra,
        RegistryError as RegistryError,
        SpecError as SpecError,
        WidthConflict as WidthConflict,
        ZooError as ZooError,
        ZooWarning as ZooWarning,
    )
    from zoo.exporting import export_model as export_model
    from zoo.generation import generate as generate
    from zoo.hookspecs import hookimpl as hookimpl
    from zoo.hub.models import load as load, pull as pull
    from zoo.hub.publish import push as push, save_folder as save_folder
    from zoo.importer import Importer as Importer
    from zoo.importing import import_model as import_model
    from zoo.interfaces import (
        Alignment as Alignment,
        Backbone as Backbone,
        Batch as Batch,
        Choices as Choices,
        Decoded as Decoded,
        Decoder as Decoder,
        Embedding as Embedding,
        Encoder as Encoder,
        Filter as Filter,
        FrameSampler as FrameSampler,
        Look as Look,
        Mask as Mask,
        Memory as Memory,
        Metric as Metric,
        Model as Model,
        Objective as Objective,
        Outputs as Outputs,
        Position as Position,
        Sampler as Sampler,
        Scorer as Scorer,
        Search as Search,
        Selection as Selection,
        Speech as Speech,
        State as State,
        Task as Task,
        full_precision as full_precision,
    )
    from zoo.registry import Registry as Registry
    from zoo.signature import Given as Given
    from zoo.spec import Spec as Spec, load_spec as load_spec
    from zoo.tensors import Opened as Opened
    from zoo.vectors import Vectors as Vectors, vectors_of as vectors_of


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'zoo' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
