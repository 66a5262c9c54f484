"""Gemma 3: Gemma 2 with norms of queries and keys, and other positions in layers with windows."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.gemma import BOTH_SIDES, gemma_template
from zoo_huggingface.causal.gemma2 import Gemma2
from zoo_huggingface.causal.layer_ropes import LayerRopes
from zoo_huggingface.causal.query_key_norm import normed_fields
from zoo_huggingface.causal.rope import Rope
from zoo_huggingface.config_fields import RequiredValue, config_error, get_value
from zoo_huggingface.config_keys import ignored_keys
from zoo_huggingface.templates import activation_field

_EVERY = "sliding_window_pattern"
_FULL_LAYER = 6
"""The default of ``sliding_window_pattern``: every sixth layer has no window."""
_WITH_IMAGES = "gemma3"


class Gemma3(Gemma2):
    """Gemma 3 of texts (Gemma Team 2025).

    Without an output layer it may attend to both sides, as in EmbeddingGemma.
    """

    name = "gemma3_text"
    model_classes = ("Gemma3ForCausalLM", "Gemma3TextModel")
    map_name = "gemma3"
    default_caps: ClassVar[Mapping[str, float | None]] = dict.fromkeys(Gemma2.default_caps)
    template = gemma_template(place="both", norm={"kind": "rms-plus-one"})
    fields = (
        *(field for field in normed_fields(1e-6) if field.key != "hidden_act"),
        activation_field("hidden_activation", "decoder", "gelu_pytorch_tanh"),
    )
    used_keys = (*Gemma2.used_keys, "rope_local_base_freq", _EVERY)
    ignored_keys: ClassVar[Mapping[str, str]] = {
        **Gemma2.ignored_keys,
        **ignored_keys({"transformers does not read it": "_sliding_window_pattern"}),
    }
    required_values = (
        *Gemma2.required_values,
        RequiredValue("attn_logit_softcapping", None, "the scores of Gemma 3 have no cap"),
    )
    ropes: ClassVar[LayerRopes] = LayerRopes(
        full=Rope(theta=1000000.0),
        sliding=Rope(),
        theta_keys=("rope_theta", "rope_local_base_freq"),
        scaled=("full_attention",),
    )

    def matches(self, config: Config) -> bool:
        return config.get("model_type") in (self.name, _WITH_IMAGES)

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        if config.get("model_type") == _WITH_IMAGES:
            raise config_error(
                "model_type",
                _WITH_IMAGES,
                f"a Gemma 3 that reads images is not supported; that of texts is '{self.name}'",
            )
        return super().read_folder(config, folder, ignore)

    def is_causal(self, config: Config) -> bool:
        return config.get(BOTH_SIDES) is not True

    def to_causal(self, config: Config) -> Config:
        if self.is_causal(config):
            return config
        width = get_value(config, "sliding_window", int, None)
        window = {} if width is None else {"sliding_window": width // 2 + 1}
        return {**config, **window, BOTH_SIDES: False}

    def to_bidirectional(self, config: Config) -> dict[str, Any]:
        return {**config, BOTH_SIDES: True, "sliding_window": 2 * (config["sliding_window"] - 1)}

    def default_windows(self, config: Config, layers: int) -> list[bool]:
        every = get_value(config, _EVERY, int, _FULL_LAYER)
        if every < 1:
            raise config_error(_EVERY, every, "it should be at least 1")
        return [(index + 1) % every != 0 for index in range(layers)]

    def read_position(self, config: Config) -> dict[str, Any]:
        return self.ropes.read(config)[0]

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        self.ropes.set_positions(spec["model"]["decoder"], self.with_lengths(config))

    def write_positions(self, config: dict[str, Any], decoder: Mapping[str, Any]) -> None:
        self.ropes.write(config, decoder)
        config.pop(_EVERY, None)  # transformers reads layer_types
