"""REINFORCE gradient of hard attention, compared with the enumeration of all samples."""

import itertools

import pytest
import torch
from torch import Tensor

from zoo import Outputs, record_samples
from zoo.plugin import Alignment, AlignmentContext, Attention, Blueprint, Memory, Samples
from zoo_alignment.hard import Hard
from zoo_bahdanau.additive import Additive
from zoo_objectives.reinforce import Reinforce
from zoo_show_attend_tell.show_attend_tell import ShowAttendTell
from zoo_tokens.token import Token

REGIONS, STEPS, SAMPLES, ROUNDS = 3, 2, 200, 40
TOKENS = torch.tensor([[1, 4]])
TARGETS = torch.tensor([[4, 3]])


class FixedAlignment(Alignment):
    """Selects given regions, one per call, and accumulates their log-probability."""

    name = "fixed"

    def __init__(self, path: list[int]) -> None:
        super().__init__()
        self.path = list(path)
        self.logprob = torch.zeros((), dtype=torch.float64)
        self.entropy = torch.zeros((), dtype=torch.float64)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, context: AlignmentContext | None = None
    ) -> Tensor:
        region = self.path.pop(0)
        logs = scores.log_softmax(dim=-1)
        self.logprob = self.logprob + logs[0, 0, 0, region]
        self.entropy = self.entropy - (logs.exp() * logs).sum()
        return torch.eye(REGIONS, dtype=scores.dtype)[region].expand_as(scores)


def build() -> ShowAttendTell:
    torch.manual_seed(3)
    attention = Blueprint.of(
        Attention, scorer=Blueprint.of(Additive, hidden=3), align=Blueprint.of(Hard)
    )
    decoder = ShowAttendTell(
        embedding=Token(vocab=5, dim=3), memory_dim=2, attention=attention, hidden=3
    )
    with torch.no_grad():
        for weight in decoder.parameters():
            weight.normal_()
    return decoder.double().train()


def memory(batch: int) -> Memory:
    generator = torch.Generator().manual_seed(5)
    states = 2 * torch.randn(1, REGIONS, 2, generator=generator, dtype=torch.float64)
    states = states.expand(batch, -1, -1)
    return Memory(states, torch.ones(batch, REGIONS, dtype=torch.bool), states.mean(dim=1))


def flat_gradient(decoder: ShowAttendTell, loss: Tensor) -> Tensor:
    grads = torch.autograd.grad(loss, list(decoder.parameters()), allow_unused=True)
    pairs = zip(decoder.parameters(), grads, strict=True)
    return torch.cat([(torch.zeros_like(w) if g is None else g).flatten() for w, g in pairs])


def exact_gradient(decoder: ShowAttendTell, lambda_e: float) -> Tensor:
    """Compute the gradient of the expected loss per target, over all samples."""
    hard = decoder.attention.align
    expected = torch.zeros((), dtype=torch.float64)
    mass = 0.0
    for path in itertools.product(range(REGIONS), repeat=STEPS):
        decoder.attention.align = fixed = FixedAlignment(list(path))
        logs = decoder(TOKENS, memory(1)).log_softmax(dim=-1)
        loss = -logs.gather(2, TARGETS[..., None]).sum()
        # As in the paper, the entropy term has no gradient through the sampling.
        expected = expected + fixed.logprob.exp() * loss
        expected = expected - lambda_e * fixed.logprob.exp().detach() * fixed.entropy
        mass += fixed.logprob.exp().item()
    decoder.attention.align = hard
    assert mass == pytest.approx(1)
    return flat_gradient(decoder, expected / STEPS)


def estimate_gradient(decoder: ShowAttendTell, rounds: int, **settings: float) -> Tensor:
    """Compute the objective's gradient per target, SAMPLES per round: [rounds, parameters]."""
    objective = Reinforce(lambda_r=settings.get("lambda_r", 1.0), lambda_e=settings["lambda_e"])
    objective.double().train()
    tokens, targets = TOKENS.expand(SAMPLES, -1), TARGETS.expand(SAMPLES, -1)
    mask = torch.ones_like(targets, dtype=torch.bool)
    torch.manual_seed(11)
    gradients = []
    for _ in range(rounds):
        objective.baseline.fill_(settings["baseline"])
        with record_samples(decoder) as log:
            logits = decoder(tokens, memory(SAMPLES))
        gradients.append(
            flat_gradient(decoder, objective(Outputs(logits, targets, mask, log.total())))
        )
    return torch.stack(gradients)


def z_scores(estimates: Tensor, expected: Tensor) -> Tensor:
    off = estimates.mean(dim=0) - expected
    error = estimates.std(dim=0) / len(estimates) ** 0.5
    exact = error < 1e-12  # parameters that do not depend on the samples
    assert (off[exact].abs() < 1e-9).all()
    return off[~exact] / error[~exact]


@pytest.mark.parametrize(("baseline", "lambda_e"), [(0.0, 0.0), (2.5, 0.0), (2.5, 0.3)])
def test_estimate_is_unbiased(baseline, lambda_e):
    decoder = build()
    expected = exact_gradient(decoder, lambda_e)

    z = z_scores(estimate_gradient(decoder, ROUNDS, baseline=baseline, lambda_e=lambda_e), expected)

    # For an unbiased estimate the rms of z is near 1.
    assert len(z) > 60
    assert z.abs().max() < 4.5
    assert z.square().mean().sqrt() < 1.6


def test_estimate_without_reward_is_biased():
    decoder = build()
    expected = exact_gradient(decoder, 0.0)

    def error(lambda_r: float) -> float:
        estimates = estimate_gradient(
            decoder, ROUNDS, lambda_r=lambda_r, baseline=2.5, lambda_e=0.0
        )
        return (estimates.mean(dim=0) - expected).norm().item()

    assert error(0.0) > 20 * error(1.0)


def test_a_baseline_reduces_the_variance():
    decoder = build()
    with torch.no_grad():
        logs = decoder(TOKENS.expand(SAMPLES, -1), memory(SAMPLES)).log_softmax(dim=-1)
        mean = -logs.gather(2, TARGETS.expand(SAMPLES, -1)[..., None]).sum(dim=(1, 2)).mean().item()

    def variance(baseline: float) -> float:
        return (
            estimate_gradient(decoder, 20, baseline=baseline, lambda_e=0.0).var(dim=0).sum().item()
        )

    assert variance(mean) < 0.8 * variance(0.0)


def test_samples_are_recorded_per_step():
    decoder = build()
    torch.manual_seed(0)
    with record_samples(decoder) as log:
        decoder(TOKENS, memory(1))
    samples = log.total()
    assert isinstance(samples, Samples)
    assert samples.logprob.shape == (1, STEPS)
    assert (samples.logprob < 0).all()
