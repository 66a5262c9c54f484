"""GPT-2 as the decoder of vision-encoder-decoder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.gpt2 import Gpt2
from zoo_huggingface.config_fields import RequiredValue, get_path, get_value
from zoo_huggingface.vision.decoder_part import DecoderPart


class Gpt2Decoder(DecoderPart):
    """GPT-2 with cross-attention to an encoder of its width."""

    name = "gpt2"
    model_classes = Gpt2.model_classes
    embedding_key = "decoder.transformer.wte.weight"
    tied_weight_names = ("decoder.lm_head.weight",)
    template: ClassVar[Mapping[str, Any]] = {
        "target": {"type": "token"},
        "decoder": Gpt2.template["model"]["decoder"],
    }
    fields = tuple(
        replace(field, paths=field.paths.replace("model.embedding", "model.target"))
        for field in Gpt2.fields
    )
    used_keys = (*DecoderPart.used_keys, "add_cross_attention", "n_inner", "pad_token_id")
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **DecoderPart.ignored_keys,
        **Gpt2.ignored_keys,
        "is_decoder": "the model is causal",
    }
    aliases = Gpt2.aliases
    required_values = (
        *(value for value in Gpt2.required_values if value.key != "add_cross_attention"),
        RequiredValue("add_cross_attention", True, "the decoder should attend to the image"),
    )

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        padding, model = get_value(config, "pad_token_id", int, None), spec["model"]
        model["target"]["padding"] = None if padding == model["eos"] else padding

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        inner, model = get_value(config, "n_inner", int, None), spec["model"]
        model["decoder"]["feed_forward"]["hidden"] = inner or 4 * model["target"]["dim"]

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["add_cross_attention"] = True
        config["n_inner"] = get_path(spec, "model.decoder.feed_forward.hidden")
        config["pad_token_id"] = get_path(spec, "model.target.padding")
