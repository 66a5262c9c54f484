"""States of fused decoding steps."""

import torch

from zoo_fast.transformer.cached_state import SLOTS, CachedState


def test_rows_are_repeated_in_order():
    torch.manual_seed(0)
    state = CachedState(
        rows={"at": torch.tensor([3, 5]), SLOTS: torch.arange(8).view(2, 4)},
        history={
            "a": torch.randn(2, 3, 4, 5),
            "b": torch.randn(2, 4, 3, 5).transpose(1, 2),
            "short": torch.randn(2, 0, 4),
            "c": torch.randn(2, 3, 4, 5),
        },
        shared={"mask": torch.ones(2, 1)},
    )
    for given in (state, CachedState(rows={"at": torch.zeros(0)}, shared=state.shared)):
        repeated = given.repeat(3)
        assert repeated.shared is given.shared
        for before, after in (
            (given.rows, repeated.rows),
            (given.history, repeated.history),
        ):
            assert list(before) == list(after)
            for name, tensor in before.items():
                expected = tensor.repeat_interleave(3, dim=0)
                torch.testing.assert_close(after[name], expected, rtol=0, atol=0)
                assert after[name].is_contiguous()
