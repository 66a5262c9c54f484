"""T5, versions 1.0 and 1.1."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Architecture, Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_eos_id,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import ACTIVATIONS, BOTH, seq2seq_template, transformer_template

_TRANSFORMER = transformer_template(
    attention={"scorer": "dot", "align": {"type": "soft"}, "bias": False},
    feed_forward={"bias": False},
    norm={"kind": "rms", "place": "pre"},
    position={"type": "t5"},
)
_GATED = "gated-"


class T5(Architecture):
    """T5: unscaled attention scores, optionally a scaled output (Raffel et al. 2020)."""

    name = "t5"
    model_classes = ("T5ForConditionalGeneration",)
    embedding_key = "shared.weight"
    tied_weight_names = (
        "lm_head.weight",
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
    )
    template = seq2seq_template(_TRANSFORMER, _TRANSFORMER)
    fields = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("d_model", "model.source.dim"),
        ConfigField("d_kv", BOTH.format("attention.head_dim")),
        ConfigField("d_ff", BOTH.format("feed_forward.hidden")),
        ConfigField("num_layers", "model.encoder.layers"),
        ConfigField("num_heads", BOTH.format("attention.heads")),
        ConfigField("relative_attention_num_buckets", BOTH.format("position.buckets"), int, 32),
        ConfigField(
            "relative_attention_max_distance", BOTH.format("position.max_distance"), int, 128
        ),
        ConfigField("layer_norm_epsilon", BOTH.format("norm.eps"), float, 1e-6),
        ConfigField("dropout_rate", BOTH.format("dropout"), float, 0.1),
        ConfigField("pad_token_id", "model.source.padding", int, 0, minimum=0),
    )

    default_projection: ClassVar[str] = "relu"
    """The default of `feed_forward_proj`."""
    generates = True
    start_keys = ("decoder_start_token_id",)
    used_keys = (
        *("decoder_start_token_id", "dense_act_fn", "eos_token_id", "feed_forward_proj"),
        *("is_gated_act", "num_decoder_layers", "scale_decoder_outputs", "tie_word_embeddings"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects initialisation only": "initializer_factor",
            "relative positions are not limited": "n_positions",
            "transformers does not read it": "bos_token_id",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "head_dim": "d_kv",
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
    }
    required_values = (
        RequiredValue("is_encoder_decoder", True, "T5 has an encoder and a decoder"),
    )

    def map(self, config: Config) -> dict[str, Any]:
        tensor_map: dict[str, Any] = yaml.safe_load((MAPS / "t5.yaml").read_text(encoding="utf-8"))
        _, gated = self._read_activation(config)
        for side, layer in (("encoder", 1), ("decoder", 2)):
            ours = f"{side}.blocks.{{n}}.feed_forward"
            theirs = f"{side}.block.{{n}}.layer.{layer}.DenseReluDense"
            tensor_map["rename"] |= (
                {f"{ours}.{{p:gate|up}}.weight": f"{theirs}.{{p:wi_0|wi_1}}.weight"}
                if gated
                else {f"{ours}.up.weight": f"{theirs}.wi.weight"}
            )
        return tensor_map

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model = spec["model"]
        layers = get_value(config, "num_decoder_layers", int, None)
        model["decoder"]["layers"] = layers or model["encoder"]["layers"]
        start = get_value(config, "decoder_start_token_id", int, None)
        model["bos"] = model["source"]["padding"] if start is None else start
        model["source"]["train_padding"] = True
        model["eos"] = get_eos_id(config)
        name, gated = self._read_activation(config)
        for side in ("encoder", "decoder"):
            model[side]["feed_forward"] |= {"activation": ACTIVATIONS[name], "gated": gated}
        scale = model["source"]["dim"] ** -0.5 if self.scales_output(config) else 1.0
        model["decoder"]["output"] = {"tied": not config.get("untied"), "scale": scale}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        config["num_decoder_layers"] = get_path(spec, "model.decoder.layers")
        config["decoder_start_token_id"] = get_path(spec, "model.bos")
        config["eos_token_id"] = get_path(spec, "model.eos")
        config["is_encoder_decoder"] = True
        feed_forward = get_path(spec, "model.encoder.feed_forward")
        name = next(k for k, ours in ACTIVATIONS.items() if ours == feed_forward["activation"])
        projection = f"{_GATED}{name}" if feed_forward["gated"] else name
        is_gated_gelu = projection == "gated-gelu_new"
        config["feed_forward_proj"] = "gated-gelu" if is_gated_gelu else projection
        config |= {"dense_act_fn": name, "is_gated_act": feed_forward["gated"]}
        self.write_scale(config, get_path(spec, "model.decoder.output.scale") not in (None, 1.0))

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"untied": get_path(spec, "model.decoder.output.tied") is not True}

    def scales_output(self, config: Config) -> bool:
        """Return whether states are scaled before the output, as in version 1.0, which ties it."""
        tied = config.get("tie_word_embeddings", True) is not False
        scaled: bool = get_value(config, "scale_decoder_outputs", bool, tied)
        return scaled

    def write_scale(self, config: dict[str, Any], scaled: bool) -> None:
        """Set the keys of a config that `scales_output` reads."""
        # transformers 4 reads only the first, and unties by it; 5 reads both, and ties by the file.
        config |= {"tie_word_embeddings": scaled, "scale_decoder_outputs": scaled}

    def _read_activation(self, config: Config) -> tuple[str, bool]:
        """Return the activation and whether it is gated; `dense_act_fn` overrides the first."""
        projection = get_value(config, "feed_forward_proj", str, self.default_projection)
        name = "gelu_new" if projection == "gated-gelu" else projection.removeprefix(_GATED)
        key = "feed_forward_proj" if config.get("dense_act_fn") is None else "dense_act_fn"
        name = get_value(config, "dense_act_fn", str, None) or name
        gated: bool = get_value(config, "is_gated_act", bool, projection.startswith(_GATED))
        if name not in ACTIVATIONS:
            supported = ", ".join(ACTIVATIONS)
            raise config_error(key, config.get(key), f"supported, also gated: {supported}")
        return name, gated
