"""Sequence-to-sequence model."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import hookimpl
from zoo_seq2seq.seq2seq import Seq2Seq


@hookimpl
def zoo_components() -> Sequence[type[Model]]:
    return [Seq2Seq]
