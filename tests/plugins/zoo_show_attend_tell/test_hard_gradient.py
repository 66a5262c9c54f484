"""Hard attention learns the gradient it should: draws against every way to look, by enumeration."""

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

REGIONS, STEPS, DRAWS, ROUNDS = 3, 2, 200, 40
TOKENS = torch.tensor([[1, 4]])
TARGETS = torch.tensor([[4, 3]])


class FixedAlignment(Alignment):
    """Looks where it is told, one region a call, and says how likely that was."""

    name = "told"

    def __init__(self, path: list[int]) -> None:
        super().__init__()
        self.path = list(path)
        self.logprob = torch.zeros((), dtype=torch.float64)
        self.entropy = torch.zeros((), dtype=torch.float64)

    def forward(
        self, scores: Tensor, mask: Tensor | None = None, look: AlignmentContext | None = None
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


def flat(decoder: ShowAttendTell, loss: Tensor) -> Tensor:
    grads = torch.autograd.grad(loss, list(decoder.parameters()), allow_unused=True)
    pairs = zip(decoder.parameters(), grads, strict=True)
    return torch.cat([(torch.zeros_like(w) if g is None else g).flatten() for w, g in pairs])


def exact(decoder: ShowAttendTell, lambda_e: float) -> Tensor:
    """The gradient of the expected loss a target, over all ways to look."""
    hard = decoder.attention.align
    expected = torch.zeros((), dtype=torch.float64)
    mass = 0.0
    for path in itertools.product(range(REGIONS), repeat=STEPS):
        decoder.attention.align = told = FixedAlignment(list(path))
        logs = decoder(TOKENS, memory(1)).log_softmax(dim=-1)
        surprise = -logs.gather(2, TARGETS[..., None]).sum()
        # The entropy of the looks pushes along the way that was drawn, as in the paper.
        expected = expected + told.logprob.exp() * surprise
        expected = expected - lambda_e * told.logprob.exp().detach() * told.entropy
        mass += told.logprob.exp().item()
    decoder.attention.align = hard
    assert mass == pytest.approx(1)
    return flat(decoder, expected / STEPS)


def estimate_gradient(decoder: ShowAttendTell, rounds: int, **settings: float) -> Tensor:
    """The objective's gradient a target, from DRAWS ways to look a round: [rounds, weights]."""
    objective = Reinforce(lambda_r=settings.get("lambda_r", 1.0), lambda_e=settings["lambda_e"])
    objective.double().eval().baseline.fill_(settings["baseline"])
    tokens, targets = TOKENS.expand(DRAWS, -1), TARGETS.expand(DRAWS, -1)
    counted = torch.ones_like(targets, dtype=torch.bool)
    torch.manual_seed(11)
    found = []
    for _ in range(rounds):
        with record_samples(decoder) as log:
            logits = decoder(tokens, memory(DRAWS))
        found.append(flat(decoder, objective(Outputs(logits, targets, counted, log.total()))))
    return torch.stack(found)


def z_scores(estimates: Tensor, expected: Tensor) -> Tensor:
    off = estimates.mean(dim=0) - expected
    error = estimates.std(dim=0) / len(estimates) ** 0.5
    sure = error < 1e-12  # weights that the draws do not touch
    assert (off[sure].abs() < 1e-9).all()
    return off[~sure] / error[~sure]


@pytest.mark.parametrize(("baseline", "lambda_e"), [(0.0, 0.0), (2.5, 0.0), (2.5, 0.3)])
def test_the_estimate_agrees_with_all_ways_to_look(baseline, lambda_e):
    decoder = build()
    expected = exact(decoder, lambda_e)

    z = z_scores(estimate_gradient(decoder, ROUNDS, baseline=baseline, lambda_e=lambda_e), expected)

    # Of so many weights the worst is seldom beyond four standard errors, and the rms is near one.
    assert len(z) > 60
    assert z.abs().max() < 4.5
    assert z.square().mean().sqrt() < 1.6


def test_without_the_reward_the_estimate_is_far_off():
    decoder = build()
    expected = exact(decoder, 0.0)

    def off(lambda_r: float) -> float:
        found = estimate_gradient(decoder, ROUNDS, lambda_r=lambda_r, baseline=2.5, lambda_e=0.0)
        return (found.mean(dim=0) - expected).norm().item()

    assert off(0.0) > 20 * off(1.0)


def test_a_baseline_makes_the_estimate_steadier():
    decoder = build()
    with torch.no_grad():
        logs = decoder(TOKENS.expand(DRAWS, -1), memory(DRAWS)).log_softmax(dim=-1)
        mean = -logs.gather(2, TARGETS.expand(DRAWS, -1)[..., None]).sum(dim=(1, 2)).mean().item()

    def spread(baseline: float) -> float:
        return (
            estimate_gradient(decoder, 20, baseline=baseline, lambda_e=0.0).var(dim=0).sum().item()
        )

    assert spread(mean) < 0.8 * spread(0.0)


def test_drawn_log_probabilities_are_those_of_the_looks():
    decoder = build()
    torch.manual_seed(0)
    with record_samples(decoder) as log:
        decoder(TOKENS, memory(1))
    samples = log.total()
    assert isinstance(samples, Samples)
    assert samples.logprob.shape == (1, STEPS)
    assert (samples.logprob < 0).all()
