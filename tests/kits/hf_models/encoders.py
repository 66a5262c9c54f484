"""Text encoders of transformers with small random weights."""

import warnings

import transformers as hf

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # transformers uses torch.jit.script
    hf.DebertaV2ForMaskedLM  # noqa: B018

_BERT = {
    "vocab_size": 31, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12,
}  # fmt: skip

_MODELS = {
    "bert": (hf.BertForMaskedLM, hf.BertConfig(**_BERT, max_position_embeddings=16)),
    "roberta": (
        hf.RobertaForMaskedLM,
        hf.RobertaConfig(**_BERT, max_position_embeddings=18, type_vocab_size=1),
    ),
    "xlm-roberta": (
        hf.XLMRobertaForMaskedLM,
        hf.XLMRobertaConfig(**_BERT, max_position_embeddings=18, type_vocab_size=1),
    ),
    "camembert": (
        hf.CamembertForMaskedLM,
        hf.CamembertConfig(**_BERT, max_position_embeddings=18, type_vocab_size=1),
    ),
    "electra": (
        hf.ElectraForMaskedLM,
        hf.ElectraConfig(**_BERT, embedding_size=6, max_position_embeddings=16),
    ),
    "nomic_bert": (hf.NomicBertForMaskedLM, hf.NomicBertConfig(**_BERT)),
    "albert": (
        hf.AlbertForMaskedLM,
        hf.AlbertConfig(**_BERT, embedding_size=6, max_position_embeddings=16),
    ),
    "modernbert": (
        hf.ModernBertForMaskedLM,
        hf.ModernBertConfig(
            **_BERT | {"num_hidden_layers": 3}, local_attention=4, pad_token_id=0, bos_token_id=1,
            cls_token_id=1, eos_token_id=2, sep_token_id=2, global_attn_every_n_layers=2,
        ),
    ),
    "mpnet": (hf.MPNetForMaskedLM, hf.MPNetConfig(**_BERT, max_position_embeddings=18)),
    "deberta-v2": (
        hf.DebertaV2ForMaskedLM,
        hf.DebertaV2Config(
            **_BERT, max_position_embeddings=16, relative_attention=True, pos_att_type="p2c|c2p",
            position_biased_input=False, position_buckets=4, norm_rel_ebd="layer_norm",
            share_att_key=True,
        ),
    ),
    "distilbert": (
        hf.DistilBertForMaskedLM,
        hf.DistilBertConfig(
            vocab_size=31, dim=8, n_layers=2, n_heads=1, hidden_dim=12, max_position_embeddings=16
        ),
    ),
}  # fmt: skip
_HEADS = {
    "features": "Model",
    "classifier": "ForSequenceClassification",
    "tagger": "ForTokenClassification",
}
_SAME_CODE = ("xlm-roberta", "camembert")
"""Architectures whose heads are those of RoBERTa."""


def _with_heads(name, model):
    """Return a model with its masked-token head, and the same config with other heads."""
    cls, config = model
    base = cls.__name__.removesuffix("ForMaskedLM")
    options = config.to_diff_dict() | {"num_labels": 3}
    heads = {
        f"{name}-{head}": (getattr(hf, f"{base}{ending}"), type(config)(**options))
        for head, ending in _HEADS.items()
    }
    return {name: model, **heads}


MODELS = {
    variant: model
    for name, small in _MODELS.items()
    for variant, model in _with_heads(name, small).items()
    if variant == name or name not in _SAME_CODE
}
"""Class and config by name; a name starts with the importer's name, then a variant."""

_ROPES = [
    {"rope_type": "default", "rope_theta": 99.0},
    {"rope_type": "linear", "rope_theta": 99.0, "factor": 2.0},
]
VALUES = {
    "deberta-v2": {
        "pos_att_type": [["c2p"], ["p2c"], None], "position_buckets": [-1, 6, 9],
        "max_relative_positions": [3, 12, 40], "norm_rel_ebd": ["none"], "share_att_key": [False],
        "position_biased_input": [True], "legacy": [False], "type_vocab_size": [2],
        "relative_attention": [False], "pooler_hidden_act": ["tanh", "silu"],
        "conv_kernel_size": [3], "embedding_size": [6],
    },
    "modernbert": {
        "rope_parameters": [
            {"full_attention": full, "sliding_attention": sliding}
            for full, sliding in ((_ROPES[0], _ROPES[0]), _ROPES, _ROPES[::-1])
        ],
        "rope_scaling": [
            {"rope_type": "linear", "factor": 2.0}, {"type": "linear", "factor": 2.0},
        ],
        "hidden_activation": ["relu", "gelu_new", "silu"], "local_attention": [1, 2, 5, 64],
        "classifier_activation": ["relu", "silu", "mish"], "num_hidden_layers": [5],
        "layer_types": [
            ["sliding_attention", "full_attention", "full_attention"], ["full_attention"] * 3,
            ["sliding_attention"] * 3,
        ],
        "classifier_pooling": ["mean"],
    },
}  # fmt: skip
"""Other values of config keys, by importer, where `hf_switch_kit` has none that fit."""
