import pytest
import torch
from torch import nn

from zoo import ZooError
from zoo_positions.learned import Learned


def test_each_position_adds_its_row():
    position = Learned(dim=2, length=3)
    position.load_state_dict({"table.weight": torch.tensor([[1.0, 2], [3, 4], [5, 6]])})

    added = position.add(torch.tensor([[[10.0, 20], [30, 40]], [[0, 0], [1, 1]]]))

    assert added.tolist() == [[[11, 22], [33, 44]], [[1, 2], [4, 5]]]


def test_matches_torch_embedding():
    torch.manual_seed(0)
    position = Learned(dim=4, length=9)
    other = nn.Embedding(9, 4)
    other.load_state_dict({"weight": position.table.weight})
    states = torch.randn(2, 5, 4)

    assert torch.equal(position.add(states, offset=2), states + other(torch.arange(2, 7)))


@pytest.mark.parametrize("offset", [4, torch.tensor(4)])
def test_positions_at_an_offset_are_a_slice(offset):
    torch.manual_seed(0)
    position = Learned(dim=4, length=7)

    later = position.add(torch.zeros(1, 3, 4), offset=offset)

    assert torch.equal(later, position.add(torch.zeros(1, 7, 4))[:, 4:])


@pytest.mark.parametrize("std", [0.02, 0.5])
def test_table_is_initialised_with_std(std):
    torch.manual_seed(0)

    table = Learned(dim=50, length=100, std=std).table.weight

    assert abs(table.std().item() / std - 1) < 0.05
    assert abs(table.mean().item()) < 0.1 * std


def test_only_used_positions_have_gradients():
    position = Learned(dim=2, length=4)

    position.add(torch.zeros(1, 2, 2), offset=1).sum().backward()

    assert position.table.weight.grad.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize(("T", "offset"), [(5, 0), (2, 3)])
def test_more_positions_than_length_raise(T, offset):
    position = Learned(dim=2, length=4)

    position.add(torch.zeros(1, T - 1, 2), offset=offset)
    with pytest.raises(ZooError, match=r"5 positions.*4$"):
        position.add(torch.zeros(1, T, 2), offset=offset)


def test_state_dict_keys_and_max_positions():
    position = Learned(dim=3, length=5)

    assert {k: tuple(v.shape) for k, v in position.state_dict().items()} == {"table.weight": (5, 3)}
    assert position.max_positions == 5
