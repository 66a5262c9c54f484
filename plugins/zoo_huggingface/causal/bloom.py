"""BLOOM."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import language_model_template, transformer_template


class Bloom(CausalLMArchitecture):
    """BLOOM (BigScience 2022); its tokenizer adds no start token."""

    name = "bloom"
    model_classes = ("BloomForCausalLM",)
    embedding_key = "transformer.word_embeddings.weight"
    adds_bos = False
    tied_by_default = True
    unchecked_spec_paths = ("model.bos",)
    template = language_model_template(
        transformer_template(
            feed_forward={"activation": "gelu-tanh"},
            norm={"place": "pre", "embedding": True},
            position={"type": "alibi"},
        )
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("n_layer", "model.decoder.layers"),
        ConfigField("n_head", "model.decoder.attention.heads"),
        ConfigField("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("hidden_dropout", "model.decoder.dropout", float, 0.0),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "transformers does not read it": """
                attention_softmax_in_fp32 bias_dropout_fusion masked_softmax_fusion offset_alibi
                seq_length skip_bias_add skip_bias_add_qkv unk_token_id
                """,
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "n_embed": "hidden_size",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    }
    required_values = (
        *CausalLMArchitecture.causal_values,
        RequiredValue("slow_but_exact", False, "products by parts are not supported"),
        RequiredValue(
            "apply_residual_connection_post_layernorm",
            False,
            "residual sums with the output of norms are not supported",
        ),
    )

    def spec(self, config: Config) -> dict[str, Any]:
        # Published configs have the other names only.
        renamed = {key: config[alias] for alias, key in self.aliases.items() if alias in config}
        return super().spec({**renamed, **config})

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        model = spec["model"]
        model["decoder"]["feed_forward"]["hidden"] = 4 * model["embedding"]["dim"]
