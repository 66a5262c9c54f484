"""The laws of objectives."""

from __future__ import annotations

from dataclasses import replace

import torch

from zoo.interfaces import Choices, Outputs
from zoo.testing.law import Law
from zoo.testing.laws.tensors import untouched
from zoo.testing.subject import Subject


def brute_force(subject: Subject) -> None:
    """The loss equals its brute-force reference on tiny cases, with drawn choices too."""
    objective = subject.part()
    for outputs in objective.examples():
        loss = objective(outputs)
        assert loss.shape == (), f"the loss is {list(loss.shape)}, not one number"
        off = abs(loss.item() - objective.reference(outputs))
        assert off < 1e-5, f"off by {off:.3g} from its reference"


def uncounted_targets(subject: Subject) -> None:
    """Targets, logits and choices that do not count change nothing; none counting gives no NaN."""
    objective = subject.part()
    for outputs in objective.examples():
        untouched(
            objective(_disturbed(outputs)), objective(outputs), "the loss, by what does not count,"
        )
        none = objective(_uncounted(outputs))
        assert not none.isnan(), "the loss of nothing is NaN"


def _disturbed(outputs: Outputs) -> Outputs:
    """The same, but for what does not count."""
    out = ~outputs.mask
    untold = out if outputs.target_mask is None else ~outputs.target_mask
    if outputs.targets.dim() > untold.dim():
        untold = untold[..., None]
    choices = outputs.choices and Choices(
        outputs.choices.logprob.masked_fill(out, -1e3),
        outputs.choices.entropy.masked_fill(out, 1e3),
    )
    return replace(
        outputs,
        logits=outputs.logits.masked_fill(out[..., None], 1e3),
        targets=outputs.targets.masked_fill(untold, 3),
        choices=choices,
        parts={name: _disturbed(part) for name, part in outputs.parts.items()},
    )


def _uncounted(outputs: Outputs) -> Outputs:
    told = outputs.target_mask
    return replace(
        outputs,
        mask=torch.zeros_like(outputs.mask),
        target_mask=None if told is None else torch.zeros_like(told),
        parts={name: _uncounted(part) for name, part in outputs.parts.items()},
    )


def downhill(subject: Subject) -> None:
    """A small step against the gradient makes the loss smaller."""
    objective = subject.part()
    outputs = objective.examples()[0]
    logits = outputs.logits.detach().requires_grad_()
    loss = objective(replace(outputs, logits=logits))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.abs().max() > 0, "the loss has no gradient"
    after = objective(replace(outputs, logits=logits.detach() - 0.1 * gradient))
    assert after < loss, "a step against the gradient makes the loss larger"


LAWS = (
    Law("brute-force", brute_force),
    Law("uncounted-targets", uncounted_targets),
    Law("downhill", downhill),
)
