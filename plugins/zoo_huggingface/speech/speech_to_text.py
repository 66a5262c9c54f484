"""Speech2Text of fairseq."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_eos_id,
    get_list,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.speech.feature_extractor import read_filter_bank
from zoo_huggingface.templates import BOTH, activation_field, transformer_template

_TRANSFORMER = transformer_template(
    norm={"place": "pre"},
    position={"type": "sinusoidal", "layout": "halves", "exponents": "tensor2tensor"},
)
_RATE = 16000


class Speech2Text(Architecture):
    """Speech2Text for speech recognition and translation (Wang et al. 2020)."""

    name = "speech_to_text"
    model_classes = ("Speech2TextForConditionalGeneration",)
    embedding_key = "model.decoder.embed_tokens.weight"
    tied_weight_names = ("lm_head.weight",)
    dim_path = "model.target.dim"
    padding_path = "model.target.padding"
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "seq2seq",
            "source": {"type": "convolved", "inner": {"type": "fbank"}, "activation": "glu"},
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
        ConfigField("input_feat_per_channel", "model.source.inner.mels", int, 80),
        ConfigField("encoder_layers", "model.encoder.layers"),
        ConfigField("decoder_layers", "model.decoder.layers"),
        ConfigField("encoder_attention_heads", "model.encoder.attention.heads"),
        ConfigField("decoder_attention_heads", "model.decoder.attention.heads"),
        ConfigField("encoder_ffn_dim", "model.encoder.feed_forward.hidden"),
        ConfigField("decoder_ffn_dim", "model.decoder.feed_forward.hidden"),
        activation_field("activation_function", BOTH, "relu"),
        ConfigField("scale_embedding", "model.target.scaled model.source.scaled", bool, True),
        ConfigField("decoder_start_token_id", "model.bos", int, 2, minimum=0),
        # Frames have the position of padding if its ID is 0.
        ConfigField("pad_token_id", "model.target.padding", int, 1, minimum=1),
        ConfigField("dropout", BOTH.format("dropout"), float, 0.1),
        ConfigField("attention_dropout", BOTH.format("attention.align.dropout"), float, 0.0),
        ConfigField("init_std", "model.target.std", float, 0.02),
    )
    generates = True
    generates_padding = False
    start_keys = ("decoder_start_token_id",)
    used_keys = (
        *("eos_token_id", "feature_extractor"),
        *("conv_channels", "conv_kernel_sizes", "num_conv_layers"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects training only": "activation_dropout decoder_layerdrop encoder_layerdrop",
            "sinusoidal positions are computed": "max_source_positions max_target_positions",
            "transformers does not read it": "bos_token_id",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers",
    }
    required_values = (
        RequiredValue("is_encoder_decoder", True, "the model has an encoder and a decoder"),
        RequiredValue("tie_word_embeddings", True, "the output should share the table"),
        RequiredValue("input_channels", 1, "audio should have one channel"),
    )

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        return {**super().read_folder(config, folder, ignore), **read_filter_bank(folder)}

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        if config.get("untied"):
            raise config_error(
                "tie_word_embeddings", True, f"but '{self.tied_weight_names[0]}' differs from it"
            )
        model["eos"] = get_eos_id(config)
        padding = model["target"]["padding"]
        if model["bos"] == padding:
            raise config_error(
                "decoder_start_token_id", padding, "it should differ from pad_token_id"
            )
        for side in ("encoder", "decoder"):
            model[side]["position"]["start"] = padding + 1
        self._set_convolutions(model["source"], config)
        model["source"]["inner"] |= config.get("feature_extractor", {})
        spec["preprocessing"] = {"source": {"type": "audio", "rate": _RATE, "resample": True}}

    def _set_convolutions(self, source: dict[str, Any], config: Config) -> None:
        kernels = get_list(config, "conv_kernel_sizes", int) or [5, 5]
        count = get_value(config, "num_conv_layers", int, len(kernels))
        if count != len(kernels) or any(kernel < 1 or kernel % 2 == 0 for kernel in kernels):
            raise config_error(
                "conv_kernel_sizes", kernels, f"it should have num_conv_layers ({count}) odd sizes"
            )
        channels = get_value(config, "conv_channels", int, 1024)
        if channels < 2 or channels % 2:
            raise config_error("conv_channels", channels, "it should be even")
        source |= {"kernels": kernels, "strides": [2] * count, "channels": channels // 2}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        source = get_path(spec, "model.source")
        config |= {"eos_token_id": get_path(spec, "model.eos"), "is_encoder_decoder": True}
        config["conv_kernel_sizes"] = list(source["kernels"])
        config["num_conv_layers"] = len(source["kernels"])
        config["conv_channels"] = 2 * (source["channels"] or source["dim"])

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        inner = get_path(spec, "model.source.inner")
        keys = ("subtract_means", "divide_deviations")
        return {"feature_extractor": {key: inner[key] for key in keys}}

    def tokenizers(self, folder: Path, config: Config) -> Mapping[str, Path]:
        file = folder / "tokenizer.json"
        return {"target": file} if file.is_file() else {}
