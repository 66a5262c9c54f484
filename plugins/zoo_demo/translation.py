"""Translation of sentences, with the attention weights between words.

Notation: B sentences, H heads, T target tokens, S source tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.data.tokenizer import Tokenizer
from zoo.errors import ZooError
from zoo.generation.pipeline import Hypothesis, generate
from zoo.heatmap import Heatmap
from zoo.interfaces import Model
from zoo_demo.words import Word, split_words
from zoo_inspect.layers import view_layers
from zoo_inspect.passes import OutputOptions, prepare_pass

BEAM = {"type": "beam", "width": 5, "n_best": 1, "length_penalty": 1.0}
MAX_TOKENS = 100
MAX_CHARACTERS = 400


@dataclass(frozen=True)
class Translation:
    """A translated sentence.

    Attributes:
        alignment: the attention weights of each output word to the source words; None if the
            output is empty.
    """

    source: str
    hypothesis: Hypothesis
    alignment: Heatmap | None

    @property
    def text(self) -> str:
        return self.hypothesis.text or ""


def clean_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the sentences with single spaces; raise ZooError if one is empty or too long."""
    cleaned = [" ".join(sentence.split()) for sentence in sentences]
    for number, sentence in enumerate(cleaned, 1):
        if not sentence:
            raise ZooError(
                f"sentence {number} is empty; expected a sentence, for example "
                "zoo demo 'Onde fica a estação?'"
            )
        if len(sentence) > MAX_CHARACTERS:
            raise ZooError(
                f"sentence {number} has {len(sentence):,} characters; the demo translates at most "
                f"{MAX_CHARACTERS}; use zoo generate for longer texts"
            )
    return cleaned


def translate(model: Model, sentences: Sequence[str]) -> list[Translation]:
    """Translate sentences with beam search."""
    best = [
        hypotheses[0]
        for hypotheses in generate(model, sentences, sampler=BEAM, max_length=MAX_TOKENS)
    ]
    return [
        Translation(sentence, hypothesis, align(model, sentence, hypothesis.tokens))
        for sentence, hypothesis in zip(sentences, best, strict=True)
    ]


def align(model: Model, sentence: str, output: Sequence[int]) -> Heatmap | None:
    """Return the attention weights between the words of a sentence and of an output.

    They are those of the decoder's last attention to the source, averaged over heads. The weights
    of a source word are the sum over its tokens, those of an output word the mean.
    """
    tokenizers = {key: Tokenizer(text) for key, text in (model.tokenizer or {}).items()}
    rows = split_words(tokenizers["target"], output)
    if not rows:
        return None
    looked_at = prepare_pass(model, sentence, OutputOptions(output=output), None)
    columns = split_words(tokenizers["source"], looked_at.batch["source"][0].tolist())
    cross = [layer for layer in view_layers(model, looked_at)[0] if layer.kind == "cross"]
    if not cross:
        raise ZooError("the model has no attention to the source, which the demo shows")
    merged = _merge(cross[-1].weights.mean(dim=0), rows, columns)
    return Heatmap(merged, [word.text for word in rows], [word.text for word in columns])


def _merge(weights: Tensor, rows: Sequence[Word], columns: Sequence[Word]) -> Tensor:
    by_column = torch.stack([weights[:, word.positions].sum(dim=1) for word in columns], dim=1)
    return torch.stack([by_column[word.positions].mean(dim=0) for word in rows])
