"""Accelerations of the Transformer."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.transformer.captured_blocks import CapturedDecoderBlocks, CapturedEncoderBlocks
from zoo_fast.transformer.cpu_block import CpuBlock
from zoo_fast.transformer.cpu_step import PackedDecoding
from zoo_fast.transformer.deferred_output import DeferredOutput
from zoo_fast.transformer.feed_forward import GatedFeedForward, ReluFeedForward
from zoo_fast.transformer.fused_blocks import DecoderBlocks, EncoderBlocks, FusedBlock
from zoo_fast.transformer.fused_step import FusedDecoding
from zoo_fast.transformer.rms_norm import TorchRMSNorm
from zoo_fast.transformer.rotary import CpuRotary, FusedRotary

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
