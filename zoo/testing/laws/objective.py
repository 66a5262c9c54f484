"""Laws of objectives."""

from __future__ import annotations

from dataclasses import replace

import torch

from zoo.interfaces import Outputs, Samples
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.contracts import OBJECTIVE_LAWS
from zoo.testing.laws.helpers import assert_equal


def brute_force(config: Configuration) -> None:
    """The loss equals its brute-force reference on the examples."""
    objective = config.build()
    for outputs in objective.examples():
        loss = objective(outputs)
        assert loss.shape == (), f"the loss is {list(loss.shape)}, not a scalar"
        error = abs(loss.item() - objective.reference(outputs))
        assert error < 1e-5, f"differs by {error:.3g} from its reference"


def masked_targets(config: Configuration) -> None:
    """Masked targets, logits and samples do not change the loss; a full mask does not give NaN."""
    objective = config.build()
    for outputs in objective.examples():
        assert_equal(
            objective(_perturb_masked(outputs)),
            objective(outputs),
            "the loss, with other values at masked positions,",
        )
        none = objective(_mask_all(outputs))
        assert not none.isnan(), "the loss with all targets masked is NaN"


def _perturb_masked(outputs: Outputs) -> Outputs:
    """Return the outputs with other values at masked positions."""
    masked = ~outputs.mask
    masked_targets = masked if outputs.target_mask is None else ~outputs.target_mask
    if outputs.targets.dim() > masked_targets.dim():
        masked_targets = masked_targets[..., None]
    samples = outputs.samples and Samples(
        outputs.samples.logprob.masked_fill(masked, -1e3),
        outputs.samples.entropy.masked_fill(masked, 1e3),
    )
    return replace(
        outputs,
        logits=outputs.logits.masked_fill(masked[..., None], 1e3),
        targets=outputs.targets.masked_fill(masked_targets, 3),
        samples=samples,
        auxiliary={name: _perturb_masked(part) for name, part in outputs.auxiliary.items()},
    )


def _mask_all(outputs: Outputs) -> Outputs:
    target_mask = outputs.target_mask
    return replace(
        outputs,
        mask=torch.zeros_like(outputs.mask),
        target_mask=None if target_mask is None else torch.zeros_like(target_mask),
        auxiliary={name: _mask_all(part) for name, part in outputs.auxiliary.items()},
    )


def descent_direction(config: Configuration) -> None:
    """A small step against the gradient decreases the loss."""
    objective = config.build()
    outputs = objective.examples()[0]
    logits = outputs.logits.detach().requires_grad_()
    loss = objective(replace(outputs, logits=logits))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.abs().max() > 0, "the loss has no gradient"
    after = objective(replace(outputs, logits=logits.detach() - 0.1 * gradient))
    assert after < loss, "a step against the gradient increases the loss"


LAWS = (
    Law("brute-force", brute_force),
    Law("masked-targets", masked_targets),
    Law("descent-direction", descent_direction),
    *OBJECTIVE_LAWS,
)
