"""What language models of transformers share: where a text begins and ends, and their output."""

from collections.abc import Mapping
from typing import Any, ClassVar

from zoo_huggingface.architecture import Architecture, Config
from zoo_huggingface.config_fields import at, get_eos_ids, get_value


class CausalLMArchitecture(Architecture):
    """A decoder alone that goes on with a text."""

    dim = "model.embedding.dim"
    tied_weight_names = ("lm_head.weight",)
    begins: ClassVar[bool]
    """Texts begin with a symbol of their own, which its tokenizer puts there."""
    tied: ClassVar[bool]
    """What a config means that does not say whether the output is tied."""

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        model, ends = made["model"], get_eos_ids(config)
        pad = get_value(config, "pad_token_id", int, None)
        model["embedding"]["padding"] = None if pad in ends else pad
        model["bos"] = get_value(config, "bos_token_id", int, None) if self.begins else None
        model["eos"] = ends if len(ends) > 1 else ends[0]
        model["decoder"]["output"] = {"tied": not config.get("untied", not self.ties(config))}

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        made["eos_token_id"] = at(spec, "model.eos")
        pad = at(spec, "model.embedding.padding")
        if pad is not None or made.get("pad_token_id") not in get_eos_ids(made):
            made["pad_token_id"] = pad  # an end that also pads there is left as it was
        begin = at(spec, "model.bos")
        made["bos_token_id"] = made.get("bos_token_id") if begin is None else begin
        made["tie_word_embeddings"] = at(spec, "model.decoder.output.tied") is True

    def ties(self, config: Config) -> bool:
        return bool(get_value(config, "tie_word_embeddings", bool, self.tied))
