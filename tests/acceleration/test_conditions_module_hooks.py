import pytest
import torch
from attention_kit import build, randn
from torch import nn

from zoo import accelerate
from zoo.acceleration import has_hooks


@pytest.mark.parametrize(
    "register",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_hooks_inside_a_module_are_detected_until_removed(register):
    module = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    assert not has_hooks(module)

    handle = getattr(module[1][0], register)(lambda *_: None)

    assert has_hooks(module)
    assert has_hooks(module[1][0])
    assert not has_hooks(module[0])
    handle.remove()
    assert not has_hooks(module)


@pytest.mark.parametrize("name", ["scorers", "scorers.0", "align", "align.dropout"])
@pytest.mark.parametrize("heads", [1, 2])
def test_hooks_on_parts_of_an_attention_run_and_do_not_change_the_context(name, heads):
    attention = accelerate(build(heads=heads))
    states, calls = randn(2, 3, 6), []
    expected = attention(states, states).context

    handle = attention.get_submodule(name).register_forward_hook(
        lambda module, args, output: calls.append(output.shape)
    )
    context = attention(states, states).context

    assert calls == [(2, heads, 3, 3)]
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-6)
    handle.remove()
    attention(states, states)
    assert len(calls) == 1


def test_a_hook_on_the_scorer_of_one_head_runs_once_per_call():
    attention = accelerate(build("additive", heads=3))
    states, calls = randn(2, 4, 6), []
    attention.scorers[1].register_forward_hook(lambda *_: calls.append("scorer"))
    attention.scorers[1].W.register_forward_hook(lambda *_: calls.append("W"))

    attention(states, states)

    assert calls == ["W", "scorer"]


def test_a_forward_hook_can_replace_the_scores():
    attention = accelerate(build("dot"))
    query, memory = randn(2, 3, 6), randn(2, 5, 6, seed=2)
    attention.scorers.register_forward_hook(lambda module, args, output: torch.zeros_like(output))

    context = attention(query, memory).context

    mean = memory.mean(dim=1, keepdim=True).expand(-1, 3, -1)
    torch.testing.assert_close(context, mean, rtol=0, atol=1e-6)


def test_a_backward_hook_receives_the_gradient_of_the_scores():
    attention = accelerate(build("dot"))
    query, memory = randn(2, 3, 6).requires_grad_(), randn(2, 5, 6, seed=2)
    gradients = []
    attention.scorers[0].register_full_backward_hook(
        lambda module, grad_input, grad_output: gradients.append(grad_output[0])
    )

    attention(query, memory).context.square().sum().backward()

    assert [g.shape for g in gradients] == [(2, 1, 3, 5)]
    torch.testing.assert_close(gradients[0][:, 0] @ memory, query.grad, rtol=0, atol=1e-5)
