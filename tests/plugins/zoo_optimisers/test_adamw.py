import pytest
import torch
from optimiser_kit import assert_same_steps, make_weights, run_steps, scalar_steps
from torch import nn

from zoo.plugin import Weight
from zoo_optimisers.adamw import AdamW

MATRICES = ("linear", "embedding")


def test_known_values():
    # m_hat / sqrt(v_hat) is 1 in the first step; then m = 0.95 / 0.75, v = 1.0 / 0.4375.
    optimiser = AdamW(lr=0.1, betas=(0.5, 0.75), eps=0.0, weight_decay=0.5)
    first = 1.0 * (1 - 0.1 * 0.5) - 0.1
    m, v = 0.5 * 0.5 * 1.0 + 0.5 * 2.0, 0.75 * 0.25 * 1.0 + 0.25 * 4.0
    second = first * (1 - 0.1 * 0.5) - 0.1 * (m / 0.75) / (v / 0.4375) ** 0.5
    assert scalar_steps(optimiser, [1.0, 2.0]) == pytest.approx([first, second], abs=1e-12)


def test_steps_equal_torch_with_decay_of_matrices_only():
    assert_same_steps(
        AdamW(lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1),
        lambda decayed, others: torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
            lr=0.01,
            betas=(0.9, 0.98),
            eps=1e-6,
        ),
        MATRICES,
    )


def test_steps_equal_torch_with_decay_of_all_parameters():
    assert_same_steps(
        AdamW(weight_decay=0.1, decay="all"),
        lambda decayed, _: torch.optim.AdamW(decayed, weight_decay=0.1),
    )


def test_the_kernels_are_fused_and_do_not_depend_on_the_number_of_threads():
    def run(threads):
        torch.set_num_threads(threads)
        weight = Weight("w", nn.Parameter(torch.linspace(-1, 1, 100_003)), "linear")
        optimiser = AdamW().build([weight])
        assert optimiser.param_groups[0]["fused"]
        return run_steps(optimiser, [weight.tensor])[0]

    before = torch.get_num_threads()
    try:
        one, several = run(1), run(3)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, several)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_kernels_are_fused_on_a_gpu_and_give_the_steps_of_the_cpu():
    cpu, gpu = make_weights(), make_weights("cuda")
    fused = AdamW(weight_decay=0.1).build(gpu)
    assert all(group["fused"] for group in fused.param_groups)
    expected = run_steps(AdamW(weight_decay=0.1).build(cpu), [w.tensor for w in cpu])
    for actual, tensor in zip(run_steps(fused, [w.tensor for w in gpu]), expected, strict=True):
        torch.testing.assert_close(actual.cpu(), tensor, rtol=1e-5, atol=1e-6)
