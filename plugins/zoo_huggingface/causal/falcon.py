"""Falcon."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.causal.rope import Rope
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


class Falcon(CausalLMArchitecture):
    """Falcon with rotary positions (Almazrouei et al. 2023); its tokenizer adds no start token."""

    name = "falcon"
    model_classes = ("FalconForCausalLM",)
    embedding_key = "transformer.word_embeddings.weight"
    adds_bos = False
    tied_by_default = True
    unchecked_spec_paths = ("model.bos",)
    rope: ClassVar[Rope] = Rope()
    template = language_model_template(
        transformer_template(norm={"place": "pre"}, position={"type": "rotary"})
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("num_hidden_layers", "model.decoder.layers"),
        ConfigField("num_attention_heads", "model.decoder.attention.heads"),
        activation_field("activation", "decoder", "gelu"),
        ConfigField("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("hidden_dropout", "model.decoder.dropout", float, 0.0),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField(
            "bias", "model.decoder.attention.bias model.decoder.feed_forward.bias", bool, False
        ),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    used_keys = (
        *CausalLMArchitecture.used_keys,
        *("rope_parameters", "rope_scaling", "rope_theta", "max_position_embeddings"),
        *("ffn_hidden_size", "multi_query", "new_decoder_architecture", "num_kv_heads"),
        *("num_ln_in_parallel_attn", "parallel_attn"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {"transformers does not read it": "apply_residual_connection_post_layernorm"}
    )
    harmless_values: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **CausalLMArchitecture.harmless_values,
        "ff_factor": (4,),
    }
    required_values = (
        *CausalLMArchitecture.causal_values,
        RequiredValue("alibi", False, "ALiBi with slopes in bfloat16 is not supported"),
    )

    def map(self, config: Config) -> Any:
        tensor_map = yaml.safe_load((MAPS / "falcon.yaml").read_text(encoding="utf-8"))
        heads = get_value(config, "num_attention_heads", int)
        kv_heads = _read_kv_heads(config, heads)
        tensor_map["values"] |= {"groups": kv_heads, "queries": heads // kv_heads}
        first, second = {
            "parallel": ("ln_attn", "ln_mlp"),
            "parallel-shared": ("input_layernorm", ""),
            "sequential": ("input_layernorm", "post_attention_layernorm"),
        }[_read_sublayers(config)]
        for name, theirs in (("attention", first), ("feed_forward", second)):
            if theirs:
                ours = f"decoder.blocks.{{n}}.{name}_norm.{{w:weight|bias}}"
                tensor_map["rename"][ours] = f"transformer.h.{{n}}.{theirs}.{{w}}"
        return tensor_map

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        heads, width = decoder["attention"]["heads"], spec["model"]["embedding"]["dim"]
        decoder["attention"]["kv_heads"] = _read_kv_heads(config, heads)
        inner = get_value(config, "ffn_hidden_size", int, None)
        decoder["feed_forward"]["hidden"] = inner or 4 * width
        decoder["sublayers"] = _read_sublayers(config)
        length = get_value(config, "max_position_embeddings", int, 2048)
        decoder["position"] |= self.rope.read({**config, "max_position_embeddings": length})

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        decoder = get_path(spec, "model.decoder")
        heads = decoder["attention"]["heads"]
        kv_heads = decoder["attention"]["kv_heads"] or heads
        is_new = decoder["sublayers"] == "parallel" or kv_heads not in (1, heads)
        if decoder["sublayers"] == "parallel-shared":  # both forms are possible
            is_new = is_new or config.get("new_decoder_architecture") is True
        config |= {
            "new_decoder_architecture": is_new,
            "multi_query": kv_heads == 1,
            "num_kv_heads": kv_heads if is_new else heads,
            "parallel_attn": decoder["sublayers"] != "sequential",
            "num_ln_in_parallel_attn": 2 if decoder["sublayers"] == "parallel" else 1,
            "ffn_hidden_size": decoder["feed_forward"]["hidden"],
        }
        self.require(spec, "model.decoder.position.theta")
        self.rope.write(config, decoder["position"])


def _read_kv_heads(config: Config, heads: int) -> int:
    kv_heads: int = get_value(config, "num_kv_heads", int, None) or heads
    if get_value(config, "new_decoder_architecture", bool, False):
        if kv_heads < 1 or heads % kv_heads:
            raise config_error("num_kv_heads", kv_heads, f"num_attention_heads is {heads}")
        return kv_heads
    if get_value(config, "multi_query", bool, True):
        return 1
    if kv_heads != heads:
        raise config_error("num_kv_heads", kv_heads, "it requires new_decoder_architecture")
    return heads


def _read_sublayers(config: Config) -> str:
    is_new = get_value(config, "new_decoder_architecture", bool, False)
    norms = get_value(config, "num_ln_in_parallel_attn", int, None) or (2 if is_new else 1)
    if not get_value(config, "parallel_attn", bool, True):
        if is_new:
            raise config_error(
                "parallel_attn", False, "it should be true with new_decoder_architecture"
            )
        return "sequential"
    if norms not in (1, 2) or (norms == 2 and not is_new):
        raise config_error(
            "num_ln_in_parallel_attn", norms, "it should be 1, or 2 with new_decoder_architecture"
        )
    return "parallel" if norms == 2 else "parallel-shared"
