"""Accelerations of gat."""

from collections.abc import Sequence

from zoo.plugin import Acceleration
from zoo_fast.gat.edge_attentions import EdgeAttentionFused
from zoo_fast.gat.edge_lists import KeptEdges
from zoo_fast.gat.projections import HeadProjections, SparseProjections

ACCELERATIONS: Sequence[type[Acceleration]] = (
    EdgeAttentionFused,
    SparseProjections,
    HeadProjections,
    KeptEdges,
)
