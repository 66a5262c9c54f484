"""A stack of recurrent layers and a batch with an empty item, for the reference and fast paths."""

from typing import Any

import torch

from zoo_recurrent.stack import Stack

HOOKS = ["register_forward_hook", "register_forward_pre_hook"]
LENGTHS = [5, 1, 0, 3]


def stack_batch(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs and mask of four items, one of them of length 1 and one empty."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(len(LENGTHS), 5, 3, generator=generator, dtype=dtype)
    return inputs, torch.arange(5)[None] < torch.tensor(LENGTHS)[:, None]


def build_stack(cell: str, layers: int, bidirectional: bool, dropout: float = 0.0) -> Stack:
    torch.manual_seed(0)
    return Stack(
        cell, input_dim=3, hidden=4, layers=layers, bidirectional=bidirectional, dropout=dropout
    )


def check_hook_of_a_cell(stack: Stack, register: str) -> None:
    """Assert that a hook runs at each step and does not change the result."""
    inputs, mask = stack_batch()
    expected = stack(inputs, mask)
    calls: list[Any] = []
    handle = getattr(stack.layers[1][1], register)(lambda *args: calls.append(args))

    memory = stack(inputs, mask)
    handle.remove()
    stack(inputs, mask)

    assert len(calls) == inputs.shape[1]
    torch.testing.assert_close(memory.states, expected.states, rtol=0, atol=1e-6)
    torch.testing.assert_close(memory.carry, expected.carry, rtol=0, atol=1e-6)
