"""Laws of objectives."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces import Objective, Outputs, Samples
from zoo.interfaces.contracts import find_targets
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.contracts import OBJECTIVE_LAWS
from zoo.testing.laws.helpers import assert_equal, build_objective, randn


def evaluation_loss(config: Configuration) -> None:
    """In evaluation the loss is not negative, is lower for correct than for incorrect predictions,
    and depends neither on samples nor on previous calls."""
    objective: Objective = build_objective(config)
    used: Objective = build_objective(config).train()
    for outputs in objective.examples():
        used(outputs)
    for outputs in objective.examples():
        loss = objective(outputs)
        assert loss >= 0, f"the loss in evaluation is {loss.item():.3g}"
        assert_equal(used.eval()(outputs), loss, "the loss in evaluation, after training,")
        assert_equal(
            objective(_resample(outputs)), loss, "the loss in evaluation, with other samples,"
        )
        for scale in (1.0, 100.0):
            _check_predictions(objective, _scale_extras(outputs, scale))


def _resample(outputs: Outputs) -> Outputs:
    """Return the outputs with other log-probabilities and entropies of samples."""
    if outputs.samples is None:
        return outputs
    noise = randn(*outputs.mask.shape).abs()
    return replace(outputs, samples=Samples(-100 * noise, 10 * noise))


def _scale_extras(outputs: Outputs, scale: float) -> Outputs:
    extras = {
        name: tensor * scale if tensor.is_floating_point() else tensor
        for name, tensor in outputs.extras.items()
    }
    return replace(outputs, extras=extras)


def _check_predictions(objective: Objective, outputs: Outputs) -> None:
    """Compare the losses of logits that predict the targets and of logits that predict others."""
    kind, logits = find_targets(outputs), outputs.logits
    if kind == "sequence" or not outputs.mask.any():
        return
    if objective.required_outputs().targets == "value":
        predictions = outputs.targets.to(logits), outputs.targets.to(logits) + 1
    elif kind == "multi-label":
        signs = torch.where(outputs.targets > 0.5, 1.0, -1.0).to(logits)
        predictions = signs, -signs
    else:
        targets, V = outputs.targets.where(outputs.mask, 0), logits.shape[-1]
        predictions = F.one_hot(targets, V).to(logits), F.one_hot((targets + 1) % V, V).to(logits)
    correct, incorrect = (objective(replace(outputs, logits=each)).item() for each in predictions)
    assert correct < incorrect, (
        f"the loss in evaluation is {correct:.3g} if all predictions are correct, and "
        f"{incorrect:.3g} if none is"
    )


def brute_force(config: Configuration) -> None:
    """The loss equals its brute-force reference on the examples, in training and evaluation."""
    for mode, objective in _modes(config):
        for outputs in objective.examples():
            expected = objective.reference(outputs)
            loss = objective(outputs)
            assert loss.shape == (), f"the loss is {list(loss.shape)}, not a scalar"
            error = abs(loss.item() - expected)
            assert error < 1e-5, f"differs by {error:.3g} from its reference in {mode}"


def _modes(config: Configuration) -> Iterator[tuple[str, Objective]]:
    """Yield a new objective in training mode and in evaluation mode."""
    yield "training", build_objective(config).train()
    yield "evaluation", build_objective(config).eval()


def _loss(objective: Objective, outputs: Outputs) -> Tensor:
    """Return the loss of a copy of the objective, whose state does not change."""
    loss: Tensor = copy.deepcopy(objective)(outputs)
    return loss


def masked_targets(config: Configuration) -> None:
    """Masked targets, logits and samples do not change the loss; a full mask does not give NaN."""
    for mode, objective in _modes(config):
        for outputs in objective.examples():
            assert_equal(
                _loss(objective, _perturb_masked(outputs)),
                _loss(objective, outputs),
                f"the loss in {mode}, with other values at masked positions,",
            )
            none = _loss(objective, _mask_all(outputs))
            assert not none.isnan(), f"the loss in {mode} with all targets masked is NaN"


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
    objective = build_objective(config).train()
    outputs = objective.examples()[0]
    logits = outputs.logits.detach().requires_grad_()
    loss = _loss(objective, replace(outputs, logits=logits))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.abs().max() > 0, "the loss has no gradient"
    after = _loss(objective, replace(outputs, logits=logits.detach() - 0.1 * gradient))
    assert after < loss, "a step against the gradient increases the loss"


def merged_batches(config: Configuration) -> None:
    """The loss of a batch is the mean of the losses of its parts, weighted by `weight`; an
    objective without such weights sets `mergeable` to False and raises ZooError."""
    checked = [
        _check_merging(objective, outputs)
        for _, objective in _modes(config)
        for outputs in objective.examples()
    ]
    if not any(checked):
        raise NotApplicable("mergeable is False")


def _check_merging(objective: Objective, outputs: Outputs) -> bool:
    """Check the losses of the parts of a batch; return whether it can be divided."""
    try:
        weight = objective.weight(outputs)
    except ZooError:
        assert not objective.mergeable, "weight raises, but mergeable is True"
        return False
    assert weight.shape == (), f"the weight is {list(weight.shape)}, not a scalar"
    for index in range(1, len(outputs.mask)):
        parts = [_trim(_rows(outputs, rows)) for rows in (slice(index), slice(index, None))]
        weights = [objective.weight(part) for part in parts]
        total = sum(w * _loss(objective, p) for w, p in zip(weights, parts, strict=True) if w > 0)
        assert abs(sum(weights) - weight) < 1e-9, f"the weights of the parts do not sum to {weight}"
        mean = total / torch.where(weight > 0, weight, 1)
        error = abs(mean - _loss(objective, outputs)).item()
        assert error < 1e-6, f"the loss of two parts together differs by {error:.3g}"
    return True


def restored_state(config: Configuration) -> None:
    """The state is parameters and persistent buffers: with those of an objective that was used in
    training mode, a new one computes the same losses, bit for bit."""
    objective = build_objective(config).train()
    for index, outputs in enumerate(objective.examples()):
        restored = build_objective(config).train()
        restored.load_state_dict(objective.state_dict())
        assert_equal(
            restored(outputs),
            objective(outputs),
            f"the loss of a restored objective, call {index},",
        )


def _rows(outputs: Outputs, rows: slice) -> Outputs:
    """Return some items of a batch."""
    samples = outputs.samples
    return replace(
        outputs,
        logits=outputs.logits[rows],
        targets=outputs.targets[rows],
        mask=outputs.mask[rows],
        target_mask=None if outputs.target_mask is None else outputs.target_mask[rows],
        samples=samples and Samples(samples.logprob[rows], samples.entropy[rows]),
        extras={name: tensor[rows] for name, tensor in outputs.extras.items()},
        auxiliary={name: _rows(part, rows) for name, part in outputs.auxiliary.items()},
    )


def _trim(outputs: Outputs) -> Outputs:
    """Return outputs without the positions that all items mask, if there are no extras."""
    auxiliary = {name: _trim(part) for name, part in outputs.auxiliary.items()}
    if outputs.extras:
        return replace(outputs, auxiliary=auxiliary)
    T = _longest(outputs.mask)
    U = T if outputs.target_mask is None else _longest(outputs.target_mask)
    samples = outputs.samples
    return replace(
        outputs,
        logits=outputs.logits[:, :T],
        targets=outputs.targets[:, :U],
        mask=outputs.mask[:, :T],
        target_mask=None if outputs.target_mask is None else outputs.target_mask[:, :U],
        samples=samples and Samples(samples.logprob[:, :T], samples.entropy[:, :T]),
        auxiliary=auxiliary,
    )


def _longest(mask: Tensor) -> int:
    """Return the last unmasked position of mask [B, T] plus 1, at least 1."""
    return max(int((mask * torch.arange(1, mask.shape[1] + 1)).max()), 1)


LAWS = (
    Law("brute-force", brute_force),
    Law("masked-targets", masked_targets),
    Law("descent-direction", descent_direction),
    Law("merged-batches", merged_batches),
    Law("restored-state", restored_state),
    Law("evaluation-loss", evaluation_loss),
    *OBJECTIVE_LAWS,
)
