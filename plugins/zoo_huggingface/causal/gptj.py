"""GPT-J."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import ConfigField, config_error, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)


class GptJ(CausalLMArchitecture):
    """GPT-J (Wang and Komatsuzaki 2021); its tokenizer adds no start token."""

    name = "gptj"
    model_classes = ("GPTJForCausalLM",)
    embedding_key = "transformer.wte.weight"
    adds_bos = False
    tied_by_default = False
    unchecked_spec_paths = ("model.bos",)
    template = language_model_template(
        transformer_template(
            attention={"scorer": "scaled-dot", "align": {"type": "soft"}, "bias": False},
            norm={"place": "pre"},
            position={"type": "rotary", "layout": "interleaved"},
            sublayers="parallel-shared",
        )
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("n_embd", "model.embedding.dim"),
        ConfigField("n_layer", "model.decoder.layers"),
        ConfigField("n_head", "model.decoder.attention.heads"),
        activation_field("activation_function", "decoder", "gelu_new"),
        ConfigField("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_pdrop", "model.decoder.dropout", float, 0.0),
        ConfigField("attn_pdrop", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    used_keys = (*CausalLMArchitecture.used_keys, "n_inner", "rotary_dim")
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "heads of other tasks use it": """
                summary_activation summary_first_dropout summary_proj_to_labels summary_type
                summary_use_proj
                """,
            "the dropout of the decoder is applied instead": "embd_pdrop",
            "rotary positions are not limited": "n_positions n_ctx",
            "transformers does not read it": "rotary scale_attn_weights",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    required_values = CausalLMArchitecture.causal_values

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        model = spec["model"]
        decoder, width = model["decoder"], model["embedding"]["dim"]
        inner = get_value(config, "n_inner", int, None)
        decoder["feed_forward"]["hidden"] = inner or 4 * width
        decoder["output"]["bias"] = True
        head_dim = width // decoder["attention"]["heads"]
        rotated = get_value(config, "rotary_dim", int, 64)
        if not 0 < rotated <= head_dim or rotated % 2:
            raise config_error(
                "rotary_dim", rotated, f"it should be even and at most n_embd / n_head ({head_dim})"
            )
        if rotated < head_dim:
            decoder["position"]["part"] = rotated / head_dim

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["n_inner"] = get_path(spec, "model.decoder.feed_forward.hidden")
        attention = get_path(spec, "model.decoder.attention")
        head_dim = attention["head_dim"] or get_path(spec, self.dim_path) // attention["heads"]
        part = self.require(spec, "model.decoder.position.part")
        config["rotary_dim"] = round(part * head_dim)
