"""Gemma: Llama with scaled embeddings, GELU, and norms with the weights 1 + w."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import ConfigField, RequiredValue, config_error
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import ACTIVATIONS, language_model_template, transformer_template

BOTH_SIDES = "use_bidirectional_attention"
_ACTIVATIONS = {"gelu_pytorch_tanh": "gelu-tanh", **ACTIVATIONS, "gelu": "gelu-tanh"}
"""Activations; 'gelu' in early configs means the approximation."""


def gemma_template(*, place: str, **attention: Any) -> dict[str, Any]:
    """Return the template of a Gemma with norms at this place."""
    softmax = {"scorer": {"type": "scaled-dot"}, "align": {"type": "soft"}}
    template = language_model_template(
        transformer_template(
            attention={**softmax, **attention},
            feed_forward={"gated": True, "bias": False},
            norm={"kind": "rms-plus-one", "place": place},
            position={"type": "rotary"},
        )
    )
    embedding = {**template["model"]["embedding"], "scaled": True}
    return {**template, "model": {**template["model"], "embedding": embedding}}


class Gemma(Llama):
    """Gemma (Gemma Team 2024)."""

    name = "gemma"
    model_classes: ClassVar[tuple[str, ...]] = ("GemmaForCausalLM",)
    default_kv_heads: ClassVar[Any] = 16
    default_head_dim = 256
    tied_by_default = True
    template: ClassVar[Mapping[str, Any]] = gemma_template(place="pre")
    fields: ClassVar[tuple[ConfigField, ...]] = (
        *(field for field in Llama.fields if field.key != "hidden_act"),
        ConfigField(
            "hidden_act",
            "model.decoder.feed_forward.activation",
            str,
            "gelu_pytorch_tanh",
            value_map=_ACTIVATIONS,
        ),
    )
    used_keys: ClassVar[tuple[str, ...]] = (*Llama.used_keys, BOTH_SIDES)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Llama.ignored_keys,
        **ignored_keys({"transformers does not read it": "hidden_activation"}),
    }
    required_values = (
        *Llama.required_values,
        RequiredValue("mlp_bias", False, "Gemma has no bias in its feed-forward layers"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        both_sides = config.get(BOTH_SIDES)
        if both_sides not in (None, False):
            raise config_error(BOTH_SIDES, both_sides, "attention to later tokens is not supported")

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        del config["mlp_bias"]
