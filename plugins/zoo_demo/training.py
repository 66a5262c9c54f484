"""Training and evaluation of a model on the reversal task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from zoo.interfaces import Model, Objective, Sampler
from zoo_demo.reversal import MAX_LENGTH, Reversal, Sequence, collate, strip_eos

BATCH = 64
STEPS = 1500
LEARNING_RATE = 3e-3
CLIP = 1.0
EVAL_EVERY = 100
TARGET_ACCURACY = 0.99


@dataclass(frozen=True)
class DemoProgress:
    """State of training after a step."""

    step: int
    loss: float
    accuracy: float | None
    """Sequence accuracy on held-out validation data, or None if it was not computed."""


def train(
    model: Model,
    objective: Objective,
    sampler: Sampler,
    task: Reversal,
    *,
    steps: int = STEPS,
) -> Iterator[DemoProgress]:
    """Train with Adam until validation accuracy reaches TARGET_ACCURACY or steps are used up."""
    validation = task.hold_out(200)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, LEARNING_RATE / 10)
    for step in range(1, steps + 1):
        model.train()
        loss = objective(model(task.batch(BATCH)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        accuracy = None
        if step % EVAL_EVERY == 0 or step == steps:
            accuracy = sequence_accuracy(predict(model, sampler, validation), validation)
        yield DemoProgress(step, loss.item(), accuracy)
        if accuracy is not None and accuracy >= TARGET_ACCURACY:
            return


def predict(model: Model, sampler: Sampler, sequences: list[Sequence]) -> list[list[int]]:
    """Generate from each sequence, in evaluation mode."""
    model.eval()
    decoded = model.generate(collate(sequences), sampler, max_length=MAX_LENGTH + 4)
    return [strip_eos(tokens) for tokens in decoded.best()]


def sequence_accuracy(predictions: list[list[int]], sequences: list[Sequence]) -> float:
    """Return the share of sequences that are reversed correctly."""
    correct = [
        prediction == list(reversed(s))
        for prediction, s in zip(predictions, sequences, strict=True)
    ]
    return sum(correct) / len(correct)
