"""Trains a model on the reversal task and scores it on sequences it has never seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from zoo.demo.reversal import MAX_LENGTH, Reversal, Sequence, collate, strip_eos
from zoo.interfaces import Model, Objective, Sampler

BATCH = 64
STEPS = 1500
LEARNING_RATE = 3e-3
CLIP = 1.0
EVAL_EVERY = 100
TARGET_ACCURACY = 0.99


@dataclass(frozen=True)
class Progress:
    """Where training stands."""

    step: int
    loss: float
    accuracy: float | None
    """Share of whole sequences right on held-out validation data, where it was measured."""


def train(
    model: Model,
    objective: Objective,
    sampler: Sampler,
    task: Reversal,
    *,
    steps: int = STEPS,
) -> Iterator[Progress]:
    """Adam with gradient clipping, until validation says it is good enough or steps run out."""
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
        yield Progress(step, loss.item(), accuracy)
        if accuracy is not None and accuracy >= TARGET_ACCURACY:
            return


def predict(model: Model, sampler: Sampler, sequences: list[Sequence]) -> list[list[int]]:
    """What the model says to each sequence."""
    model.eval()
    decoded = model.generate(collate(sequences), sampler, max_length=MAX_LENGTH + 4)
    return [strip_eos(tokens) for tokens in decoded.best()]


def sequence_accuracy(predictions: list[list[int]], sequences: list[Sequence]) -> float:
    """The share of sequences reversed without a fault."""
    right = [
        prediction == list(reversed(s))
        for prediction, s in zip(predictions, sequences, strict=True)
    ]
    return sum(right) / len(right)
