import copy
import pickle

import pytest
import torch
from kits.thread_kit import run_in_threads
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from zoo_positions.device_constant import DeviceConstant


def test_a_tensor_is_kept_for_each_dtype():
    constant, like = DeviceConstant([0.1, 3.0]), torch.zeros(())
    for dtype in (torch.float32, torch.float64):
        found = constant.tensor(like, dtype)
        assert torch.equal(found, torch.tensor([0.1, 3.0], dtype=dtype))
        assert constant.tensor(like, dtype) is found


def test_threads_get_the_same_tensor():
    constant, like = DeviceConstant([1.0]), torch.zeros(())
    results = run_in_threads([lambda: constant.tensor(like, torch.float32)] * 4, times=5)
    assert len({id(found) for each in results for found in each}) == 1


def test_a_tensor_of_inference_mode_can_be_used_in_training():
    constant, like = DeviceConstant([2.0]), torch.zeros((), requires_grad=True)
    with torch.inference_mode():
        constant.tensor(like, torch.float32)
    (like * constant.tensor(like, torch.float32)).sum().backward()
    assert like.grad == 2


def test_fake_tensors_and_meta_tensors_are_not_kept():
    constant = DeviceConstant([2.0])
    with FakeTensorMode():
        assert type(constant.tensor(torch.zeros(()), torch.float32)) is not Tensor
    assert constant.tensor(torch.zeros((), device="meta"), torch.float32).is_meta
    assert torch.equal(constant.tensor(torch.zeros(()), torch.float32), torch.tensor([2.0]))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_have_their_own_tensors(duplicate):
    constant, like = DeviceConstant([2.0]), torch.zeros(())
    found = constant.tensor(like, torch.float32)
    other = duplicate(constant)
    assert torch.equal(other.tensor(like, torch.float32), found)
    assert other.tensor(like, torch.float32) is not found
