"""All paths of the log-likelihood: the Triton kernel, the vectorised one and the reference."""

import math
from dataclasses import replace

import pytest
import torch

import zoo
from zoo_ctc.ctc import Ctc
from zoo_ctc.lattice import build_lattice
from zoo_ctc.likelihood import likelihood
from zoo_fast.ctc.scaled_likelihood import scaled_likelihood

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def kernel(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    from zoo_fast.ctc.kernels.fused_likelihood import fused_likelihood

    return fused_likelihood


def lengths(counts, size):
    return torch.arange(size, device=DEVICE) < torch.tensor(counts, device=DEVICE)[:, None]


def make_inputs(B, T, V, U, *, blank=0, frames=None, counts=None, dtype=torch.float32):
    generator = torch.Generator().manual_seed(B + T + V + U)
    logits = (3 * torch.randn(B, T, V, generator=generator)).to(DEVICE, dtype)
    labels = torch.randint(0, V - 1, (B, U), generator=generator).to(DEVICE)
    labels = labels + (labels >= blank)
    return logits, lengths(frames or [T] * B, T), labels, lengths(counts or [U] * B, U)


def loss_and_gradient(path, logits, *inputs, blank):
    logits = logits.detach().requires_grad_()
    total = path(logits, *inputs, blank=blank)
    coefficients = torch.arange(1, len(total) + 1, device=total.device)
    (gradient,) = torch.autograd.grad((total.nan_to_num(neginf=0) * coefficients).sum(), logits)
    return total, gradient


def reference(logits, mask, labels, target_mask, *, blank):
    lattice = build_lattice(labels, target_mask, blank=blank, vocab=logits.shape[-1])
    return likelihood(logits.log_softmax(-1), mask, lattice)


def assert_matches_reference(path, logits, *inputs, blank=0, tolerance=1e-5):
    total, gradient = loss_and_gradient(path, logits, *inputs, blank=blank)
    expected, exact = loss_and_gradient(reference, logits.double(), *inputs, blank=blank)
    torch.testing.assert_close(total.double(), expected, rtol=1e-5, atol=1e-5)
    assert gradient.dtype == logits.dtype
    assert (gradient - exact).norm() <= tolerance * exact.norm()


NAMES = ("B", "T", "V", "U", "blank", "frames", "counts")
CASES = {
    name: dict(zip(NAMES, values, strict=False))
    for name, values in {
        "one-frame": (1, 1, 2, 1),
        "no-label": (2, 2, 3, 0),
        "odd-sizes": (2, 7, 5, 3, 4),
        "ragged": (3, 6, 4, 3, 1, [6, 4, 0], [3, 1, 0]),
        "impossible": (2, 5, 3, 4, 0, [5, 3], [2, 4]),
        "large-vocabulary": (1, 3, 1030, 2),
        "two-states-per-thread": (1, 36, 40, 33),
    }.items()
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_kernel_matches_the_reference_in_float32(kernel, case):
    assert_matches_reference(kernel, *make_inputs(**case), blank=case.get("blank", 0))


def test_kernel_matches_the_reference_with_two_warps(kernel, monkeypatch):
    from zoo_fast.ctc.kernels import fused_likelihood

    monkeypatch.setattr(fused_likelihood, "MAX_STATES_PER_THREAD", 1)
    assert_matches_reference(kernel, *make_inputs(1, 9, 40, 36, counts=[5]))


def test_kernel_matches_the_reference_in_bfloat16(kernel):
    inputs = make_inputs(2, 6, 5, 2, dtype=torch.bfloat16)
    # The gradient is rounded to bfloat16, which has 8 bits.
    assert_matches_reference(kernel, *inputs, tolerance=2**-8)


def test_kernel_accepts_masks_with_gaps_and_logits_that_are_not_contiguous(kernel):
    logits, mask, labels, target_mask = make_inputs(2, 6, 5, 2)
    mask[0, [0, 2, 3]] = False
    mask[1, 5] = False
    strided = logits.transpose(1, 2).contiguous().transpose(1, 2)
    assert not strided.is_contiguous()
    expanded = labels[:1].expand(2, -1)
    assert_matches_reference(kernel, strided, mask, expanded, target_mask)


def test_kernel_returns_the_same_value_without_a_gradient(kernel):
    inputs = make_inputs(2, 5, 4, 2)
    total, _ = loss_and_gradient(kernel, *inputs, blank=0)
    assert torch.equal(kernel(*inputs, blank=0), total)


def test_kernel_treats_an_item_with_an_invalid_label_as_impossible(kernel):
    logits, mask, labels, target_mask = make_inputs(3, 5, 4, 2)
    labels[0, 1], labels[2, 0] = 4, 0  # outside the vocabulary; the blank
    total, gradient = loss_and_gradient(kernel, logits, mask, labels, target_mask, blank=0)
    assert total.isneginf().tolist() == [True, False, True]
    assert gradient.ne(0).flatten(1).any(dim=1).tolist() == [False, True, False]


@pytest.mark.filterwarnings("ignore:All-NaN slice:RuntimeWarning")  # numpy in the interpreter
def test_kernel_keeps_nan_and_impossible_logits_apart(kernel):
    logits, mask, labels, target_mask = make_inputs(3, 4, 4, 2)
    logits[0, 1, 3] = math.nan
    logits[1, :, labels[1, 0]] = -math.inf
    total = kernel(logits, mask, labels, target_mask, blank=0)
    assert total[0].isnan()
    assert total[1] == -math.inf
    assert total[2].isfinite()


def scaled(logits, mask, labels, target_mask, *, blank):
    lattice = build_lattice(labels, target_mask, blank=blank, vocab=logits.shape[-1])
    return scaled_likelihood(logits, mask, lattice)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_scaled_likelihood_matches_the_reference(case, dtype):
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    inputs = [tensor.cpu() for tensor in make_inputs(**case, dtype=dtype)]
    assert_matches_reference(scaled, *inputs, blank=case.get("blank", 0), tolerance=tolerance)


@pytest.mark.parametrize(("frames", "counts"), [(40, 5), (40, 35), (300, 35)])
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_scaled_likelihood_does_not_underflow(frames, counts, scale):
    logits, *inputs = [x.cpu() for x in make_inputs(3, frames, 40, counts, dtype=torch.float64)]
    assert_matches_reference(scaled, scale * logits, *inputs, tolerance=1e-10)


def test_scaled_likelihood_returns_none_for_probabilities_below_its_range():
    logits, mask, labels, target_mask = (x.cpu() for x in make_inputs(2, 5, 4, 2))
    logits[0, 1, 2] = -1000.0
    labels[0, 0] = 2
    assert scaled(logits, mask, labels, target_mask, blank=0) is None
    total = zoo.accelerate(Ctc()).log_likelihood(logits, mask, labels, target_mask)
    torch.testing.assert_close(total, reference(logits, mask, labels, target_mask, blank=0))


def test_selected_paths_agree(kernel, monkeypatch):
    inputs = make_inputs(2, 5, 4, 2)
    objective = zoo.accelerate(Ctc())
    fused = objective.log_likelihood(*inputs)
    monkeypatch.setenv("ZOO_TRITON", "off")
    torch.testing.assert_close(fused, objective.log_likelihood(*inputs))
    monkeypatch.setenv("ZOO_FAST", "off")
    torch.testing.assert_close(fused, objective.log_likelihood(*inputs))
    empty = objective.log_likelihood(*make_inputs(2, 0, 4, 0))
    assert empty.tolist() == [0, 0]


def test_kernel_computes_the_brute_force_loss_of_the_laws(kernel):
    objective = zoo.accelerate(Ctc(impossible="zero"))
    with torch.device(DEVICE):
        outputs = objective.examples()[0]
    float32 = replace(outputs, logits=outputs.logits.float())
    assert objective(float32).item() == pytest.approx(objective.reference(outputs), abs=1e-5)
