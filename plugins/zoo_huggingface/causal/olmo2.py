"""OLMo 2: norms on the output of sublayers, and of all heads of queries and keys."""

from typing import Any

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.templates import language_model_template, transformer_template


class Olmo2(Llama):
    """OLMo 2 (OLMo Team 2024); its tokenizer adds no start token."""

    name = "olmo2"
    model_classes = ("Olmo2ForCausalLM",)
    adds_bos = False
    unchecked_spec_paths = ("model.bos",)
    template = language_model_template(
        transformer_template(
            attention={
                "scorer": "scaled-dot",
                "align": {"type": "soft"},
                "norm": {"kind": "rms", "over": "all"},
            },
            feed_forward={"gated": True, "bias": False},
            norm={"kind": "rms", "place": "output"},
            position={"type": "rotary"},
        )
    )
    fields = (
        *(field for field in Llama.fields if field.key != "rms_norm_eps"),
        ConfigField(
            "rms_norm_eps",
            "model.decoder.norm.eps model.decoder.attention.norm.eps",
            float,
            1e-5,
        ),
    )
    required_values = (
        *Llama.required_values,
        RequiredValue("mlp_bias", False, "OLMo 2 has no bias in its feed-forward layers"),
    )

    def map(self, config: Config) -> Any:
        return MAPS / "olmo2.yaml"
