"""Importers and exporters for models of Hugging Face transformers."""

from collections.abc import Sequence

from zoo.plugin import Importer, hookimpl
from zoo_huggingface.bert import Bert
from zoo_huggingface.distilbert import DistilBert
from zoo_huggingface.gpt2 import Gpt2
from zoo_huggingface.llama import Llama
from zoo_huggingface.marian import Marian
from zoo_huggingface.mistral import Mistral
from zoo_huggingface.qwen2 import Qwen2
from zoo_huggingface.roberta import Roberta
from zoo_huggingface.t5 import T5
from zoo_huggingface.vit import ViT
from zoo_huggingface.wav2vec2 import Wav2Vec2


@hookimpl
def zoo_importers() -> Sequence[Importer]:
    return [
        Bert(),
        Roberta(),
        DistilBert(),
        Gpt2(),
        Marian(),
        T5(),
        Llama(),
        Mistral(),
        Qwen2(),
        ViT(),
        Wav2Vec2(),
    ]
