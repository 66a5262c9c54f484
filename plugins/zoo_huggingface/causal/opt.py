"""OPT."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)


class Opt(CausalLMArchitecture):
    """OPT (Zhang et al. 2022); the first two rows of its position table are not used."""

    name = "opt"
    model_classes = ("OPTForCausalLM",)
    embedding_key = "model.decoder.embed_tokens.weight"
    adds_bos = True
    tied_by_default = True
    template = language_model_template(
        transformer_template(norm={"place": "pre"}, position={"type": "learned"})
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("num_hidden_layers", "model.decoder.layers"),
        ConfigField("num_attention_heads", "model.decoder.attention.heads"),
        ConfigField("ffn_dim", "model.decoder.feed_forward.hidden"),
        ConfigField("max_position_embeddings", "model.decoder.position.length"),
        activation_field("activation_function", "decoder", "relu"),
        ConfigField("dropout", "model.decoder.dropout", float, 0.1),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("init_std", "model.embedding.std", float, 0.02),
    )
    used_keys = (
        *CausalLMArchitecture.used_keys,
        *("do_layer_norm_before", "_remove_final_layer_norm"),
        *("enable_bias", "word_embed_proj_dim"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects training only": "layerdrop",
            "transformers does not read it": "activation_dropout output_projection",
        }
    )
    required_values = (
        *CausalLMArchitecture.causal_values,
        RequiredValue(
            "layer_norm_elementwise_affine", True, "norms without weights are not supported"
        ),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        model = spec["model"]
        decoder, embedding = model["decoder"], model["embedding"]
        before = get_value(config, "do_layer_norm_before", bool, True)
        removed = get_value(config, "_remove_final_layer_norm", bool, False)
        decoder["norm"] = {"place": "pre" if before else "post", "final": before and not removed}
        bias = get_value(config, "enable_bias", bool, True)
        decoder["attention"]["bias"] = decoder["feed_forward"]["bias"] = bias
        inner = get_value(config, "word_embed_proj_dim", int, None) or embedding["dim"]
        if inner != embedding["dim"]:
            if not decoder["output"]["tied"]:
                raise config_error(
                    "word_embed_proj_dim", inner, "it is not supported with an untied output"
                )
            embedding |= {"inner_dim": inner, "output_map": True}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        norm = get_path(spec, "model.decoder.norm")
        before = norm is not None and norm["place"] == "pre"
        config["do_layer_norm_before"] = before
        config["_remove_final_layer_norm"] = before and norm["final"] is False
        config["enable_bias"] = get_path(spec, "model.decoder.attention.bias") is True
        embedding = get_path(spec, "model.embedding")
        config["word_embed_proj_dim"] = embedding.get("inner_dim") or embedding["dim"]
