"""Whisper."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_eos_id,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.speech.feature_extractor import read_feature_extractor
from zoo_huggingface.speech.whisper_generation import whisper_filters
from zoo_huggingface.templates import BOTH, activation_field, transformer_template

_TRANSFORMER = transformer_template(
    attention={"scorer": "scaled-dot", "align": {"type": "soft"}, "bias": "qvo"},
    norm={"place": "pre"},
    position={"type": "learned"},
)


class Whisper(Architecture):
    """Whisper for speech recognition and translation of up to 30 s (Radford et al. 2023)."""

    name = "whisper"
    model_classes = ("WhisperForConditionalGeneration",)
    embedding_key = "model.decoder.embed_tokens.weight"
    tied_weight_names = ("proj_out.weight",)
    dim_path = "model.target.dim"
    padding_path = "model.target.padding"
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "seq2seq",
            "source": {
                "type": "convolved",
                "inner": {"type": "padded-log-mel"},
                "kernels": [3, 3],
                "strides": [1, 2],
            },
            "target": {"type": "token"},
            "encoder": _TRANSFORMER,
            "decoder": {**_TRANSFORMER, "output": {"tied": True}},
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    fields = (
        ConfigField("vocab_size", "model.target.vocab"),
        ConfigField("d_model", "model.target.dim model.source.dim"),
        ConfigField("num_mel_bins", "model.source.inner.mels", int, 80),
        ConfigField("max_source_positions", "model.encoder.position.length", int, 1500),
        ConfigField("max_target_positions", "model.decoder.position.length", int, 448),
        ConfigField("encoder_layers", "model.encoder.layers"),
        ConfigField("decoder_layers", "model.decoder.layers"),
        ConfigField("encoder_attention_heads", "model.encoder.attention.heads"),
        ConfigField("decoder_attention_heads", "model.decoder.attention.heads"),
        ConfigField("encoder_ffn_dim", "model.encoder.feed_forward.hidden"),
        ConfigField("decoder_ffn_dim", "model.decoder.feed_forward.hidden"),
        activation_field("activation_function", BOTH, "gelu"),
        ConfigField("decoder_start_token_id", "model.bos", minimum=0),
        ConfigField("dropout", BOTH.format("dropout"), float, 0.0),
        ConfigField("attention_dropout", BOTH.format("attention.align.dropout"), float, 0.0),
        ConfigField("init_std", "model.target.std", float, 0.02),
    )
    generates = True
    start_keys = ("decoder_start_token_id",)
    used_keys = ("eos_token_id", "feature_extractor", "forced_decoder_ids", "pad_token_id")
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects training only": """
                activation_dropout apply_spec_augment decoder_layerdrop encoder_layerdrop
                mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length
                mask_time_min_masks mask_time_prob
                """,
            "heads of other tasks use it": "classifier_proj_size use_weighted_layer_sum",
            "only timestamps of words use it": "median_filter_width",
            "transformers does not read it": "bos_token_id scale_embedding",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
        "num_key_value_heads": "encoder_attention_heads",
    }
    required_values = (
        RequiredValue("is_encoder_decoder", True, "the model has an encoder and a decoder"),
        RequiredValue("tie_word_embeddings", True, "the output should share the table"),
    )

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        result = dict(super().read_folder(config, folder, ignore))
        generation = dict(result["generation"])
        if generation.get("forced_decoder_ids") is None:
            generation["forced_decoder_ids"] = config.get("forced_decoder_ids")
        return result | {"generation": generation} | read_feature_extractor(folder)

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        if config.get("untied"):
            raise config_error(
                "tie_word_embeddings", True, f"but '{self.tied_weight_names[0]}' differs from it"
            )
        model["eos"] = get_eos_id(config)
        padding = get_value(config, "pad_token_id", int, None)
        # Published models pad with the end token.
        model["target"]["padding"] = None if padding == model["eos"] else padding
        inner = model["source"]["inner"]
        inner["frames"] = 2 * model["encoder"]["position"]["length"]
        inner |= config.get("feature_extractor", {})
        rate, hop = inner.get("rate", 16000), inner.get("hop", 160)
        seconds = inner["frames"] * hop / rate
        spec["preprocessing"] = {
            "source": {"type": "audio", "rate": rate, "resample": True, "max_seconds": seconds}
        }

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        """The padding of the tokenizer is not used: only targets are padded."""

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        eos, padding = get_path(spec, "model.eos"), get_path(spec, "model.target.padding")
        config |= {"eos_token_id": eos, "pad_token_id": eos if padding is None else padding}
        config["is_encoder_decoder"] = True
        # The default of transformers suppresses tokens of the published English models.
        config.setdefault("begin_suppress_tokens", None)

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        inner = get_path(spec, "model.source.inner")
        return {"feature_extractor": {key: inner[key] for key in ("rate", "window", "hop")}}

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path]:
        file = folder / "tokenizer.json"
        return {"target": file} if file.is_file() else {}

    def generation_sections(
        self, spec: Mapping[str, Any], generation: Mapping[str, Any], *, prompt: int = 1
    ) -> dict[str, Any]:
        own, others, prompt = whisper_filters(generation)
        sections = super().generation_sections(spec, others, prompt=prompt)
        return {**sections, "filters": [*own, *sections.get("filters", [])]} if own else sections
