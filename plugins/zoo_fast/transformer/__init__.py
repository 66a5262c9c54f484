"""Accelerations of the Transformer."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.generation.lengths import source_limit, step_limit
from zoo_fast.transformer.captured_blocks import CapturedDecoderBlocks, CapturedEncoderBlocks
from zoo_fast.transformer.cpu_block import CpuBlock
from zoo_fast.transformer.cpu_step import PackedDecoding
from zoo_fast.transformer.deferred_output import DeferredOutput
from zoo_fast.transformer.feed_forward import GatedFeedForward, ReluFeedForward
from zoo_fast.transformer.fused_blocks import DecoderBlocks, EncoderBlocks, FusedBlock
from zoo_fast.transformer.fused_step import FusedDecoding
from zoo_fast.transformer.length_limits import max_padded_source, max_positions
from zoo_fast.transformer.rms_norm import TorchRMSNorm
from zoo_fast.transformer.rotary import CpuRotary, FusedRotary
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder

step_limit.register(TransformerDecoder)(max_positions)
source_limit.register(TransformerEncoder)(max_padded_source)

ACCELERATIONS: Sequence[type[Acceleration]] = (
    FusedBlock,
    CpuBlock,
    CapturedEncoderBlocks,
    CapturedDecoderBlocks,
    EncoderBlocks,
    DecoderBlocks,
    ReluFeedForward,
    GatedFeedForward,
    FusedRotary,
    CpuRotary,
    TorchRMSNorm,
    DeferredOutput,
    FusedDecoding,
    PackedDecoding,
)
