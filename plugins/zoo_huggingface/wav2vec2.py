"""wav2vec 2.0 with its CTC head."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.settings import ACTIVATIONS, Only, Setting, at, listed, refused, valued


class Wav2Vec2(Architecture):
    """wav2vec 2.0 as a recogniser of speech (Baevski 2020)."""

    name = "wav2vec2"
    heads = ("Wav2Vec2ForCTC",)
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "ctc-recogniser",
            "source": {"type": "waveform", "surroundings": {}},
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
        Setting("hidden_size", "model.source.dim"),
        Setting("conv_bias", "model.source.bias", bool, False),
        Setting(
            "feat_extract_norm",
            "model.source.norm",
            str,
            "group",
            words={"group": "group", "layer": "layer"},
        ),
        Setting("layer_norm_eps", "model.source.eps model.encoder.norm.eps", float, 1e-5),
        Setting("num_conv_pos_embeddings", "model.source.surroundings.kernel", int, 128),
        Setting("num_conv_pos_embedding_groups", "model.source.surroundings.groups", int, 16),
        Setting("num_hidden_layers", "model.encoder.layers"),
        Setting("num_attention_heads", "model.encoder.attention.heads"),
        Setting("intermediate_size", "model.encoder.feed_forward.hidden"),
        Setting(
            "hidden_act", "model.encoder.feed_forward.activation", str, "gelu", words=ACTIVATIONS
        ),
        Setting(
            "do_stable_layer_norm",
            "model.encoder.norm.place",
            bool,
            False,
            words={False: "post", True: "pre"},
        ),
        Setting("hidden_dropout", "model.encoder.dropout", float, 0.1),
        Setting("attention_dropout", "model.encoder.attention.align.dropout", float, 0.1),
        Setting("vocab_size", "model.vocab"),
        Setting("pad_token_id", "model.blank objective.blank", int, 0, least=0),
    )
    only = (
        Only("feat_extract_activation", "gelu", "the convolutions are bent by gelu"),
        Only("add_adapter", False, "the zoo has no adapters"),
        Only("adapter_attn_dim", None, "the zoo has no adapters"),
    )

    def adapt(self, made: dict[str, Any], config: Config) -> None:
        source, norm = made["model"]["source"], made["model"]["encoder"]["norm"]
        # The norm after the positions: before the first block, or after the last.
        norm["embedding"] = norm["place"] == "post"
        widths, kernels, strides = (
            listed(config, key, int) for key in ("conv_dim", "conv_kernel", "conv_stride")
        )
        layers = valued(config, "num_feat_extract_layers", int, len(widths))
        if not len(widths) == len(kernels) == len(strides) == layers > 0:
            raise refused("conv_dim", widths, "kernels, strides and widths should be as many")
        if len(set(widths)) > 1:
            raise refused("conv_dim", widths, "all convolutions have one width here")
        source |= {"channels": widths[0], "kernels": kernels, "strides": strides}

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        source = at(spec, "model.source")
        count = len(source["kernels"])
        made["conv_dim"] = [source["channels"]] * count
        made["conv_kernel"], made["conv_stride"] = list(source["kernels"]), list(source["strides"])
        made["num_feat_extract_layers"] = count
