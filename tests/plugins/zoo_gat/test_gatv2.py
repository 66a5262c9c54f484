import pytest
import torch

from zoo import SpecError
from zoo.plugin import Blueprint
from zoo_gat.gatv2 import GatV2


def test_score_has_known_values():
    scorer = GatV2(query_dim=2, key_dim=2).double()
    scorer.load_state_dict({"a": torch.tensor([2.0, -1.0])})
    query = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    key = torch.tensor([[1.0, 2.0], [-3.0, 0.0]], dtype=torch.float64)
    # q + k is (2, 3) and (-2, 1)
    expected = torch.tensor([[4.0 - 3.0, -0.2 * 2 * 2 - 1.0]], dtype=torch.float64)
    torch.testing.assert_close(scorer(query, key), expected)


def test_unequal_widths_raise():
    with pytest.raises(SpecError, match=r"gatv2.*query_dim is 4, key_dim is 6"):
        Blueprint.of(GatV2).build(query_dim=4, key_dim=6)


def test_highest_key_depends_on_the_query():
    """Dynamic attention, which GAT cannot express (Brody et al. 2022, theorem 1)."""
    scorer = GatV2(query_dim=2, key_dim=2, slope=0.0)
    scorer.load_state_dict({"a": torch.tensor([1.0, 1.0])})
    query = torch.tensor([[0.0, -9.0], [-9.0, 0.0]])
    key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert scorer(query, key).argmax(dim=-1).tolist() == [0, 1]


def test_state_dict_shapes():
    shapes = {k: tuple(v.shape) for k, v in GatV2(query_dim=3, key_dim=3).state_dict().items()}
    assert shapes == {"a": (3,)}
