"""Spec templates and config fields that several architectures share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zoo_huggingface.config_fields import ConfigField

SpecTemplate = Mapping[str, Any]

BOTH = "model.encoder.{0} model.decoder.{0}"
"""Two paths of a spec, of the encoder and of the decoder."""

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "quick_gelu": "quick-gelu",
    "silu": "silu",
    "swish": "silu",
}
"""Activations of transformers and of the zoo; an export uses the first of several names."""


def activation_field(key: str, side: str, default: str) -> ConfigField:
    """Return the field of the feed-forward activation; `side` is a path, or `BOTH`."""
    paths = side if "{0}" in side else f"model.{side}.{{0}}"
    return ConfigField(
        key, paths.format("feed_forward.activation"), str, default, value_map=ACTIVATIONS
    )


def transformer_template(**params: Any) -> SpecTemplate:
    """Return a Transformer encoder or decoder with scaled dot-product attention."""
    return {
        "type": "transformer",
        "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
        "feed_forward": {},
        **params,
    }


def masked_lm_template(encoder: SpecTemplate, **params: Any) -> SpecTemplate:
    model = {"type": "masked-lm", "source": {"type": "token"}, "encoder": encoder, **params}
    return {"model": model, "objective": "cross-entropy"}


def language_model_template(decoder: SpecTemplate) -> SpecTemplate:
    model = {"type": "language-model", "embedding": {"type": "token"}, "decoder": decoder}
    return {"model": model, "sampler": "greedy", "objective": "cross-entropy"}


def seq2seq_template(encoder: SpecTemplate, decoder: SpecTemplate) -> SpecTemplate:
    """Return a sequence-to-sequence model with one embedding table for source and target."""
    model = {
        "type": "seq2seq",
        "source": {"type": "token"},
        "shared": True,
        "encoder": encoder,
        "decoder": decoder,
    }
    return {"model": model, "sampler": "greedy", "objective": "cross-entropy"}
