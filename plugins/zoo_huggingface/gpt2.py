"""GPT-2."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal_lm import CausalLMArchitecture
from zoo_huggingface.config_fields import ACTIVATIONS, ConfigField, RequiredValue, at, get_value


class Gpt2(CausalLMArchitecture):
    """GPT-2, whose texts begin as they are (Radford 2019)."""

    name = "gpt2"
    heads = ("GPT2LMHeadModel",)
    table = "transformer.wte.weight"
    begins = False
    tied = True
    ignored_paths = ("model.bos",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "language-model",
            "embedding": {"type": "token"},
            "decoder": {
                "type": "transformer",
                "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
                "feed_forward": {},
                "norm": {"place": "pre"},
                "position": {"type": "learned"},
            },
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    settings = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("n_embd", "model.embedding.dim"),
        ConfigField("n_layer", "model.decoder.layers"),
        ConfigField("n_head", "model.decoder.attention.heads"),
        ConfigField("n_positions", "model.decoder.position.length"),
        ConfigField(
            "activation_function",
            "model.decoder.feed_forward.activation",
            str,
            "gelu_new",
            words=ACTIVATIONS,
        ),
        ConfigField("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_pdrop", "model.decoder.dropout", float, 0.1),
        ConfigField("attn_pdrop", "model.decoder.attention.align.dropout", float, 0.1),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    only = (
        RequiredValue(
            "scale_attn_weights", True, "scores are divided by the root of the width here"
        ),
        RequiredValue("scale_attn_by_inverse_layer_idx", False, "all layers have one scale here"),
        RequiredValue("add_cross_attention", False, "the zoo takes it without a source"),
    )

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        super().to_spec(made, config)
        inner = get_value(config, "n_inner", int, None)
        width = made["model"]["embedding"]["dim"]
        made["model"]["decoder"]["feed_forward"]["hidden"] = inner or 4 * width

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().words(made, spec)
        made["n_inner"] = at(spec, "model.decoder.feed_forward.hidden")
