import copy
import gc
import pickle
import weakref

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from zoo_positions.rotary import Rotary
from zoo_positions.table import MAX_ROWS, PositionTable


class Counting:
    """Cosines of positions, with the number of positions of each computation."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, t: Tensor) -> tuple[Tensor]:
        self.counts.append(len(t))
        return (t[:, None].cos(),)


def expected(count: int, offset: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.arange(offset, offset + count, dtype=torch.float64).cos()[:, None].to(dtype)


def test_a_smaller_table_is_kept_for_graphs_that_read_it():
    table, like = PositionTable(Counting()), torch.zeros(())
    (rows,) = table.rows(5, 0, like)
    smaller = weakref.ref(rows._base)
    del rows
    (rows,) = table.rows(600, 0, like)
    gc.collect()
    assert len(rows._base) == 1024
    assert smaller() is not None


def test_rows_are_computed_once_for_each_dtype_and_have_the_precision_of_float64():
    compute = Counting()
    table = PositionTable(compute)

    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        like = torch.zeros((), dtype=dtype)
        for offset in (0, 3, 100, 3):
            (rows,) = table.rows(5, offset, like)
            assert torch.equal(rows, expected(5, offset, dtype))

    assert compute.counts == [256, 256, 256]


def test_the_table_grows_up_to_its_limit():
    compute = Counting()
    table, like = PositionTable(compute), torch.zeros(())

    for offset in (0, 1000, 1020, MAX_ROWS):
        assert torch.equal(table.rows(4, offset, like)[0], expected(4, offset))

    assert compute.counts == [256, 1024, 4]


def test_rows_of_a_tensor_offset_are_computed():
    compute = Counting()
    table, like, offset = PositionTable(compute), torch.zeros(()), torch.tensor(7)
    assert torch.equal(table.rows(2, offset, like)[0], expected(2, 7))
    offset.add_(1)
    assert torch.equal(table.rows(2, offset, like)[0], expected(2, 8))
    assert compute.counts == [2, 2]


def test_a_table_of_inference_mode_can_be_used_in_training():
    position, states = Rotary(head_dim=4), torch.ones(1, 1, 3, 4)
    with torch.inference_mode():
        position.rotate(states)

    trained = states.clone().requires_grad_()
    position.rotate(trained).sum().backward()

    assert trained.grad.isfinite().all()


def test_fake_tensors_and_meta_tensors_are_not_kept():
    position = Rotary(head_dim=4)
    with FakeTensorMode():
        position.rotate(torch.ones(1, 1, 3, 4))
    position.rotate(torch.ones(1, 1, 3, 4, device="meta"))

    rotated = position.rotate(torch.ones(1, 1, 3, 4))

    assert type(rotated) is Tensor
    assert torch.equal(rotated, Rotary(head_dim=4).rotate(torch.ones(1, 1, 3, 4)))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_have_their_own_empty_table(duplicate):
    position, states = Rotary(head_dim=4), torch.ones(1, 1, 3, 4)
    rotated = position.rotate(states)

    other = duplicate(position)

    assert len(pickle.dumps(other)) < 5000  # without the rows
    assert torch.equal(other.rotate(states), rotated)
    assert other.table.compute.__self__ is other
