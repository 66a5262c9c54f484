"""Steps of optimisers on a few weights with given gradients."""

import torch
from torch import nn

from zoo.plugin import Weight

ROLES = ("linear", "bias", "embedding", "norm", "vector")


def make_weights(device="cpu"):
    """Return weights of several roles, the same values in each call."""
    generator = torch.Generator().manual_seed(0)
    return [
        Weight(role, nn.Parameter(torch.randn(3, 4, generator=generator).to(device)), role)
        for role in ROLES
    ]


def run_steps(optimiser, parameters, steps=5):
    """Run steps with the same gradients in each call and return the values of the parameters."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        for parameter in parameters:
            gradient = torch.randn(parameter.shape, generator=generator)
            parameter.grad = gradient.to(parameter.device)
        optimiser.step()
    return [parameter.detach().clone() for parameter in parameters]


def assert_same_steps(component, build, decayed=ROLES):
    """Compare a component with the torch optimiser ``build(decayed, other parameters)``."""
    weights, others = make_weights(), make_weights()
    ours = run_steps(component.build(weights), [w.tensor for w in weights])
    theirs = build(
        [w.tensor for w in others if w.role in decayed],
        [w.tensor for w in others if w.role not in decayed],
    )
    expected = run_steps(theirs, [w.tensor for w in others])
    for role, actual, tensor in zip(ROLES, ours, expected, strict=True):
        torch.testing.assert_close(actual, tensor, rtol=1e-6, atol=1e-7, msg=role)


def scalar_steps(component, gradients, start=1.0):
    """Return the value of one number after each step with the given gradients."""
    weight = Weight("w", nn.Parameter(torch.tensor([start], dtype=torch.float64)), "linear")
    optimiser = component.build([weight])
    values = []
    for gradient in gradients:
        weight.tensor.grad = torch.tensor([gradient], dtype=torch.float64)
        optimiser.step()
        values.append(weight.tensor.item())
    return values
