"""T5, as it was and as version 1.1."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Architecture, Config
from zoo_huggingface.config_fields import (
    ACTIVATIONS,
    ConfigField,
    at,
    config_error,
    get_eos_id,
    get_value,
)

_PART: Mapping[str, Any] = {
    "type": "transformer",
    "attention": {"scorer": "dot", "align": {"type": "soft"}, "bias": False},
    "feed_forward": {"bias": False},
    "norm": {"kind": "rms", "place": "pre"},
    "position": {"type": "t5"},
}
_BOTH = "model.encoder.{0} model.decoder.{0}"
_GATED = "gated-"


class T5(Architecture):
    """T5, whose scores have no scale and whose output may have one (Raffel 2020)."""

    name = "t5"
    heads = ("T5ForConditionalGeneration",)
    table = "shared.weight"
    tied_weight_names = (
        "lm_head.weight",
        "encoder.embed_tokens.weight",
        "decoder.embed_tokens.weight",
    )
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "seq2seq",
            "source": {"type": "token"},
            "shared": True,
            "encoder": _PART,
            "decoder": _PART,
        },
        "sampler": "greedy",
        "objective": "cross-entropy",
    }
    settings = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("d_model", "model.source.dim"),
        ConfigField("d_kv", _BOTH.format("attention.head_dim")),
        ConfigField("d_ff", _BOTH.format("feed_forward.hidden")),
        ConfigField("num_layers", "model.encoder.layers"),
        ConfigField("num_heads", _BOTH.format("attention.heads")),
        ConfigField("relative_attention_num_buckets", _BOTH.format("position.buckets"), int, 32),
        ConfigField(
            "relative_attention_max_distance", _BOTH.format("position.max_distance"), int, 128
        ),
        ConfigField("layer_norm_epsilon", _BOTH.format("norm.eps"), float, 1e-6),
        ConfigField("dropout_rate", _BOTH.format("dropout"), float, 0.1),
        ConfigField("pad_token_id", "model.source.padding", int, 0, least=0),
    )

    def map(self, config: Config) -> dict[str, Any]:
        mapped: dict[str, Any] = yaml.safe_load((MAPS / "t5.yaml").read_text(encoding="utf-8"))
        gated = get_value(config, "feed_forward_proj", str, "relu").startswith(_GATED)
        for side, last in (("encoder", 1), ("decoder", 2)):
            ours = f"{side}.blocks.{{n}}.feed_forward"
            theirs = f"{side}.block.{{n}}.layer.{last}.DenseReluDense"
            mapped["rename"] |= (
                {f"{ours}.{{p:gate|up}}.weight": f"{theirs}.{{p:wi_0|wi_1}}.weight"}
                if gated
                else {f"{ours}.up.weight": f"{theirs}.wi.weight"}
            )
        return mapped

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        model = made["model"]
        layers = get_value(config, "num_decoder_layers", int, None)
        model["decoder"]["layers"] = layers or model["encoder"]["layers"]
        start = get_value(config, "decoder_start_token_id", int, None)
        model["bos"] = model["source"]["padding"] if start is None else start
        model["eos"] = get_eos_id(config)
        kind = get_value(config, "feed_forward_proj", str, "relu")
        word = "gelu_new" if kind == "gated-gelu" else kind.removeprefix(_GATED)
        if word not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise config_error(
                "feed_forward_proj", kind, f"the zoo can express, gated or not: {known}"
            )
        feed_forward = {"activation": ACTIVATIONS[word], "gated": kind.startswith(_GATED)}
        for part in ("encoder", "decoder"):
            model[part]["feed_forward"] |= feed_forward
        scale = model["source"]["dim"] ** -0.5 if _scales_output(config) else 1.0
        model["decoder"]["output"] = {"tied": not config.get("untied"), "scale": scale}

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        made["num_decoder_layers"] = at(spec, "model.decoder.layers")
        made["decoder_start_token_id"] = at(spec, "model.bos")
        made["eos_token_id"] = at(spec, "model.eos")
        made["is_encoder_decoder"] = True
        feed_forward = at(spec, "model.encoder.feed_forward")
        word = next(w for w, ours in ACTIVATIONS.items() if ours == feed_forward["activation"])
        kind = f"{_GATED}{word}" if feed_forward["gated"] else word
        made["feed_forward_proj"] = "gated-gelu" if kind == "gated-gelu_new" else kind
        scaled = at(spec, "model.decoder.output.scale") not in (None, 1.0)
        # transformers 4 knows the first, and unties by it; 5 knows both, and ties by the file.
        made |= {"tie_word_embeddings": scaled, "scale_decoder_outputs": scaled}

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {"untied": at(spec, "model.decoder.output.tied") is not True}


def _scales_output(config: Config) -> bool:
    """Whether states are scaled before the output: version 1.0 does, which ties it."""
    tied = config.get("tie_word_embeddings", True) is not False
    scaled: bool = get_value(config, "scale_decoder_outputs", bool, tied)
    return scaled
