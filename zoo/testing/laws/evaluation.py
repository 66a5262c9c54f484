"""Law of the value that objectives compute in evaluation mode."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F

from zoo.interfaces import Objective, Outputs, Samples
from zoo.interfaces.contracts import find_targets
from zoo.testing.configuration import Configuration
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
