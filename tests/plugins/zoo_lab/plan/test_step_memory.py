"""Memory of a training step, against values computed by hand."""

import torch
from torch import nn

from zoo import Model, Outputs
from zoo_lab.plan.step_memory import measure_step, total_bytes

B, D, LAYERS = 64, 128, 3
WEIGHTS = LAYERS * 4 * (D * D + D)
ACTIVATION = 4 * B * D
SMALL = 3 * 512  # the loss, the targets and the mask


class Stack(Model):
    """Linear layers with ReLU; the loss is the sum of the logits."""

    name = "stack"

    def __init__(self):
        super().__init__()
        layers = [module for _ in range(LAYERS) for module in (nn.Linear(D, D), nn.ReLU())]
        self.layers = nn.Sequential(*layers)

    def forward(self, batch):
        logits = self.layers(batch["source"])
        return Outputs(logits[:, None], torch.zeros(1), torch.zeros(1))

    def example(self, batch, length, generator=None):
        return {"source": torch.empty(batch, D)}


def _measure(precision="float32", make_optimiser=lambda m: torch.optim.Adam(m.parameters())):
    with torch.device("meta"):
        model = Stack()
    return measure_step(model, None, lambda m: m.example(B, 1), make_optimiser, precision=precision)


def test_weights_gradients_and_adam_are_exact():
    step = _measure()
    assert step.weights == step.gradients == WEIGHTS
    assert step.optimiser == 2 * WEIGHTS + 2 * LAYERS * 512  # and the step of each parameter


def test_sgd_has_no_state():
    step = _measure(make_optimiser=lambda m: torch.optim.SGD(m.parameters(), lr=0.1))
    assert step.optimiser == 0


def test_activations_of_linear_and_relu_are_exact():
    # The output of each ReLU is saved, by it and by the next layer; a linear layer saves its input.
    assert _measure().activations == LAYERS * ACTIVATION + SMALL


def test_activations_in_bfloat16():
    # The first input is copied; the other inputs are the outputs that ReLU saves.
    assert _measure("bfloat16").activations == (LAYERS + 1) * ACTIVATION // 2 + SMALL


def test_the_peak_is_in_the_backward_pass():
    step = _measure()
    assert step.peak == sum(step.at_peak.values())
    assert step.peak < step.weights + step.gradients + step.optimiser + step.activations * 2
    assert step.transient_peak <= step.peak - step.weights - step.optimiser


def test_the_optimiser_allocates_what_it_needs():
    """A step with a copy of all weights has its peak there."""

    class Copying(torch.optim.SGD):
        def step(self):
            self.copies = [p.new_empty(8 * p.numel()) for p in self.param_groups[0]["params"]]

    step = _measure(make_optimiser=lambda m: Copying(m.parameters(), lr=0.1))
    assert step.at_peak["temporary"] >= 8 * WEIGHTS
    assert step.at_peak["gradients"] == WEIGHTS


def test_total_bytes_rounds_each_tensor():
    assert total_bytes([torch.empty(1), torch.empty(129)]) == 512 + 1024
