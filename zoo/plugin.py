"""The interface for authors of plugins: kinds of components and what they exchange.

``zoo`` has what users of models need, `Model` and the errors among it; the names here are only
needed to write a component. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from zoo.lazy import lazy_exports

if TYPE_CHECKING:
    from zoo.attention import (
        Attention as Attention,
        Recorded as Recorded,
        drawing as drawing,
        fused_softmax as fused_softmax,
        refuse_drawing as refuse_drawing,
    )
    from zoo.errors import (
        MissingExtra as MissingExtra,
        RegistryError as RegistryError,
        WidthConflict as WidthConflict,
    )
    from zoo.generation import decode as decode, speak as speak, stream as stream
    from zoo.interfaces import (
        Alignment as Alignment,
        Backbone as Backbone,
        Choices as Choices,
        Component as Component,
        Decoder as Decoder,
        Embedding as Embedding,
        Encoder as Encoder,
        Filter as Filter,
        FrameSampler as FrameSampler,
        Look as Look,
        Mask as Mask,
        Memory as Memory,
        Metric as Metric,
        Objective as Objective,
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
    from zoo.interfaces.importer import Importer as Importer
    from zoo.interfaces.signature import Given as Given
    from zoo.interfaces.tensors import Opened as Opened
    from zoo.registry.blueprint import Blueprint as Blueprint
    from zoo.registry.component_registry import Registry as Registry
    from zoo.registry.hookspecs import hookimpl as hookimpl
else:
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
