"""GPT-2."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import ConfigField, RequiredValue, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)


class Gpt2(CausalLMArchitecture):
    """GPT-2 (Radford et al. 2019). Its tokenizer does not add a bos token.

    `embd_pdrop` is not imported: the dropout of the decoder, from `resid_pdrop`, is applied to the
    embeddings as well.
    """

    name = "gpt2"
    model_classes = ("GPT2LMHeadModel",)
    embedding_key = "transformer.wte.weight"
    adds_bos = False
    tied_by_default = True
    unchecked_spec_paths = ("model.bos",)  # bos_token_id is not read (adds_bos)
    template = language_model_template(
        transformer_template(norm={"place": "pre"}, position={"type": "learned"})
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("n_embd", "model.embedding.dim"),
        ConfigField("n_layer", "model.decoder.layers"),
        ConfigField("n_head", "model.decoder.attention.heads"),
        ConfigField("n_positions", "model.decoder.position.length"),
        activation_field("activation_function", "decoder", "gelu_new"),
        ConfigField("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_pdrop", "model.decoder.dropout", float, 0.1),
        ConfigField("attn_pdrop", "model.decoder.attention.align.dropout", float, 0.1),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    used_keys = (*CausalLMArchitecture.used_keys, "n_inner")
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "heads of other tasks use it": """
                summary_activation summary_first_dropout summary_proj_to_labels summary_type
                summary_use_proj predict_special_tokens
                """,
            "the dropout of the decoder is applied instead": "embd_pdrop",
            "n_positions is the number of positions": "n_ctx",
            "transformers does not read it": "n_special",
            "it selects an implementation of the same function": "reorder_and_upcast_attn",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    required_values = (
        *CausalLMArchitecture.causal_values,
        RequiredValue("scale_attn_weights", True, "unscaled attention scores are not supported"),
        RequiredValue(
            "scale_attn_by_inverse_layer_idx",
            False,
            "scaling of attention scores by the layer index is not supported",
        ),
        RequiredValue("add_cross_attention", False, "cross-attention is not supported"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        inner = get_value(config, "n_inner", int, None)
        width = spec["model"]["embedding"]["dim"]
        spec["model"]["decoder"]["feed_forward"]["hidden"] = inner or 4 * width

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["n_inner"] = get_path(spec, "model.decoder.feed_forward.hidden")
