"""Kernels over all steps of recurrent layers, compared with the reference path."""

import pytest
import torch
from recurrent_kit import HOOKS, build_stack, check_hook_of_a_cell, stack_batch

import zoo
from zoo_fast.recurrent.stacks import packed, padded
from zoo_recurrent.stack import Stack

PATHS = {"reference": Stack.run_layers, "packed": packed, "padded": padded}


def all_paths(
    stack: Stack, inputs: torch.Tensor, mask: torch.Tensor
) -> list[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
    """Return the masked states and the final states of the reference and the fused paths."""
    paths = [path(stack, inputs, mask) for path in PATHS.values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo_fast.recurrent.direction.has_kernel", lambda *_: False)
        paths.append(padded(stack, inputs, mask))  # as one operator
    return [(states * mask[..., None], finals) for states, finals in paths]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_reference_path_equals_fused_paths(cell, layers, bidirectional):
    stack = build_stack(cell, layers, bidirectional)
    inputs, mask = stack_batch()

    (states, finals), *fused = all_paths(stack, inputs, mask)

    width = 8 if bidirectional else 4
    assert states.shape == (4, 5, width)
    for fused_states, fused_finals in fused:
        torch.testing.assert_close(states, fused_states, rtol=0, atol=1e-6)
        assert list(finals) == list(fused_finals) == (["h", "c"] if cell == "lstm" else ["h"])
        for name, final in finals.items():
            assert final.shape == (4, layers, width)
            torch.testing.assert_close(final, fused_finals[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_gradients_of_all_paths_are_equal(cell, bidirectional):
    stack = build_stack(cell, 2, bidirectional).double()
    inputs, mask = stack_batch(torch.float64)
    inputs.requires_grad_()

    gradients = []
    for states, finals in all_paths(stack, inputs, mask):
        loss = states.square().sum() + sum((final - 1).square().sum() for final in finals.values())
        gradients.append(torch.autograd.grad(loss, [inputs, *stack.parameters()]))

    for reference, *fused in zip(*gradients, strict=True):
        assert not reference.isnan().any()
        for gradient in fused:
            torch.testing.assert_close(reference, gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize("path", list(PATHS))
def test_final_state_of_an_empty_item_is_zero(path):
    stack = build_stack("lstm", 2, bidirectional=True)
    inputs, mask = stack_batch()

    _, finals = PATHS[path](stack, inputs, mask)

    for final in finals.values():
        assert torch.count_nonzero(final[2]) == 0
        assert torch.count_nonzero(final[[0, 1, 3]]) == final[[0, 1, 3]].numel()


@pytest.mark.parametrize("path", list(PATHS))
@pytest.mark.parametrize("value", [1e6, float("nan")])
def test_inputs_at_masked_positions_have_no_effect(path, value):
    stack = build_stack("gru", 2, bidirectional=True)
    inputs, mask = stack_batch()
    run = PATHS[path]
    states, finals = run(stack, inputs, mask)

    changed_states, changed_finals = run(stack, inputs.masked_fill(~mask[..., None], value), mask)

    assert torch.equal(changed_states[mask], states[mask])
    assert torch.equal(changed_finals["h"], finals["h"])


@pytest.mark.parametrize("path", list(PATHS))
def test_dropout_is_applied_between_layers_only(path):
    inputs, mask = stack_batch()
    one, two = build_stack("rnn", 1, True, dropout=0.5), build_stack("rnn", 2, True, dropout=0.5)

    def states(stack: Stack) -> torch.Tensor:
        return PATHS[path](stack, inputs, mask)[0][mask]

    assert torch.equal(states(one.train()), states(one.eval()))
    assert not torch.equal(states(two.train()), states(two.eval()))


@pytest.mark.parametrize("register", HOOKS)
def test_hooks_on_a_cell_run_and_do_not_change_the_result(register):
    check_hook_of_a_cell(zoo.accelerate(build_stack("lstm", 2, bidirectional=True)), register)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_triton_kernels_equal_the_reference_path(cell, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stack = build_stack(cell, 1, bidirectional=True).to(device)
    inputs, mask = (tensor[:, :3].to(device) for tensor in stack_batch())

    results = []
    for path in (Stack.run_layers, padded):
        states, finals = path(stack, inputs, mask)
        loss = (states * mask[..., None]).square().sum() + finals["h"].sum()
        gradients = torch.autograd.grad(loss, list(stack.parameters()))
        results.append([states * mask[..., None], *finals.values(), *gradients])

    for reference, fused in zip(*results, strict=True):
        torch.testing.assert_close(fused, reference, rtol=0, atol=1e-5)
