"""Accelerations of recurrent."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.generation.lengths import UNLIMITED, step_limit
from zoo_fast.recurrent.decoders import (
    AttentiveSequence,
    LuongSequence,
    PlainSequence,
    PointerSequence,
)
from zoo_fast.recurrent.stacks import StackKernels
from zoo_recurrent.attentive_rnn import AttentiveRNN
from zoo_recurrent.hierarchical_decoder import HierarchicalDecoder
from zoo_recurrent.luong_rnn import LuongRNN
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_recurrent.pointer_rnn import PointerRNN

for decoder in (AttentiveRNN, HierarchicalDecoder, LuongRNN, PlainRNN, PointerRNN):
    step_limit.register(decoder)(lambda _: UNLIMITED)

ACCELERATIONS: Sequence[type[Acceleration]] = (
    StackKernels,
    PlainSequence,
    AttentiveSequence,
    LuongSequence,
    PointerSequence,
)
