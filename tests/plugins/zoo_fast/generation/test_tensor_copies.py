"""Copies of several tensors."""

import pytest
import torch

from zoo_fast.generation.tensor_copies import (
    MAX_SMALL,
    SMALL_BYTES,
    copy_small_into,
    copy_tensors,
    divide_small,
)


@pytest.mark.parametrize("kernel", [False, True], ids=["torch", "kernel"])
def test_small_and_other_tensors_are_copied(kernel, monkeypatch):
    if kernel:
        pytest.importorskip("triton")
        monkeypatch.setenv("ZOO_TRITON", "interpret")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sources = [
        torch.arange(2100, device=device).view(3, 700),
        torch.tensor(7, device=device),
        torch.tensor([True, False, True], device=device),
        torch.randn(2, 3, device=device).bfloat16(),
        torch.randn(0, 3, device=device),
        torch.randn(4, 3, device=device).T,
        torch.randn(300, 100, device=device),
        torch.ones(5, dtype=torch.int32, device=device),
    ]
    targets = [torch.empty_like(s, memory_format=torch.contiguous_format) for s in sources]
    targets[-1] = targets[-1].long()  # of another dtype
    copy_small_into(list(zip(targets, sources, strict=True)))
    assert all(torch.equal(*pair) for pair in zip(targets, sources, strict=True))


def test_copies_of_different_dtypes():
    tensors = {"a": torch.randn(2, 3), "b": torch.tensor([True]), "c": torch.randn(4)[::2]}
    copies = copy_tensors(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(copies[name], tensor)
        assert copies[name].data_ptr() != tensor.data_ptr()


def test_one_kernel_copies_a_limited_number_of_small_tensors(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    large = torch.zeros(SMALL_BYTES + 1, dtype=torch.int8)
    tensors = [torch.zeros(4), large, torch.zeros(0)] + [torch.zeros(2)] * MAX_SMALL
    pairs = [(tensor.clone(), tensor) for tensor in tensors]
    small, others = divide_small(pairs)
    assert small == [pairs[0], *pairs[3 : MAX_SMALL + 2]]
    assert others == [pairs[1], pairs[2], pairs[-1]]
    assert divide_small(pairs, 32)[0] == [pairs[0], pairs[3], pairs[4]]
    monkeypatch.setenv("ZOO_TRITON", "off")
    assert divide_small(pairs) == ([], pairs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_kernels_do_not_copy_other_dtypes(dtype, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    source = torch.randn(3, dtype=dtype)
    target = torch.empty_like(source)
    assert divide_small([(target, source)])[0] == []
    copy_small_into([(target, source)])
    assert torch.equal(target, source)
