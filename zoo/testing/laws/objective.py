"""The laws of objectives."""

from __future__ import annotations

from dataclasses import replace

import torch

from zoo.interfaces import Choices, Outputs
from zoo.testing.law import Law
from zoo.testing.laws.tensors import noise, ragged, seeded, untouched
from zoo.testing.subject import Subject


def _outputs(seed: int = 0) -> Outputs:
    generator = seeded(seed)
    targets = torch.randint(0, 5, (3, 4), generator=generator)
    return Outputs(noise(3, 4, 5, seed=seed), targets, ragged([4, 1, 2]))


def _chosen(seed: int = 0) -> Outputs:
    """Outputs of a model that drew where to look."""
    logprob, entropy = -noise(3, 4, seed=seed + 20).abs(), noise(3, 4, seed=seed + 40).abs()
    return replace(_outputs(seed), choices=Choices(logprob, entropy))


def brute_force(subject: Subject) -> None:
    """The loss equals its brute-force reference on tiny cases, with drawn choices too."""
    objective = subject.part()
    for outputs in [_outputs(seed) for seed in range(5)] + [_chosen(seed) for seed in range(5)]:
        loss = objective(outputs)
        assert loss.shape == (), f"the loss is {list(loss.shape)}, not one number"
        off = abs(loss.item() - objective.reference(outputs))
        assert off < 1e-5, f"off by {off:.3g} from its reference"


def uncounted_targets(subject: Subject) -> None:
    """Targets, logits and choices that do not count change nothing; none counting gives no NaN."""
    objective = subject.part()
    for outputs in (_outputs(), _chosen()):
        logits = outputs.logits.masked_fill(~outputs.mask[..., None], 1e3)
        targets = outputs.targets.masked_fill(~outputs.mask, 3)
        choices = outputs.choices and Choices(
            outputs.choices.logprob.masked_fill(~outputs.mask, -1e3),
            outputs.choices.entropy.masked_fill(~outputs.mask, 1e3),
        )
        other = objective(Outputs(logits, targets, outputs.mask, choices))
        untouched(other, objective(outputs), "the loss, by what does not count,")
        none = objective(replace(outputs, mask=torch.zeros_like(outputs.mask)))
        assert not none.isnan(), "the loss of nothing is NaN"


def downhill(subject: Subject) -> None:
    """A small step against the gradient makes the loss smaller."""
    objective = subject.part()
    outputs = _outputs()
    logits = outputs.logits.requires_grad_()
    loss = objective(outputs)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.abs().max() > 0, "the loss has no gradient"
    after = objective(Outputs(logits.detach() - 0.1 * gradient, outputs.targets, outputs.mask))
    assert after < loss, "a step against the gradient makes the loss larger"


LAWS = (
    Law("brute-force", brute_force),
    Law("uncounted-targets", uncounted_targets),
    Law("downhill", downhill),
)
