"""CamemBERT: RoBERTa on French texts."""

from zoo_huggingface.encoders.roberta import Roberta


class Camembert(Roberta):
    """CamemBERT, with or without a head, or as a sentence encoder (Martin et al. 2020)."""

    name = "camembert"
    map_name = "roberta"
    model_classes = (
        "CamembertForMaskedLM",
        "CamembertModel",
        "CamembertForSequenceClassification",
        "CamembertForTokenClassification",
    )
