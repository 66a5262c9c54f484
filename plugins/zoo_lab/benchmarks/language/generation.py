"""Shared by the benchmarks of generation with language models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import zoo
from zoo import Model
from zoo.generation.pipeline import Hypothesis

CHECKED = 16
"""Tokens that are compared with the reference path."""


def generate(
    model: Model, prompts: Sequence[Sequence[int]], length: int, **options: Any
) -> list[Hypothesis]:
    """Return the best hypothesis of each prompt; greedy without options."""
    given = {"sampler": "greedy", "filters": [], "seed": 0, **options}
    return [best for best, *_ in zoo.generate(model, prompts, max_length=length, **given)]


def transformers_generate(
    model: Any, prompt: Tensor, length: int, **options: Any
) -> Callable[[], Any]:
    """Return a function that generates exactly `length` tokens with transformers."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    mask = torch.ones_like(prompt)

    def run() -> Any:
        return model.generate(
            prompt,
            attention_mask=mask,
            do_sample=False,
            min_new_tokens=length,
            max_new_tokens=length,
            **options,
        )

    return run


def build_peer(build: Callable[[], Any], like: Model) -> Any:
    """Return a model of transformers in evaluation mode, with the device and dtype of ours."""
    weight = next(like.parameters())
    with weight.device:  # random weights of a large model take long on the CPU
        model = build()
    return model.to(weight.device, weight.dtype).eval()
