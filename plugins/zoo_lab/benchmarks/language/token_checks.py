"""Comparison of generated tokens with the logits of the reference path."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import zoo
from zoo import Model
from zoo.generation.pipeline import Hypothesis
from zoo.plugin import Filter, Sampler

TOLERANCES = {torch.float32: 1e-3, torch.bfloat16: 5e-2}
"""How much a token's log-probability may be below the least allowed one, relative to the range of
the log-probabilities."""
SCORE_TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 5e-3}
"""Largest relative difference of the scores of greedy hypotheses."""
_ROWS = 4
"""Rows at the start and at the end of a batch that are compared."""


def reference_copy(model: Model) -> Model:
    """Return a copy of a model without accelerations."""
    return zoo.accelerate(copy.deepcopy(model), enabled=False)


def check_hypotheses(
    model: Model,
    prompts: Sequence[Sequence[int]],
    hypotheses: Sequence[Hypothesis],
    *,
    sampler: Sampler | None = None,
    filters: Sequence[Filter] = (),
) -> None:
    """Raise AssertionError if a generated token is not one that the reference path could select.

    The reference path computes the logits of all generated tokens in one forward pass for each row;
    at most eight rows are compared.

    Args:
        sampler: a sampler with a `distribution`, such as top-k; None if the tokens are the most
            probable ones, then the scores are compared too.
        filters: applied before the sampler.
    """
    reference = reference_copy(model)
    dtype = next(model.parameters()).dtype
    pad: Any = reference.pad
    start = [] if reference.bos is None else [reference.bos]
    rows = list(zip(prompts, hypotheses, strict=True))
    for prompt, hypothesis in (*rows[:_ROWS], *rows[_ROWS:][-_ROWS:]):
        ids = [*start, *prompt, *hypothesis.tokens]
        first = len(ids) - len(hypothesis.tokens)
        logits = _logits(reference, ids)[first - 1 :]  # [T, V]
        if sampler is None and not filters:
            _check_score(hypothesis, logits, SCORE_TOLERANCES[dtype])
        for step, token in enumerate(hypothesis.tokens):
            row = logits[step][None, None]  # [1, 1, V]
            seen = torch.tensor(ids[: first + step], device=row.device)[None, None]
            for each in filters:
                row = each(row, seen)
            row = row.log_softmax(dim=-1)
            row[..., pad] = row.min()  # never selected
            allowed = row.max() if sampler is None else row[sampler.distribution(row) > 0].min()
            missing = (allowed - row[0, 0, token]) / (row.max() - row.min())
            assert missing <= TOLERANCES[dtype], (
                f"token {step + 1} of {len(hypothesis.tokens)} is {missing:.1%} of the range below "
                "the tokens that the reference path selects"
            )


def _check_score(hypothesis: Hypothesis, logits: Tensor, tolerance: float) -> None:
    tokens = torch.tensor(hypothesis.tokens, device=logits.device)[:, None]
    expected = logits.log_softmax(dim=-1).gather(-1, tokens).sum().item()
    message = f"the score is {hypothesis.score}, that of the reference path {expected}"
    assert abs(hypothesis.score - expected) <= tolerance * abs(expected), message


@torch.no_grad()
def _logits(model: Model, ids: Sequence[int]) -> Tensor:
    """Return the logits [T, V] of the next token at each position but the last."""
    tokens = torch.tensor(ids, device=next(model.parameters()).device)[None]
    logits: Tensor = model({"target": tokens}).logits[0]
    return logits.float()
