"""Llamas with norms of queries and keys."""

from __future__ import annotations

from typing import Any, Literal

from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import ConfigField
from zoo_huggingface.templates import (
    SpecTemplate,
    language_model_template,
    transformer_template,
)


def normed_template(*, over: Literal["head", "all"], place: str) -> SpecTemplate:
    """Return the template of Llama with RMSNorm of queries and keys.

    Args:
        over: whether a norm is over one head or over all heads.
        place: place of the norms of the sublayers.
    """
    attention: dict[str, Any] = {"scorer": "scaled-dot", "align": {"type": "soft"}}
    return language_model_template(
        transformer_template(
            attention={**attention, "norm": {"kind": "rms", "over": over}},
            feed_forward={"gated": True, "bias": False},
            norm={"kind": "rms", "place": place},
            position={"type": "rotary"},
        )
    )


def normed_fields(eps: float) -> tuple[ConfigField, ...]:
    """Return the fields of Llama, of which the epsilon is also that of queries and keys."""
    paths = "model.decoder.norm.eps model.decoder.attention.norm.eps"
    others = (field for field in Llama.fields if field.key != "rms_norm_eps")
    return (*others, ConfigField("rms_norm_eps", paths, float, eps))
