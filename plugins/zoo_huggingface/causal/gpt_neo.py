"""GPT-Neo."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.causal_lm import CausalLMArchitecture
from zoo_huggingface.causal.layer_kinds import layer_kinds, only_window, shortest_pattern
from zoo_huggingface.config_fields import ConfigField, config_error, get_path, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import (
    activation_field,
    language_model_template,
    transformer_template,
)

_TYPES = [[["global", "local"], 12]]
"""The default of ``attention_types``."""


class GptNeo(CausalLMArchitecture):
    """GPT-Neo (Black et al. 2021): windows in every other layer, scores that are not scaled.

    `embed_dropout` is not imported: the dropout of the decoder, from `resid_dropout`, is applied to
    the embeddings as well.
    """

    name = "gpt_neo"
    model_classes = ("GPTNeoForCausalLM",)
    embedding_key = "transformer.wte.weight"
    adds_bos = False
    tied_by_default = True
    unchecked_spec_paths = ("model.bos",)
    template = language_model_template(
        transformer_template(
            attention={"scorer": "dot", "align": {"type": "soft"}, "bias": "out"},
            norm={"place": "pre"},
            position={"type": "learned"},
        )
    )
    fields = (
        ConfigField("vocab_size", "model.embedding.vocab"),
        ConfigField("hidden_size", "model.embedding.dim"),
        ConfigField("num_layers", "model.decoder.layers"),
        ConfigField("num_heads", "model.decoder.attention.heads"),
        ConfigField("max_position_embeddings", "model.decoder.position.length"),
        activation_field("activation_function", "decoder", "gelu_new"),
        ConfigField("layer_norm_epsilon", "model.decoder.norm.eps", float, 1e-5),
        ConfigField("resid_dropout", "model.decoder.dropout", float, 0.0),
        ConfigField("attention_dropout", "model.decoder.attention.align.dropout", float, 0.0),
        ConfigField("initializer_range", "model.embedding.std", float, 0.02),
    )
    used_keys = (
        *CausalLMArchitecture.used_keys,
        *("attention_layers", "attention_types", "intermediate_size", "window_size"),
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {
            "heads of other tasks use it": """
                summary_activation summary_first_dropout summary_proj_to_labels summary_type
                summary_use_proj
                """,
            "the dropout of the decoder is applied instead": "embed_dropout",
        }
    )
    aliases: ClassVar[Mapping[str, str]] = {
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
    }
    required_values = CausalLMArchitecture.causal_values

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        decoder = spec["model"]["decoder"]
        inner = get_value(config, "intermediate_size", int, None)
        decoder["feed_forward"]["hidden"] = inner or 4 * spec["model"]["embedding"]["dim"]
        window = get_value(config, "window_size", int, 256)
        if window < 1:
            raise config_error("window_size", window, "it should be at least 1")
        kinds = [{"window": window} if kind == "local" else {} for kind in _read_types(config)]
        if len(kinds) != decoder["layers"]:
            raise config_error(
                "attention_types", config.get("attention_types"), "it differs from num_layers"
            )
        decoder["pattern"] = shortest_pattern(kinds)

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["intermediate_size"] = get_path(spec, "model.decoder.feed_forward.hidden")
        config["window_size"] = only_window(spec) or config.get("window_size", 256)
        kinds = layer_kinds(spec)
        types = ["global" if kind.get("window") is None else "local" for kind in kinds]
        config |= {"attention_types": [[types, 1]], "attention_layers": types}


def _read_types(config: Config) -> list[str]:
    """Return 'global' or 'local' for each layer."""
    given = config.get("attention_types")
    types: Any = _TYPES if given is None else given
    try:
        expanded = [kind for kinds, count in types for _ in range(count) for kind in kinds]
    except (TypeError, ValueError):
        expanded = [None]
    if any(kind not in ("global", "local") for kind in expanded):
        raise config_error(
            "attention_types", types, "it should be a list of [list of global or local, count]"
        )
    if config.get("attention_layers", expanded) != expanded:
        raise config_error(
            "attention_layers", config["attention_layers"], "it differs from attention_types"
        )
    return expanded
