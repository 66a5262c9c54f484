"""Alignments: softmax, hard, local, sparse, monotonic and without normalisation."""

from collections.abc import Sequence

from zoo.plugin import Alignment, hookimpl
from zoo_alignment.entmax import Entmax
from zoo_alignment.exponential import Exponential
from zoo_alignment.hard import Hard
from zoo_alignment.local_m import LocalM
from zoo_alignment.local_p import LocalP
from zoo_alignment.monotonic import Monotonic
from zoo_alignment.soft import Soft
from zoo_alignment.sparsemax import Sparsemax


@hookimpl
def zoo_components() -> Sequence[type[Alignment]]:
    return [Soft, Hard, LocalM, LocalP, Sparsemax, Entmax, Monotonic, Exponential]
