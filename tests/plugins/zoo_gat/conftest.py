"""Fixtures of graph attention tests."""

import pytest
import torch

from zoo.plugin import Blueprint
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.gat import Gat
from zoo_gat.gatv2 import GatV2
from zoo_gat.graph_attention import GraphAttention
from zoo_transformer.scaled_dot import ScaledDot

SCORERS = {"gat": Gat, "gatv2": GatV2, "scaled-dot": ScaledDot}


@pytest.fixture
def encoder():
    """Return a function that builds an encoder; ``attention`` holds parameters of the attention."""

    def build(*, scorer="gat", attention=None, input_dim=5, seed=0, **params):
        attention_blueprint = Blueprint.of(
            EdgeAttention, scorer=Blueprint.of(SCORERS[scorer]), **(attention or {})
        )
        kwargs = {"layers": 1, "hidden": 4, **params}
        torch.manual_seed(seed)
        blueprint = Blueprint.of(GraphAttention, attention=attention_blueprint, **kwargs)
        return blueprint.build(input_dim=input_dim).eval()

    return build


@pytest.fixture
def graph():
    """Seven nodes with repeated edges and a self-loop; 5 has no incoming edges, 6 no edges."""
    edges = [(0, 1), (1, 0), (2, 1), (3, 1), (3, 1), (5, 4), (4, 4), (0, 3), (2, 3)]
    return torch.randn(1, 7, 5, generator=torch.Generator().manual_seed(1)), torch.tensor([edges])
