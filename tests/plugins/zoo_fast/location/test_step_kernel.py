"""The kernel of location-aware scores compared with the formula."""

import pytest
import torch

import zoo
from zoo.testing import cases
from zoo_fast.location.step_kernel import LocationTriton
from zoo_location.location import Location

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("keys", "hidden"), [(1, 1), (37, 33)])
def test_kernel_matches_the_formula(keys, hidden, dtype, monkeypatch):
    pytest.importorskip("triton")
    torch.manual_seed(0)
    location = Location(query_dim=3, key_dim=4, hidden=hidden, filters=3, kernel_radius=2)
    location = zoo.accelerate(location.to(DEVICE, dtype))
    query = torch.randn(2, 1, 3, device=DEVICE, dtype=dtype)
    key = torch.randn(2, 4, keys, device=DEVICE, dtype=dtype).transpose(1, 2)
    weights = torch.rand(2, keys, device=DEVICE, dtype=dtype).requires_grad_()

    def scores_and_gradients():
        scores, _ = location.step(query, location.prepare(key), {"weights": weights})
        g = torch.arange(scores.numel(), device=DEVICE).view(scores.shape).cos()
        inputs = [weights, *location.parameters()]
        return scores, *torch.autograd.grad(scores, inputs, g.to(dtype))

    monkeypatch.setenv("ZOO_TRITON", "off")
    expected = scores_and_gradients()
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    assert LocationTriton().why_not(location, key.device) is None
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    for result, reference in zip(scores_and_gradients(), expected, strict=True):
        assert (result - reference).norm() <= tolerance * (1 + reference.norm())


def test_kernel_has_second_derivatives(monkeypatch):
    step_scores = pytest.importorskip("zoo_fast.location.kernels.step_scores")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    torch.manual_seed(0)
    shapes = (2, 3), (2, 5, 3), (2, 5), (2, 3), (3, 2), (3,)
    inputs = [torch.randn(shape, device=DEVICE, requires_grad=True) for shape in shapes]

    def second_derivatives(function):
        grads = torch.autograd.grad(function(*inputs).cos().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in grads), inputs)

    fused = second_derivatives(step_scores.step_scores)
    for result, expected in zip(fused, second_derivatives(step_scores.formula), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["same-results", "reference-conditions", "plain-copies"])
@pytest.mark.skipif(torch.cuda.is_available(), reason="Triton does not interpret with a GPU")
def test_laws_hold_in_the_interpreter(name, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    (case,) = [
        case
        for case in cases(plugin="fast")
        if case.config.name == "location-triton" and case.law.name == name
    ]
    case.run()
