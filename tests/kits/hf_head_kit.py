"""Small encoders of transformers with a head, and their tokenizers."""

import torch
import transformers as hf
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

hf.logging.set_verbosity_error()

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "the", "cat", "sat", "on", "mat", "##s"]
LABELS = {0: "negative", 1: "neutral", 2: "positive"}


def build_tokenizer(*, lowercase=False):
    """Return a tokenizer of WORDS that adds [CLS] and [SEP]."""
    vocab = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(WORDS[:5])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer


def fast_tokenizer(**options):
    """Return the tokenizer as transformers has it."""
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(**options), mask_token="[MASK]", **names
    )


def head_model(model_class, config, **changes):
    """Return a random model of a class, with labels and changes of a config."""
    known = config.to_dict()
    dropped = ("id2label", "label2id", "architectures", "transformers_version", "dtype")
    known = {key: value for key, value in known.items() if key not in (*dropped, "model_type")}
    labels = {"id2label": LABELS, "label2id": {name: i for i, name in LABELS.items()}}
    torch.manual_seed(0)
    model = getattr(hf, model_class)(type(config)(**{**known, **labels, **changes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()
