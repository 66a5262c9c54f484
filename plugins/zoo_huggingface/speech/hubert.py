"""HuBERT with a CTC head, or without a head."""

from typing import Any

import yaml

from zoo_huggingface.architecture import MAPS, Config
from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.speech.wav2vec2 import Wav2Vec2


class Hubert(Wav2Vec2):
    """HuBERT, with the architecture of wav2vec 2.0 (Hsu et al. 2021)."""

    name = "hubert"
    model_classes = ("HubertForCTC", "HubertModel")
    headless_classes = ("HubertModel",)
    fields = (
        *Wav2Vec2.fields,
        ConfigField("feat_proj_layer_norm", "model.source.last_norm", bool, True),
    )
    required_values = (
        *Wav2Vec2.required_values,
        RequiredValue("conv_pos_batch_norm", False, "the convolution of positions has weight norm"),
    )

    def map(self, config: Config) -> dict[str, Any]:
        text = (MAPS / "wav2vec2.yaml").read_text(encoding="utf-8")
        tensor_map: dict[str, Any] = yaml.safe_load(text.replace("wav2vec2.", "hubert."))
        return tensor_map
