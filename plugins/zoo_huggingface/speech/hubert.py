"""HuBERT."""

from zoo_huggingface.config_fields import ConfigField, RequiredValue
from zoo_huggingface.speech.wav2vec2 import Wav2Vec2


class Hubert(Wav2Vec2):
    """HuBERT, with or without a head: the architecture of wav2vec 2.0 (Hsu et al. 2021)."""

    name = "hubert"
    model_classes = ("HubertForCTC", "HubertForSequenceClassification", "HubertModel")
    fields = (
        *Wav2Vec2.fields,
        ConfigField("feat_proj_layer_norm", "model.source.last_norm", bool, True),
    )
    required_values = (
        *Wav2Vec2.required_values,
        RequiredValue("conv_pos_batch_norm", False, "the convolution of positions has weight norm"),
    )
