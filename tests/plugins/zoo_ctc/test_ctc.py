"""The CTC loss compared with enumeration of all paths, torch and finite differences."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from zoo import Outputs, ZooError
from zoo_ctc.ctc import Ctc
from zoo_ctc.joint_ctc import JointCtc

# All sequences of up to three labels out of two; with the blank, the vocabulary has three.
LABEL_SEQUENCES = [y for n in range(4) for y in itertools.product((1, 2), repeat=n)]


def make_outputs(logits, labels, frames=None, counts=None):
    """Return outputs with logits [B, T, V] and labels [B, U], by default without padding."""
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
    """Compute the loss of labels over all paths of logits [T, V], with gradients."""
    T, V = logits.shape
    paths = torch.cartesian_prod(*[torch.arange(V)] * T).reshape(-1, T)
    is_path = [
        tuple(s for s, _ in itertools.groupby(path) if s != blank) == tuple(labels)
        for path in paths.tolist()
    ]
    if not any(is_path):
        return None
    logprobs = logits.log_softmax(dim=-1)
    path_logprobs = logprobs[torch.arange(T), paths[torch.tensor(is_path)]]  # [paths, T]
    return -path_logprobs.sum(dim=1).logsumexp(dim=0)


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 5, 6])
def test_loss_and_gradient_match_enumeration(T, blank):
    torch.manual_seed(T)
    label_ids = [s for s in range(3) if s != blank]
    for pattern in LABEL_SEQUENCES:
        labels = [label_ids[s - 1] for s in pattern]
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
def test_padded_batches_match_torch(seed, dtype):
    torch.manual_seed(seed)
    B, T, U, V = 6, 60, 12, 9
    logits = (3 * torch.randn(B, T, V, dtype=dtype)).requires_grad_()
    labels = torch.randint(0, V - 1, (B, U))
    labels = labels + (labels >= 4)  # the blank is 4
    frames, counts = [60, 33, 45, 60, 29, 24], [12, 5, 0, 9, 11, 7]
    exact = logits.detach().double().requires_grad_()  # float32 in torch is less precise
    losses = F.ctc_loss(
        exact.log_softmax(-1).transpose(0, 1),
        labels,
        torch.tensor(frames),
        torch.tensor(counts),
        blank=4,
        reduction="none",
    )
    expected = losses.mean()
    (expected_gradient,) = torch.autograd.grad(expected, exact, retain_graph=True)

    loss = Ctc(blank=4)(make_outputs(logits, labels, frames, counts))
    (gradient,) = torch.autograd.grad(loss, logits)

    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
    assert (gradient - expected_gradient).norm() <= 1e-5 * expected_gradient.norm()
    per_target = Ctc(blank=4, per_target=True)(make_outputs(logits, labels, frames, counts))
    lengths = torch.tensor(counts).clamp(min=1)
    torch.testing.assert_close(per_target.double(), (losses / lengths).mean(), rtol=1e-5, atol=0)


def test_gradient_matches_finite_differences():
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
def test_labels_without_a_path_have_infinite_or_zero_loss_and_no_gradient(labels):
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


def test_labels_without_a_path_raise_if_requested():
    logits, labels = torch.randn(2, 3, 3), torch.tensor([[1, 2, 0], [1, 1, 2]])
    objective = Ctc(impossible="raise")
    message = r"item 1.*3 labels.*3 frames"
    with pytest.raises(ZooError, match=message):
        objective(make_outputs(logits, labels, counts=[2, 3]))
    with pytest.raises(ZooError, match=r"item 0.*2 labels.*1 frames"):
        objective(make_outputs(logits, labels, [1, 3], counts=[2, 2]))
    possible = make_outputs(logits, labels, counts=[2, 2])
    assert objective(possible) == Ctc()(possible)


def test_one_possible_path():
    logits = torch.randn(1, 3, 3, dtype=torch.float64)
    loss = Ctc()(make_outputs(logits, torch.tensor([[2, 2]])))
    logprobs = logits.log_softmax(-1)[0]
    torch.testing.assert_close(loss, -(logprobs[0, 2] + logprobs[1, 0] + logprobs[2, 2]))


def test_labels_of_probability_zero_give_no_nan():
    logits = torch.zeros(1, 3, 3)
    logits[..., 2] = -math.inf
    logits.requires_grad_()
    for labels, expected in (([[2]], math.inf), ([[1]], math.log(8 / 6))):
        loss = Ctc()(make_outputs(logits, torch.tensor(labels)))
        (gradient,) = torch.autograd.grad(loss, logits)
        assert loss.item() == pytest.approx(expected)
        assert not gradient.isnan().any()


def test_long_sequences_in_float32_are_accurate():
    torch.manual_seed(0)
    logits = (10 * torch.randn(1, 1000, 40)).requires_grad_()
    labels = torch.randint(1, 40, (1, 150))
    loss = Ctc()(make_outputs(logits, labels))
    (gradient,) = torch.autograd.grad(loss, logits)
    exact = logits.detach().double().requires_grad_()
    expected = Ctc()(make_outputs(exact, labels))
    (expected_gradient,) = torch.autograd.grad(expected, exact)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=0, atol=1e-4)


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


# The warning comes from dynamo.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiles_as_one_graph_with_its_gradient():
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


def test_no_frames_and_no_items():
    empty = torch.zeros(1, 0, 3, requires_grad=True)
    loss = Ctc()(make_outputs(empty, torch.zeros(1, 0, dtype=torch.long)))
    assert loss == 0
    assert torch.autograd.grad(loss, empty)[0].shape == (1, 0, 3)
    assert Ctc()(make_outputs(empty, torch.tensor([[1]]))) == math.inf
    no_items = torch.zeros(0, 4, 3)
    assert Ctc()(make_outputs(no_items, torch.zeros(0, 2, dtype=torch.long))) == 0


def test_runs_on_the_meta_device():
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
        ([[1, 0]], r"blank \(0\)"),
        ([[1, 3]], r"label 3.*\(3\)"),
        ([[-1, 1]], r"label -1.*\(3\)"),
    ],
)
def test_invalid_labels_raise(labels, message):
    with pytest.raises(ZooError, match=message):
        Ctc()(make_outputs(torch.zeros(1, 4, 3), torch.tensor(labels)))


def test_invalid_outputs_raise():
    logits, labels = torch.zeros(1, 4, 3), torch.tensor([[1, 2]])
    with pytest.raises(ZooError, match=r"blank \(3\).*\(3\)"):
        Ctc(blank=3)(make_outputs(logits, labels))
    mask = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ZooError, match=r"target_mask.*padding"):
        Ctc()(Outputs(logits, labels, mask, target_mask=torch.tensor([[False, True]])))
    with pytest.raises(ZooError, match=r"'ctc'.*target_mask"):
        Ctc()(Outputs(logits, labels, mask))


@pytest.mark.parametrize("objective", [Ctc, JointCtc])
def test_version_1_parameters_are_migrated(objective):
    params, _ = objective.migrate(1, {"impossible": "refuse", "blank": 2}, {})
    assert params == {"impossible": "raise", "blank": 2}
    params, _ = objective.migrate(1, {"impossible": "zero"}, {})
    assert params == {"impossible": "zero"}


def test_the_weight_is_the_number_of_items():
    assert Ctc().weight(Ctc().examples()[0]).item() == 4
