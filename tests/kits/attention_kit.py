"""Attentions of every form, and the two paths that compute them."""

from typing import Any

import pytest
import torch
from torch import Tensor

from zoo import accelerate, recording
from zoo.attention.attention import AttentionOptions
from zoo.plugin import Attention, Blueprint, Mask
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_luong.concat import Concat
from zoo_luong.dot import Dot
from zoo_luong.general import General
from zoo_transformer.scaled_dot import ScaledDot

SCORERS = {
    "dot": Blueprint.of(Dot),
    "general": Blueprint.of(General),
    "concat": Blueprint.of(Concat, hidden=3),
    "additive": Blueprint.of(Additive, hidden=3),
    "scaled-dot": Blueprint.of(ScaledDot),
}
FORMS = [
    {"heads": heads, "merge": merge, "project": project}
    for heads in (1, 3)
    for merge in ("concat", "mean")
    for project in ("none", "qkv", "kv")
]
CASES = [
    pytest.param(scorer, form, id="-".join([scorer, *map(str, form.values())]))
    for scorer in SCORERS
    for form in FORMS
    # Heads without projections and parameters are identical.
    if not (form["project"] == "none" and form["heads"] > 1 and "dot" in scorer)
]


def build(
    scorer: str | Blueprint[Any] = "scaled-dot",
    query_dim: int = 6,
    key_dim: int = 6,
    **form: Any,
) -> Attention:
    torch.manual_seed(0)
    options = AttentionOptions(**{key: form.pop(key) for key in ("bias", "norm") if key in form})
    return Attention(
        query_dim=query_dim,
        key_dim=key_dim,
        scorer=SCORERS[scorer] if isinstance(scorer, str) else scorer,
        align=form.pop("align", Blueprint.of(Soft)),
        options=options,
        **form,
    )


def randn(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def lengths_mask(*lengths: int, S: int) -> Tensor:
    return torch.arange(S)[None] < torch.tensor(lengths)[:, None]


def reference_path(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """Attention is not accelerated while weights are recorded."""
    with recording(attention):
        return attention(query, memory, mask).context


def accelerated_path(attention: Attention, query: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    return accelerate(attention)(query, memory, mask).context


PATHS = [
    pytest.param(reference_path, id="reference"),
    pytest.param(accelerated_path, id="accelerated"),
]
