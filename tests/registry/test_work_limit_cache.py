"""Operations on the meta device give the same results when they are run again."""

import pytest
import torch

from zoo.registry.work_limit import MetaCache

META = torch.empty(3, 4, device="meta")
INTEGERS = torch.empty(3, 4, dtype=torch.int64, device="meta")
ROW = torch.empty(4, device="meta")
aten = torch.ops.aten
run_on_meta = MetaCache().run


@pytest.mark.parametrize(
    ("func", "args", "dtype"),
    [
        (aten.add.Tensor, (META, ROW), torch.float32),
        (aten.mul.Tensor, (INTEGERS, 2), torch.int64),
        (aten.mul.Tensor, (INTEGERS, 2.0), torch.float32),
        (aten.mul.Tensor, (META.t(), 2.0), torch.float32),
        (aten.cat.default, ([META, META], 1), torch.float32),
        (aten.native_layer_norm.default, (META, [4], ROW, ROW, 1e-5), torch.float32),
    ],
)
def test_a_repeated_operation_gives_new_tensors_of_the_same_form(func, args, dtype):
    expected = func(*args)
    for _ in range(2):
        results = run_on_meta(func, args, {})
        assert type(results) is type(expected)
        pairs = [(results, expected)] if func is not aten.native_layer_norm.default else None
        for result, other in pairs or zip(results, expected, strict=True):
            assert (result.shape, result.stride()) == (other.shape, other.stride())
            assert result.dtype == dtype
            assert result.is_meta
            assert all(result is not argument for argument in args)


def test_views_and_operations_in_place_keep_their_tensor():
    for _ in range(2):
        assert run_on_meta(aten.add_.Tensor, (META, 1), {}) is META
        assert run_on_meta(aten.t.default, (META,), {})._base is META


def test_an_operation_in_place_that_changes_the_form_runs_every_time():
    for _ in range(2):
        tensor = torch.empty(3, 4, device="meta")
        assert run_on_meta(aten.t_.default, (tensor,), {}) is tensor
        assert tensor.shape == (4, 3)


def test_results_depend_on_the_default_dtype():
    default = torch.get_default_dtype()
    assert run_on_meta(aten.div.Tensor, (INTEGERS, 2), {}).dtype == default
    try:
        torch.set_default_dtype(torch.float64)
        assert run_on_meta(aten.div.Tensor, (INTEGERS, 2), {}).dtype == torch.float64
    finally:
        torch.set_default_dtype(default)


def test_an_invalid_operation_raises_every_time():
    for _ in range(2):
        with pytest.raises(RuntimeError):
            run_on_meta(aten.mm.default, (META, META), {})
