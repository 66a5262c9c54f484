"""GPT-NeoX and Pythia."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import ConfigField, get_path, get_value
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)

_NAMES = {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"}
"""Keys of rotary positions, and those of GPT-NeoX."""


class GptNeoX(CausalLMArchitecture):
    """GPT-NeoX (Black et al. 2022); its tokenizer adds no start token."""

    name = "gpt_neox"
    model_classes = ("GPTNeoXForCausalLM",)
    embedding_key = "gpt_neox.embed_in.weight"
    tied_weight_names = ("embed_out.weight",)
    adds_bos = False
    tied_by_default = False
    unchecked_spec_paths = ("model.bos",)
    rope: ClassVar[Rope] = Rope(part=0.25)
    template = language_model_template(
        transformer_template(norm={"place": "pre"}, position={"type": "rotary"})
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("num_hidden_layers", "model.decoder.layers"),
        ConfigField("num_attention_heads", "model.decoder.attention.heads"),
        ConfigField("intermediate_size", "model.decoder.feed_forward.hidden"),
        activation_field("hidden_act", "decoder", "gelu"),
        ConfigField("layer_norm_eps", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("hidden_dropout", "model.decoder.dropout", float, 0.0),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("attention_bias", "model.decoder.attention.bias", bool, True),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
        ConfigField(
            "use_parallel_residual",
            "model.decoder.sublayers",
            bool,
            True,
            value_map={True: "parallel", False: "sequential"},
        ),
    )
    used_keys = (
        *CausalLMArchitecture.used_keys,
        *("rope_parameters", "rope_scaling", "max_position_embeddings", *_NAMES.values()),
    )
    required_values = CausalLMArchitecture.causal_values

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        named = {key: config[own] for key, own in _NAMES.items() if own in config}
        length = get_value(config, "max_position_embeddings", int, 2048)
        rope = {**config, **named, "max_position_embeddings": length}
        spec["model"]["decoder"]["position"] |= self.rope.read(rope)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        self.require(spec, "model.decoder.position.theta")
        position = get_path(spec, "model.decoder.position")
        self.rope.write(config, position)
        config["rotary_emb_base"] = config.pop("rope_theta")
        config["rotary_pct"] = position.get("part", 1.0)
