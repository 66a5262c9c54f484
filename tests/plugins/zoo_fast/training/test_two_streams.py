"""Parameters are divided between two streams."""

import pytest
import torch

from zoo_fast.training.two_streams import halve, step_on_two_streams


def test_halves_have_similar_sizes():
    parameters = [torch.zeros(size) for size in (1, 7, 4, 2, 1)]
    first, second = halve(parameters)
    assert [each.numel() for each in first] == [7, 1]
    assert [each.numel() for each in second] == [4, 2, 1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
def test_two_streams_update_as_one():
    def update(step):
        torch.manual_seed(0)
        parameters = [torch.randn(size, device="cuda", requires_grad=True) for size in (5, 3, 2)]
        groups = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.1}]
        optimiser = torch.optim.AdamW(groups, fused=True)
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            step(optimiser)
        return parameters

    stream = torch.cuda.Stream()
    found = update(lambda optimiser: step_on_two_streams(optimiser, stream))
    torch.testing.assert_close(found, update(torch.optim.AdamW.step))
