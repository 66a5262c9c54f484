"""Cross-entropy without the logits, against the same loss with them; relative error of gradients
below 1e-5 in float32 and 2 % in bfloat16."""

import pytest
import torch

import zoo
import zoo_fast.objectives.linear_cross_entropy as module
from zoo import Outputs
from zoo_fast.objectives.linear_cross_entropy import linear_cross_entropy
from zoo_fast.training.deferred_logits import DeferredLogits, uses_deferred_logits
from zoo_objectives.cross_entropy import CrossEntropy

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def device():
    with torch.device(DEVICE):
        yield


@pytest.fixture(params=["torch", "triton"])
def path(request, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "off")
    if request.param == "triton":
        pytest.importorskip("triton")
        monkeypatch.setenv("ZOO_TRITON", "interpret")
    return request.param


def make_inputs(dtype=torch.float32, *, V=37, valid=(5, 1, 0)):
    torch.manual_seed(0)
    states, weight, bias = torch.randn(3, 5, 6), torch.randn(V, 6), torch.randn(V)
    leaves = [t.to(dtype).requires_grad_() for t in (states, weight, bias)]
    mask = torch.arange(5) < torch.tensor(valid)[:, None]
    return leaves, torch.randint(0, V, (3, 5)), mask


def gradients(loss, leaves):
    return torch.autograd.grad(2 * loss, leaves)


def relative_error(actual, expected):
    expected = expected.double()
    return ((actual.double() - expected).norm() / expected.norm().clamp(min=1e-30)).item()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize(("chunk", "alignment"), [(2**20, 1), (2**20, 8), (37 * 4 * 4, 8)])
def test_loss_and_gradients_equal_those_with_logits(
    path, smoothing, dtype, tolerance, chunk, alignment, monkeypatch
):
    monkeypatch.setitem(module._CHUNK_BYTES, DEVICE, chunk)
    monkeypatch.setitem(module._ALIGNMENT, DEVICE, alignment)
    leaves, targets, mask = make_inputs(dtype)
    double = [leaf.detach().double().requires_grad_() for leaf in leaves]
    logits = double[0] @ double[1].T + double[2]
    expected = CrossEntropy(smoothing=smoothing)(Outputs(logits, targets, mask))
    states, weight, bias = leaves
    deferred = DeferredLogits(states, weight, bias=bias)
    actual = linear_cross_entropy(deferred, targets, mask, smoothing=smoothing)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), expected, rtol=tolerance, atol=0)
    pairs = zip(gradients(actual, leaves), gradients(expected, double), strict=True)
    for leaf, (found, reference) in zip(leaves, pairs, strict=True):
        assert found.dtype == leaf.dtype
        assert relative_error(found, reference) < tolerance


@pytest.mark.parametrize(
    ("positions", "dtype", "summed", "rows"),
    [
        (12, torch.bfloat16, True, 12),  # the logits are as large as the sum
        (13, torch.bfloat16, True, 2),
        (12, torch.bfloat16, False, 2),
        (12, torch.float32, True, 1),  # the sum is needed in any case
        (0, torch.bfloat16, True, 1),
    ],
)
def test_logits_are_computed_at_once_if_several_parts_need_as_much_memory(
    positions, dtype, summed, rows, monkeypatch
):
    monkeypatch.setitem(module._CHUNK_BYTES, DEVICE, 37 * 4)
    inputs = torch.zeros(positions, 6, dtype=dtype)
    assert module._chunk_rows(inputs, 37, summed=summed) == rows


@pytest.mark.parametrize(("factor", "alignment"), [(1, 1), (300, 1), (300, 32)])
def test_vocabulary_of_several_blocks(path, factor, alignment, monkeypatch):
    monkeypatch.setitem(module._ALIGNMENT, DEVICE, alignment)
    if path == "triton":
        from zoo_fast.objectives.kernels import cross_entropy_rows

        monkeypatch.setattr(cross_entropy_rows, "_MAX_BLOCK", 16)
    leaves, targets, mask = make_inputs(V=37)
    with torch.no_grad():
        leaves[1][-1] *= factor  # the exponential of the last logit overflows
    logits = leaves[0] @ leaves[1].T
    expected = CrossEntropy(smoothing=0.1)(Outputs(logits, targets, mask))
    deferred = DeferredLogits(leaves[0], leaves[1])
    actual = linear_cross_entropy(deferred, targets, mask, smoothing=0.1)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(gradients(actual, leaves[:2]), gradients(expected, leaves[:2]))


def test_loss_is_zero_if_all_positions_are_masked(path):
    leaves, targets, mask = make_inputs(valid=(0, 0, 0))
    deferred = DeferredLogits(*leaves[:2])
    loss = linear_cross_entropy(deferred, targets, mask, smoothing=0.1)
    assert loss.item() == 0
    assert not any(gradient.any() for gradient in gradients(loss, leaves[:2]))


