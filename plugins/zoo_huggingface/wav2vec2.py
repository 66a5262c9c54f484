"""wav2vec 2.0 with its CTC head."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import (
    ACTIVATIONS,
    ConfigField,
    RequiredValue,
    at,
    config_error,
    get_list,
    get_value,
)


class Wav2Vec2(Architecture):
    """wav2vec 2.0 as a recogniser of speech (Baevski 2020)."""

    name = "wav2vec2"
    heads = ("Wav2Vec2ForCTC",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "ctc-recogniser",
            "source": {"type": "waveform", "conv_position": {}},
            "encoder": {
                "type": "transformer",
                "attention": {"scorer": "scaled-dot", "align": {"type": "soft"}},
                "feed_forward": {},
            },
        },
        "sampler": "ctc-greedy",
        "objective": {"type": "ctc"},
    }
    settings = (
        ConfigField("hidden_size", "model.source.dim"),
        ConfigField("conv_bias", "model.source.bias", bool, False),
        ConfigField(
            "feat_extract_norm",
            "model.source.norm",
            str,
            "group",
            words={"group": "group", "layer": "layer"},
        ),
        ConfigField("layer_norm_eps", "model.source.eps model.encoder.norm.eps", float, 1e-5),
        ConfigField("num_conv_pos_embeddings", "model.source.conv_position.kernel", int, 128),
        ConfigField("num_conv_pos_embedding_groups", "model.source.conv_position.groups", int, 16),
        ConfigField("num_hidden_layers", "model.encoder.layers"),
        ConfigField("num_attention_heads", "model.encoder.attention.heads"),
        ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
        ConfigField(
            "hidden_act", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
        ),
        ConfigField(
            "do_stable_layer_norm",
            "model.encoder.norm.place",
            bool,
            False,
            words={False: "post", True: "pre"},
        ),
        ConfigField("hidden_dropout", "model.encoder.dropout", float, 0.1),
        ConfigField("attention_dropout", "model.encoder.attention.align.dropout", float, 0.1),
        ConfigField("vocab_size", "model.vocab"),
        ConfigField("pad_token_id", "model.blank objective.blank", int, 0, least=0),
    )
    only = (
        RequiredValue("feat_extract_activation", "gelu", "the convolutions are bent by gelu"),
        RequiredValue("add_adapter", False, "the zoo has no adapters"),
        RequiredValue("adapter_attn_dim", None, "the zoo has no adapters"),
    )

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        source, norm = made["model"]["source"], made["model"]["encoder"]["norm"]
        # The norm after the positions: before the first block, or after the last.
        norm["embedding"] = norm["place"] == "post"
        widths, kernels, strides = (
            get_list(config, key, int) for key in ("conv_dim", "conv_kernel", "conv_stride")
        )
        layers = get_value(config, "num_feat_extract_layers", int, len(widths))
        if not len(widths) == len(kernels) == len(strides) == layers > 0:
            raise config_error("conv_dim", widths, "kernels, strides and widths should be as many")
        if len(set(widths)) > 1:
            raise config_error("conv_dim", widths, "all convolutions have one width here")
        source |= {"channels": widths[0], "kernels": kernels, "strides": strides}

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        source = at(spec, "model.source")
        count = len(source["kernels"])
        made["conv_dim"] = [source["channels"]] * count
        made["conv_kernel"], made["conv_stride"] = list(source["kernels"]), list(source["strides"])
        made["num_feat_extract_layers"] = count
