"""The loss against enumeration of every path, torch's own loss, and finite differences."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from zoo import Outputs, ZooError
from zoo_ctc.ctc import Ctc

# Every labelling of up to three labels out of two, with the blank three symbols.
LABELLINGS = [y for n in range(4) for y in itertools.product((1, 2), repeat=n)]


def make_outputs(logits, labels, frames=None, counts=None):
    """Outputs of logits [B, T, V] and labels [B, U]; all real unless lengths are given."""
    B, T, _ = logits.shape
    frames = torch.full((B,), T) if frames is None else torch.tensor(frames)
    counts = torch.full((B,), labels.shape[1]) if counts is None else torch.tensor(counts)
    return Outputs(
        logits,
        labels,
        torch.arange(T) < frames[:, None],
        target_mask=torch.arange(labels.shape[1]) < counts[:, None],
    )


def enumerated_nll(logits, labels, blank=0):
    """The surprise [] at labels, summed over every path of logits [T, V], with gradients."""
    T, V = logits.shape
    paths = torch.cartesian_prod(*[torch.arange(V)] * T).reshape(-1, T)
    kept = [
        tuple(s for s, _ in itertools.groupby(path) if s != blank) == tuple(labels)
        for path in paths.tolist()
    ]
    if not any(kept):
        return None
    logprobs = logits.log_softmax(dim=-1)
    each = logprobs[torch.arange(T), paths[torch.tensor(kept)]]  # [paths, T]
    return -each.sum(dim=1).logsumexp(dim=0)


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 6])
def test_loss_and_gradient_are_those_of_all_paths_for_every_labelling(T, blank):
    torch.manual_seed(T)
    symbols = [s for s in range(3) if s != blank]
    for pattern in LABELLINGS:
        labels = [symbols[s - 1] for s in pattern]
        logits = torch.randn(1, T, 3, dtype=torch.float64, requires_grad=True)
        target = torch.tensor([labels], dtype=torch.long).reshape(1, -1)
        loss = Ctc(blank=blank)(make_outputs(logits, target))
        (gradient,) = torch.autograd.grad(loss, logits)
        expected = enumerated_nll(logits[0], labels, blank)
        if expected is None:
            assert loss == math.inf
            assert (gradient == 0).all()
            continue
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(
            gradient, torch.autograd.grad(expected, logits)[0], rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ragged_batches_agree_with_torch(seed, dtype):
    torch.manual_seed(seed)
    B, T, U, V = 6, 60, 12, 9
    logits = (3 * torch.randn(B, T, V, dtype=dtype)).requires_grad_()
    labels = torch.randint(0, V - 1, (B, U))
    labels = labels + (labels >= 4)  # the blank is 4
    frames, counts = [60, 33, 45, 60, 29, 24], [12, 5, 0, 9, 11, 7]
    exact = logits.detach().double().requires_grad_()  # torch's own float32 is less exact
    losses = F.ctc_loss(
        exact.log_softmax(-1).transpose(0, 1),
        labels,
        torch.tensor(frames),
        torch.tensor(counts),
        blank=4,
        reduction="none",
    )
    expected = losses.mean()
    (slope,) = torch.autograd.grad(expected, exact, retain_graph=True)

    loss = Ctc(blank=4)(make_outputs(logits, labels, frames, counts))
    (gradient,) = torch.autograd.grad(loss, logits)

    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
    assert (gradient - slope).norm() <= 1e-5 * slope.norm()
    by_labels = Ctc(blank=4, per_target=True)(make_outputs(logits, labels, frames, counts))
    lengths = torch.tensor(counts).clamp(min=1)
    torch.testing.assert_close(by_labels.double(), (losses / lengths).mean(), rtol=1e-5, atol=0)


def test_finite_differences_agree():
    torch.manual_seed(0)
    logits = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1, 2, 3], [2, 2, 0], [3, 0, 0]])

    def loss(logits):
        return Ctc()(make_outputs(logits, labels, [5, 4, 2], [3, 2, 1]))

    assert torch.autograd.gradcheck(loss, (logits,))


def test_a_known_value():
    # Two frames, p(blank) = 1/2, p(a) = 1/4: 'a' is aa, a-, -a: 1/16 + 1/8 + 1/8 = 5/16.
    logits = torch.tensor([[[0.5, 0.25, 0.25]] * 2]).log()
    loss = Ctc()(make_outputs(logits, torch.tensor([[1]])))
    torch.testing.assert_close(loss, torch.tensor(math.log(16 / 5)))


LONG = [[1, 2, 1, 2]]
FORCED_BLANK = [[1, 1, 2]]


@pytest.mark.parametrize("labels", [LONG, FORCED_BLANK], ids=["too-long", "forced-blank"])
def test_what_no_path_spells_is_infinite_or_zero_and_pushes_at_nothing(labels):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 3, requires_grad=True)
    target = torch.tensor([*labels, [1] + [0] * (len(labels[0]) - 1)])
    outputs = make_outputs(logits, target, counts=[len(labels[0]), 1])

    for impossible, expected in (("infinite", math.inf), ("zero", None)):
        objective = Ctc(impossible=impossible)
        loss = objective(outputs)
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        alone = objective(make_outputs(logits[1:], target[1:, :1])).item() / 2
        assert loss.item() == pytest.approx(expected or alone)
        assert (gradient[0] == 0).all()
        assert gradient[1].abs().sum() > 0
        assert gradient.isfinite().all()


def test_what_no_path_spells_is_refused_by_name_if_wished():
    logits, labels = torch.randn(2, 3, 3), torch.tensor([[1, 2, 0], [1, 1, 2]])
    refusing = Ctc(impossible="refuse")
    message = "item 1 of the batch has 3 labels and 3 frames, so that no path spells it"
    with pytest.raises(ZooError, match=message):
        refusing(make_outputs(logits, labels, counts=[2, 3]))
    with pytest.raises(ZooError, match="item 0 of the batch has 2 labels and 1 frames"):
        refusing(make_outputs(logits, labels, [1, 3], counts=[2, 2]))
    possible = make_outputs(logits, labels, counts=[2, 2])
    assert refusing(possible) == Ctc()(possible)


def test_exactly_enough_frames_leave_one_path():
    logits = torch.randn(1, 3, 3, dtype=torch.float64)
    loss = Ctc()(make_outputs(logits, torch.tensor([[2, 2]])))
    logprobs = logits.log_softmax(-1)[0]
    torch.testing.assert_close(loss, -(logprobs[0, 2] + logprobs[1, 0] + logprobs[2, 2]))


def test_impossible_symbols_give_no_nan():
    logits = torch.zeros(1, 3, 3)
    logits[..., 2] = -math.inf
    logits.requires_grad_()
    for labels, expected in (([[2]], math.inf), ([[1]], math.log(8 / 6))):
        loss = Ctc()(make_outputs(logits, torch.tensor(labels)))
        (gradient,) = torch.autograd.grad(loss, logits)
        assert loss.item() == pytest.approx(expected)
        assert not gradient.isnan().any()


def test_long_sequences_neither_underflow_nor_drift():
    torch.manual_seed(0)
    logits = (10 * torch.randn(1, 1000, 40)).requires_grad_()
    labels = torch.randint(1, 40, (1, 150))
    loss = Ctc()(make_outputs(logits, labels))
    (gradient,) = torch.autograd.grad(loss, logits)
    exact = logits.detach().double().requires_grad_()
    expected = Ctc()(make_outputs(exact, labels))
    (slope,) = torch.autograd.grad(expected, exact)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(gradient.double(), slope, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    torch.manual_seed(0)
    logits = torch.randn(1, 50, 5).to(dtype).requires_grad_()
    labels = torch.randint(1, 5, (1, 9))
    loss = Ctc()(make_outputs(logits, labels))
    assert loss.dtype is torch.float32
    assert loss == Ctc()(make_outputs(logits.float(), labels))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.dtype is dtype


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo's
def test_it_compiles_whole_with_its_gradient():
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, requires_grad=True)
    outputs = make_outputs(logits, torch.tensor([[1, 2], [3, 0]]), [3, 2], [2, 1])
    torch.compiler.reset()
    loss = torch.compile(Ctc(), backend="aot_eager", fullgraph=True)(outputs)
    expected = Ctc()(outputs)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        torch.autograd.grad(loss, logits), torch.autograd.grad(expected, logits)
    )


def test_no_frames_spell_nothing_and_no_items_lose_nothing():
    empty = torch.zeros(1, 0, 3, requires_grad=True)
    loss = Ctc()(make_outputs(empty, torch.zeros(1, 0, dtype=torch.long)))
    assert loss == 0
    assert torch.autograd.grad(loss, empty)[0].shape == (1, 0, 3)
    assert Ctc()(make_outputs(empty, torch.tensor([[1]]))) == math.inf
    nobody = torch.zeros(0, 4, 3)
    assert Ctc()(make_outputs(nobody, torch.zeros(0, 2, dtype=torch.long))) == 0


def test_it_runs_on_the_meta_device():
    with torch.device("meta"):
        mask = torch.ones(2, 2, dtype=torch.bool)
        outputs = Outputs(
            torch.zeros(2, 4, 3),
            torch.zeros(2, 2, dtype=torch.long),
            torch.ones(2, 4, dtype=torch.bool),
            target_mask=mask,
        )
        assert Ctc()(outputs).is_meta


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[1, 0]], r"a target has the blank \(0\) as a label; no label may be the blank"),
        ([[1, 3]], "a target has the label 3, outside the 3 symbols of the logits"),
        ([[-1, 1]], "a target has the label -1, outside the 3 symbols of the logits"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message):
    with pytest.raises(ZooError, match=message):
        Ctc()(make_outputs(torch.zeros(1, 4, 3), torch.tensor(labels)))


def test_other_bad_outputs_are_refused():
    logits, labels = torch.zeros(1, 4, 3), torch.tensor([[1, 2]])
    with pytest.raises(ZooError, match=r"blank \(3\) must be a symbol below the 3 of the logits"):
        Ctc(blank=3)(make_outputs(logits, labels))
    mask = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ZooError, match="a label follows padding"):
        Ctc()(Outputs(logits, labels, mask, target_mask=torch.tensor([[False, True]])))
    with pytest.raises(ZooError, match="objective 'ctc' needs targets that are not aligned"):
        Ctc()(Outputs(logits, labels, mask))
