"""Conversion of low-rank matrices and vectors by the map of the weights."""

import pytest
import torch

import zoo
from zoo.interfaces.tensors import TensorMeta
from zoo_exchange.mapping import plan_tensors, read_map
from zoo_exchange.weight_converter import PlanConverter

MAP = {
    "zoo": 1,
    "rename": {"same.weight": "same.weight", "table.weight": "table.weight"},
    "convert": [
        {"ours": "{p:q|k}.weight", "theirs": "joined.weight", "do": ["transpose", "split"]}
    ],
}
SHAPES = {"joined.weight": (4, 6), "same.weight": (5, 3), "table.weight": (7, 4)}
OURS = {
    "q.weight": (3, 4),
    "k.weight": (3, 4),
    "same.weight": (5, 3),
    "table.weight": (7, 4),
}


def _metas(shapes):
    return {name: TensorMeta(shape, torch.float32) for name, shape in shapes.items()}


@pytest.fixture
def to_zoo():
    plan = plan_tensors(read_map(MAP), _metas(SHAPES), _metas(OURS))
    return PlanConverter(plan, _metas(SHAPES), frozenset({"table"}), to_zoo=True)


@pytest.fixture
def from_zoo():
    plan = plan_tensors(read_map(MAP).inverse(), _metas(OURS), None)
    return PlanConverter(plan, _metas(OURS), frozenset({"table"}), to_zoo=False)


def test_a_joined_and_transposed_weight_shares_one_factor(to_zoo):
    A, B = torch.randn(2, 4), torch.randn(6, 2)
    found = to_zoo.low_rank({"joined": (A, B)})
    for name, part in (("q", B[:3]), ("k", B[3:])):
        torch.testing.assert_close(found[name], (A, part))
    assert to_zoo.transposed == {"joined.weight"}


def test_the_conversion_back_keeps_the_rank_only_with_a_common_factor(from_zoo):
    A, B, C = torch.randn(2, 4), torch.randn(3, 2), torch.randn(3, 2)
    found = from_zoo.low_rank({"q": (A, B), "k": (A, C)})
    torch.testing.assert_close(found, {"joined": (A, torch.cat([B, C]))})
    (single,) = from_zoo.low_rank({"k": (A, C)}).values()
    torch.testing.assert_close(single, (A, torch.cat([torch.zeros(3, 2), C])))
    for rank in (2, 1):
        D, E = torch.randn(rank, 4), torch.randn(3, rank)
        ((joined_A, joined_B),) = from_zoo.low_rank({"q": (A, B), "k": (D, E)}).values()
        torch.testing.assert_close(joined_A, torch.cat([A, D]))
        torch.testing.assert_close(joined_B, torch.block_diag(B, E))


@pytest.mark.parametrize("zero", [False, True])
def test_tables_and_equal_weights_keep_their_factors(to_zoo, zero):
    factors = {"same": (torch.randn(2, 3), torch.randn(5, 2))}
    factors["table"] = (torch.randn(2, 7) * (not zero), torch.randn(4, 2))
    torch.testing.assert_close(to_zoo.low_rank(factors), factors)


def test_vectors_of_outputs_and_inputs(to_zoo, from_zoo):
    outputs, inputs = torch.randn(6), torch.randn(4)
    found = to_zoo.outputs({"joined": outputs})
    torch.testing.assert_close(found, {"q": outputs[:3], "k": outputs[3:]})
    torch.testing.assert_close(to_zoo.inputs({"joined": inputs}), {"q": inputs, "k": inputs})
    torch.testing.assert_close(from_zoo.outputs(found), {"joined": outputs})
    with pytest.raises(zoo.ZooError, match="k has no adapter"):
        from_zoo.outputs({"q": outputs[:3]})
    filled = from_zoo.outputs({"q": outputs[:3]}, missing=1.0)
    torch.testing.assert_close(filled, {"joined": torch.cat([outputs[:3], torch.ones(3)])})


def test_unknown_modules_are_rejected(to_zoo):
    with pytest.raises(zoo.ZooError, match=r"has no tensor 'other\.weight'"):
        to_zoo.low_rank({"other": (torch.randn(2, 4), torch.randn(4, 2))})