@pytest.mark.parametrize(("V", "excluded"), [(50, [0, 3]), (5000, [0, 4500]), (5000, slice(4096))])
def test_logits_of_minus_infinity_have_probability_zero(path, V, excluded):
    (states, weight, bias), targets, mask = make_inputs(V=V)
    targets.fill_(V - 1)
    with torch.no_grad():
        bias[excluded] = -torch.inf
    expected = CrossEntropy()(Outputs(states @ weight.T + bias, targets, mask))
    deferred = DeferredLogits(states, weight, bias=bias)
    actual = linear_cross_entropy(deferred, targets, mask, smoothing=0.0)
    assert actual.isfinite()
    torch.testing.assert_close(actual, expected)
    leaves = [states, weight, bias]
    torch.testing.assert_close(gradients(actual, leaves), gradients(expected, leaves))


@pytest.mark.parametrize("V", [50, 5000])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_masked_states_do_not_matter(path, V, value):
    leaves, targets, mask = make_inputs(V=V)
    found = []
    for filled in (0.0, value):
        with torch.no_grad():
            leaves[0].masked_fill_(~mask[..., None], filled)
        deferred = DeferredLogits(leaves[0], leaves[1], bias=leaves[2])
        loss = linear_cross_entropy(deferred, targets, mask, smoothing=0.1)
        found.append([loss, *gradients(loss, leaves)])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


@pytest.mark.parametrize("V", [50, 5000])
@pytest.mark.parametrize("outside", [-1, 0, 2, 10**6])
def test_loss_of_a_target_outside_of_the_vocabulary_is_nan(V, outside, monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    (states, weight, _), targets, mask = make_inputs(V=V)
    targets[0, 0] = outside if outside < 0 else V + outside
    loss = linear_cross_entropy(DeferredLogits(states, weight), targets, mask, smoothing=0.0)
    assert loss.isnan()


def test_row_of_padding_receives_no_gradient(path):
    (states, weight, _), targets, mask = make_inputs()
    deferred = DeferredLogits(states, weight, padding=3)
    loss = linear_cross_entropy(deferred, targets, mask, smoothing=0.1)
    (gradient,) = gradients(loss, [weight])
    assert not gradient[3].any()
    assert gradient[4].any()


def test_autocast_computes_in_bfloat16_and_returns_float32_gradients(path):
    (states, weight, bias), targets, mask = make_inputs()
    with torch.autocast(DEVICE, torch.bfloat16):
        deferred = DeferredLogits(states, weight, bias=bias)
        assert deferred.dtype == torch.bfloat16
        loss = linear_cross_entropy(deferred, targets, mask, smoothing=0.0)
        expected = CrossEntropy()(Outputs(deferred.compute(), targets, mask))
    torch.testing.assert_close(loss, expected, rtol=1e-2, atol=0)
    found = gradients(loss, [states, weight, bias])
    assert {gradient.dtype for gradient in found} == {torch.float32}


def test_without_gradients_only_the_loss_is_computed(path):
    (states, weight, _), targets, mask = make_inputs()
    deferred = DeferredLogits(states, weight)
    with torch.no_grad():
        loss = linear_cross_entropy(deferred, targets, mask, smoothing=0.0)
    assert not loss.requires_grad


def test_objective_uses_the_parts_of_large_deferred_logits(monkeypatch):
    monkeypatch.setattr(module, "_MIN_LOGITS", 1)
    monkeypatch.setattr(module, "_MIN_VOCABULARY", 1)
    (states, weight, bias), targets, mask = make_inputs()
    logits = DeferredLogits(states, weight, bias=bias)
    loss = zoo.accelerate(CrossEntropy())(Outputs(logits, targets, mask))
    assert logits._computed is None
    expected = CrossEntropy()(Outputs(states @ weight.T + bias, targets, mask))
    torch.testing.assert_close(loss, expected)


def test_weights_of_classes_are_computed_with_logits(monkeypatch):
    monkeypatch.setattr(module, "_MIN_LOGITS", 1)
    monkeypatch.setattr(module, "_MIN_VOCABULARY", 1)
    (states, weight, bias), targets, mask = make_inputs()
    weights = [float(1 + number % 3) for number in range(len(weight))]
    objective = zoo.accelerate(CrossEntropy(class_weights=weights))
    loss = objective(Outputs(DeferredLogits(states, weight, bias=bias), targets, mask))
    logits, valid = (states @ weight.T + bias)[mask], targets[mask]
    expected = torch.nn.functional.cross_entropy(
        logits, valid, weight=torch.tensor(weights).to(logits)
    )
    torch.testing.assert_close(loss, expected)
    assert not uses_deferred_logits(objective)
