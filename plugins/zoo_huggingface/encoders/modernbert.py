"""ModernBERT: rotary positions, gated feed-forward networks, windows in two of three layers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.layer_kinds import (
    FULL,
    SLIDING,
    layer_types,
    only_window,
    shortest_pattern,
    windowed_layers,
)
from zoo_huggingface.causal.layer_ropes import LayerRopes
from zoo_huggingface.causal.rope import LENGTHS, Rope
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_path,
    get_value,
)
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.encoders.bert import TIED
from zoo_huggingface.encoders.encoder_importer import EncoderImporter
from zoo_huggingface.templates import (
    ACTIVATIONS,
    activation_field,
    masked_lm_template,
    transformer_template,
)

_WINDOW, _EVERY = "local_attention", "global_attn_every_n_layers"
_POOLINGS = {"cls": "first", "mean": "mean"}
_INNER_ACTIVATIONS = {name: name for name in ("gelu", "relu", "tanh")}
_DROPOUT = ("classifier_dropout",)


class ModernBert(EncoderImporter):
    """ModernBERT, with or without a head, or as a sentence encoder (Warner et al. 2024)."""

    name = "modernbert"
    model_classes = (
        "ModernBertForMaskedLM",
        "ModernBertModel",
        "ModernBertForSequenceClassification",
        "ModernBertForTokenClassification",
    )
    dropout_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "classifier": _DROPOUT,
        "tagger": _DROPOUT,
    }
    embedding_key = "model.embeddings.tok_embeddings.weight"
    tied_weight_names = ("decoder.weight",)
    template = masked_lm_template(
        transformer_template(
            feed_forward={"gated": True},
            norm={"place": "pre", "embedding": True, "first": False},
            position={"type": "rotary"},
        )
    )
    fields = (
        ConfigField("vocab_size", "model.source.vocab"),
        ConfigField("hidden_size", "model.source.dim"),
        ConfigField("num_hidden_layers", "model.encoder.layers"),
        ConfigField("num_attention_heads", "model.encoder.attention.heads"),
        ConfigField("intermediate_size", "model.encoder.feed_forward.hidden"),
        activation_field("hidden_activation", "encoder", "gelu"),
        ConfigField("norm_eps", "model.encoder.norm.eps model.eps", float, 1e-5),
        ConfigField("norm_bias", "model.encoder.norm.bias model.norm_bias", bool, False),
        ConfigField("attention_bias", "model.encoder.attention.bias", bool, False),
        ConfigField("mlp_bias", "model.encoder.feed_forward.bias", bool, False),
        ConfigField("attention_dropout", "model.encoder.attention.align.dropout", float, 0.0),
        ConfigField("initializer_range", "model.source.std", float, 0.02),
        ConfigField("pad_token_id", "model.source.padding", int, 50283, minimum=0),
    )
    required_values = (
        TIED,
        RequiredValue("position_embedding_type", "absolute", "positions are always rotary"),
    )
    used_keys = (
        *EncoderImporter.used_keys,
        *("layer_types", _WINDOW, _EVERY, *LENGTHS),
        *("rope_parameters", "rope_scaling", "global_rope_theta", "local_rope_theta"),
        *("classifier_activation", "classifier_pooling", "classifier_bias", "decoder_bias"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **EncoderImporter.ignored_keys,
        **ignored_keys(
            {
                "it affects training only": """
                    embedding_dropout mlp_dropout initializer_cutoff_factor sparse_prediction
                    sparse_pred_ignore_index repad_logits_with_grad
                    """,
                "it selects an implementation of the same function": """
                    deterministic_flash_attn reference_compile
                    """,
                "tokenizers have it": "cls_token_id",
                "transformers does not read it": "layer_norm_eps",
            }
        ),
    }
    ropes: ClassVar[LayerRopes] = LayerRopes(
        full=Rope(theta=160000.0),
        sliding=Rope(),
        theta_keys=("global_rope_theta", "local_rope_theta"),
        scaled=(FULL, SLIDING),
    )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        encoder = spec["model"]["encoder"]
        encoder["pattern"] = shortest_pattern(self._layers(config, encoder["layers"]))
        lengths = {key: self._defaults[key] for key in LENGTHS if key in self._defaults}
        self.ropes.set_positions(encoder, {**lengths, **config})
        norm_bias = spec["model"].pop("norm_bias")
        super().update_spec(spec, config)
        if spec["model"]["type"] == "masked-lm":
            spec["model"] |= {
                "activation": _read_activation(config, ACTIVATIONS),
                "bias": get_value(config, "classifier_bias", bool, False),
                "norm_bias": norm_bias,
                "output_bias": get_value(config, "decoder_bias", bool, True),
            }

    def _set_head(self, spec: dict[str, Any], config: Config, head: str) -> None:
        super()._set_head(spec, config, head)
        if head == "features":
            return
        spec["model"]["inner"] = {
            "activation": _read_activation(config, _INNER_ACTIVATIONS),
            "bias": get_value(config, "classifier_bias", bool, False),
            "norm_eps": get_path(spec, "model.encoder.norm.eps"),
            "norm_bias": get_path(spec, "model.encoder.norm.bias"),
        }
        if head == "classifier":
            pooling = config.get("classifier_pooling", "cls")
            if pooling not in tuple(_POOLINGS):
                supported = ", ".join(_POOLINGS)
                raise config_error("classifier_pooling", pooling, f"supported values: {supported}")
            spec["model"]["pooling"] = _POOLINGS[pooling]

    def _layers(self, config: Config, layers: int) -> list[dict[str, Any]]:
        """Return the kind of each layer."""
        every = get_value(config, _EVERY, int, 3)
        width = get_value(config, _WINDOW, int, self._defaults[_WINDOW])
        for key, value in ((_EVERY, every), (_WINDOW, width)):
            if value < 1:
                raise config_error(key, value, "it should be at least 1")
        default = [index % every != 0 for index in range(layers)]
        return windowed_layers(config, layers, default, _to_window(width))

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        model = spec["model"]
        config.pop(_EVERY, None)  # transformers reads layer_types
        config["layer_types"] = layer_types(spec, "encoder")
        window = only_window(spec, "encoder")
        width = config.get(_WINDOW, self._defaults[_WINDOW])
        if window is not None and _to_window(width) != window:
            config[_WINDOW] = 2 * (window - 1)
        self.require(spec, "model.encoder.position.theta")
        self.ropes.write(config, model["encoder"])
        head = model if "output_bias" in model else model.get("inner")
        if head:
            config["classifier_bias"] = head["bias"]
            config["classifier_activation"] = next(
                (key for key, ours in ACTIVATIONS.items() if ours == head["activation"]),
                head["activation"],
            )
        if "output_bias" in model:
            config["decoder_bias"] = model["output_bias"]
        if "pooling" in model and not model["type"].endswith("sentence-encoder"):
            names = {ours: theirs for theirs, ours in _POOLINGS.items()}
            config["classifier_pooling"] = names.get(model["pooling"], model["pooling"])


def _to_window(width: int) -> int:
    """Return the distance below which positions are attended to, for the width of both sides."""
    return width // 2 + 1


def _read_activation(config: Config, supported: Mapping[str, str]) -> str:
    name = config.get("classifier_activation", "gelu")
    if not isinstance(name, str) or name not in supported:
        names = ", ".join(supported)
        raise config_error("classifier_activation", name, f"supported values: {names}")
    return supported[name]
