"""The interface for authors of plugins: kinds of components, the data they exchange, and helpers.

``zoo`` has the names for users of models, such as `Model` and the errors; the names here are
needed to write a plugin. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from zoo.lazy import lazy_exports

if TYPE_CHECKING:
    from zoo.acceleration import (
        reference as reference,
    )
    from zoo.attention import (
        AdditiveScorer as AdditiveScorer,
        Attention as Attention,
        RecordsAttention as RecordsAttention,
        ScorerBank as ScorerBank,
        find_stochastic as find_stochastic,
        forbid_stochastic as forbid_stochastic,
    )
    from zoo.attention.heads import Linear as Linear
    from zoo.data.audio_file import audio_length as audio_length, read_audio as read_audio
    from zoo.data.files import (
        FileBytes as FileBytes,
        expand_path as expand_path,
    )
    from zoo.data.image_file import read_image as read_image
    from zoo.data.random_numbers import (
        random_integers as random_integers,
        random_numbers as random_numbers,
    )
    from zoo.data.text_lines import TextLines as TextLines
    from zoo.data.tokenizer import Tokenizer as Tokenizer
    from zoo.errors import (
        InvalidParameter as InvalidParameter,
        MissingExtra as MissingExtra,
        WidthConflict as WidthConflict,
        suggest as suggest,
        truncate as truncate,
    )
    from zoo.files import atomic_write as atomic_write
    from zoo.generation import (
        DecodeRequest as DecodeRequest,
        decode as decode,
    )
    from zoo.interfaces import (
        Acceleration as Acceleration,
        Adapter as Adapter,
        AdapterLayer as AdapterLayer,
        Alignment as Alignment,
        AlignmentContext as AlignmentContext,
        Array as Array,
        Audio as Audio,
        Backbone as Backbone,
        BatchSchema as BatchSchema,
        Call as Call,
        Component as Component,
        Dataset as Dataset,
        Declined as Declined,
        Decoder as Decoder,
        Embedding as Embedding,
        Encoder as Encoder,
        Example as Example,
        Examples as Examples,
        Field as Field,
        Filter as Filter,
        FrameSampler as FrameSampler,
        GenerationInputs as GenerationInputs,
        Initialiser as Initialiser,
        Mask as Mask,
        Memory as Memory,
        Metric as Metric,
        Objective as Objective,
        Optimiser as Optimiser,
        OutputRequirement as OutputRequirement,
        OutputSchema as OutputSchema,
        Part as Part,
        Position as Position,
        Preprocessor as Preprocessor,
        Program as Program,
        ProgramRun as ProgramRun,
        Sampler as Sampler,
        Samples as Samples,
        Schedule as Schedule,
        Scorer as Scorer,
        SearchConfig as SearchConfig,
        SearchState as SearchState,
        Selection as Selection,
        State as State,
        TensorSchema as TensorSchema,
        Values as Values,
        Weight as Weight,
        full_precision as full_precision,
        rename_params as rename_params,
    )
    from zoo.interfaces.adapter_exchange import WeightConverter as WeightConverter
    from zoo.interfaces.importer import Importer as Importer
    from zoo.interfaces.signature import FromParent as FromParent
    from zoo.interfaces.tensors import TensorReader as TensorReader
    from zoo.registry.blueprint import Blueprint as Blueprint
    from zoo.registry.hookspecs import hookimpl as hookimpl
    from zoo.registry.layers import build_layers as build_layers
else:
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
