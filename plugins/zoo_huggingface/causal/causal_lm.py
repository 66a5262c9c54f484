"""Base class of decoder-only language models: special tokens and output."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import RequiredValue, get_eos_ids, get_path, get_value


class CausalLMArchitecture(Architecture):
    """Decoder-only language model."""

    dim_path = "model.embedding.dim"
    generates = True
    used_keys: ClassVar[tuple[str, ...]] = (
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "tie_word_embeddings",
    )
    causal_values: ClassVar[tuple[RequiredValue, ...]] = (
        RequiredValue("is_causal", True, "only causal attention is supported"),
    )
    harmless_values: ClassVar[Mapping[str, tuple[Any, ...]]] = {"is_decoder": (True,)}
    tied_weight_names = ("lm_head.weight",)
    adds_bos: ClassVar[bool]
    """Whether its tokenizer prepends the start token."""
    tied_by_default: ClassVar[bool]
    """The default of ``tie_word_embeddings``."""

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        model, eos = spec["model"], get_eos_ids(config, self.default("eos_token_id"))
        pad = config.get("tokenizer_padding", get_value(config, "pad_token_id", int, None))
        # An end token that also pads is not padding; -1 in older configs means none.
        model["embedding"]["padding"] = None if pad in (*eos, -1) else pad
        model["bos"] = get_value(config, "bos_token_id", int, None) if self.adds_bos else None
        model["eos"] = eos if len(eos) > 1 else next(iter(eos), None)
        model["decoder"]["output"] = {"tied": not config.get("untied", not self.is_tied(config))}

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        config["eos_token_id"] = get_path(spec, "model.eos")
        pad = get_path(spec, "model.embedding.padding")
        if pad is not None or config.get("pad_token_id") not in get_eos_ids(config):
            config["pad_token_id"] = pad  # an end token that also pads is kept
        bos = get_path(spec, "model.bos")
        config["bos_token_id"] = config.get("bos_token_id") if bos is None else bos
        config["tie_word_embeddings"] = get_path(spec, "model.decoder.output.tied") is True

    def is_tied(self, config: Config) -> bool:
        return bool(get_value(config, "tie_word_embeddings", bool, self.tied_by_default))
