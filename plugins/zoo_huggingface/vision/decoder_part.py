"""Decoders of vision-encoder-decoder."""

from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from zoo_huggingface.architecture import MAPS, Architecture, Config
from zoo_huggingface.config_fields import get_path, get_value
from zoo_huggingface.config_keys import ignored_keys


class DecoderPart(Architecture):
    """Decoder with cross-attention: its config sets ``model.target`` and ``model.decoder``.

    The template contains these two parts.
    """

    used_keys: ClassVar[tuple[str, ...]] = (
        "decoder_start_token_id",
        "eos_token_id",
        "tie_word_embeddings",
    )
    ignored_keys: ClassVar[Mapping[str, str]] = ignored_keys(
        {"texts start with decoder_start_token_id": "bos_token_id"}
    )

    def rules(self) -> dict[str, Any]:
        """Return the rules of the decoder's map."""
        path = MAPS / f"vision-{self.name}.yaml"
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        return content

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        untied = config.get("untied", not self.is_tied(config))
        spec["model"]["decoder"]["output"] = {"tied": not untied}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        config["tie_word_embeddings"] = get_path(spec, "model.decoder.output.tied") is True
        config["eos_token_id"] = get_path(spec, "model.eos")

    def is_tied(self, config: Config) -> bool:
        return bool(get_value(config, "tie_word_embeddings", bool, True))
