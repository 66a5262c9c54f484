"""wav2vec 2.0."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_list,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.speech.heads import SpeechEncoderImporter
from zoo_huggingface.templates import activation_field, transformer_template


class Wav2Vec2(SpeechEncoderImporter):
    """wav2vec 2.0, with or without a head (Baevski et al. 2020)."""

    name = "wav2vec2"
    preprocessor_kind = "audio"
    model_classes: ClassVar[tuple[str, ...]] = (
        "Wav2Vec2ForCTC",
        "Wav2Vec2ForSequenceClassification",
        "Wav2Vec2Model",
        "Wav2Vec2ForPreTraining",
    )
    template: ClassVar[Mapping[str, Any]] = {
        "model": {
            "type": "ctc-recogniser",
            "source": {"type": "waveform", "conv_position": {}},
            "encoder": transformer_template(),
        }
    }
    fields: ClassVar[Sequence[ConfigField]] = (
        ConfigField("hidden_size", "model.source.dim"),
        ConfigField("conv_bias", "model.source.bias", bool, False),
        ConfigField(
            "feat_extract_norm",
            "model.source.norm",
            str,
            "group",
            value_map={"group": "group", "layer": "layer"},
        ),
        ConfigField("layer_norm_eps", "model.source.eps model.encoder.norm.eps", float, 1e-5),
        ConfigField("num_conv_pos_embeddings", "model.source.conv_position.kernel", int, 128),
        ConfigField("num_conv_pos_embedding_groups", "model.source.conv_position.groups", int, 16),
        ConfigField("num_hidden_layers", "model.encoder.layers"),
        ConfigField("num_attention_heads", "model.encoder.attention.heads"),
        ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
        activation_field("hidden_act", "encoder", "gelu"),
        ConfigField(
            "do_stable_layer_norm",
            "model.encoder.norm.place",
            bool,
            False,
            value_map={False: "post", True: "pre"},
        ),
        ConfigField("hidden_dropout", "model.encoder.dropout", float, 0.1),
        ConfigField("attention_dropout", "model.encoder.attention.align.dropout", float, 0.1),
    )
    used_keys = (
        *("conv_dim", "conv_kernel", "conv_stride", "num_feat_extract_layers"),
        *SpeechEncoderImporter.head_keys,
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "it affects initialisation only": "initializer_range",
            "it affects training only": """
                activation_dropout apply_spec_augment codevector_dim contrastive_logits_temperature
                ctc_loss_reduction ctc_zero_infinity diversity_loss_weight feat_extract_dropout
                feat_proj_dropout feat_quantizer_dropout final_dropout freeze_feat_extract_train
                hidden_dropout_prob layerdrop mask_channel_length
                mask_channel_min_space mask_channel_other mask_channel_prob mask_channel_selection
                mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length
                mask_time_min_masks mask_time_min_space mask_time_other mask_time_prob
                mask_time_selection no_mask_channel_overlap no_mask_time_overlap
                num_codevector_groups num_codevectors_per_group num_negatives
                proj_codevector_dim
                """,
            "heads of other tasks use it": """
                tdnn_dilation tdnn_dim tdnn_kernel xvector_output_dim
                """,
            "only adapters use it": """
                adapter_kernel_size adapter_stride num_adapter_layers output_hidden_size
                """,
            "the model has no tables to share": "tie_word_embeddings",
        }
    )
    required_values: ClassVar[Sequence[RequiredValue]] = (
        RequiredValue("feat_extract_activation", "gelu", "the convolutions use gelu"),
        RequiredValue("add_adapter", False, "adapters are not supported"),
        RequiredValue("adapter_attn_dim", None, "adapters are not supported"),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        source, norm = spec["model"]["source"], spec["model"]["encoder"]["norm"]
        # transformers has one norm: before the first block, or after the last.
        norm["embedding"] = norm["place"] == "post"
        widths, kernels, strides = (
            get_list(config, key, int) for key in ("conv_dim", "conv_kernel", "conv_stride")
        )
        layers = get_value(config, "num_feat_extract_layers", int, len(widths))
        if not len(widths) == len(kernels) == len(strides) == layers > 0:
            raise config_error(
                "conv_dim",
                widths,
                "conv_dim, conv_kernel and conv_stride should have num_feat_extract_layers items",
            )
        if len(set(widths)) > 1:
            raise config_error(
                "conv_dim", widths, "convolutions of different widths are not supported"
            )
        source |= {"channels": widths[0], "kernels": kernels, "strides": strides}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        source = get_path(spec, "model.source")
        count = len(source["kernels"])
        config["conv_dim"] = [source["channels"]] * count
        config["conv_kernel"], config["conv_stride"] = (
            list(source["kernels"]),
            list(source["strides"]),
        )
        config["num_feat_extract_layers"] = count
