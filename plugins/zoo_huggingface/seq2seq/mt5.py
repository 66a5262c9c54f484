"""mT5."""

from typing import Any

from zoo_huggingface.architecture import Config
from zoo_huggingface.seq2seq.t5 import T5


class MT5(T5):
    """mT5: T5 1.1 for many languages, which never scales its output (Xue et al. 2021)."""

    name = "mt5"
    model_classes = ("MT5ForConditionalGeneration",)
    default_projection = "gated-gelu"
    used_keys = tuple(key for key in T5.used_keys if key != "scale_decoder_outputs")

    def scales_output(self, config: Config) -> bool:
        return False

    def write_scale(self, config: dict[str, Any], scaled: bool) -> None:
        config["tie_word_embeddings"] = True
