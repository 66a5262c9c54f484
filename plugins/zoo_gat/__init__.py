"""Veličković et al. 2018: graph attention networks; classifiers of nodes and of graphs."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Encoder, Scorer, hookimpl
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2
from zoo_gat.graph_attention import GraphAttention
from zoo_gat.graph_classifier import GraphClassifier
from zoo_gat.node_classifier import NodeClassifier


@hookimpl
def zoo_components() -> Sequence[type[Scorer] | type[Encoder] | type[Model]]:
    return [Gat, GatV2, GraphAttention, GraphClassifier, NodeClassifier]
