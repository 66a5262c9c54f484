"""Base class of the descendants of Llama with one window for all layers."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Config
from zoo_huggingface.causal.layer_kinds import only_window, read_window
from zoo_huggingface.causal.llama import Llama


class WindowedLlama(Llama):
    """Llama whose positions attend to the previous ones of a window (Beltagy et al. 2020)."""

    used_keys = (*Llama.used_keys, "sliding_window")
    default_window: ClassVar[int | None] = None
    """The default of ``sliding_window``."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        super().update_spec(spec, config)
        window = read_window(config, self.default_window)
        if window is not None:
            spec["model"]["decoder"]["pattern"] = [{"window": window}]

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        super().update_config(config, spec)
        config["sliding_window"] = only_window(spec)
