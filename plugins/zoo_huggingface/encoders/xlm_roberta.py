"""XLM-RoBERTa: RoBERTa on texts of a hundred languages."""

from zoo_huggingface.encoders.roberta import Roberta


class XLMRoberta(Roberta):
    """XLM-RoBERTa, with or without a head, or as a sentence encoder (Conneau et al. 2020)."""

    name = "xlm-roberta"
    map_name = "roberta"
    model_classes = (
        "XLMRobertaForMaskedLM",
        "XLMRobertaModel",
        "XLMRobertaForSequenceClassification",
        "XLMRobertaForTokenClassification",
    )
