"""Skip-gram: a word predicts those around it."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch, Outputs
from zoo_word2vec.word_model import WordModel, candidates


class SkipGram(WordModel):
    r"""Predicts the words around a word, from its vector alone.

    .. math:: p(o \mid c) = \frac{\exp(u_o^\top v_c)}{\sum_w \exp(u_w^\top v_c)}

    With negatives, the logits are those of the true word and of the drawn ones instead, for the
    objective `negative-sampling`. The table u starts small, not zero as in the authors' program.

    Paper: Mikolov et al. 2013, equations 2 and 4.

    Args:
        source: the vectors v, a table; `zoo_word2vec.training` learns it fast.
        negatives: how many words are drawn beside each true one; 0 for the full softmax.

    Shapes:
        batch {source [B], target [B, W] the words around, padded; with K negatives noise
        [B, W, K]} -> logits [B, W, 1 + K], the true word first, or [B, W, vocab].
    """

    name: ClassVar[str] = "skip-gram"
    paper: ClassVar[str] = (
        "Mikolov et al. 2013, Distributed Representations of Words and Phrases, arXiv:1310.4546"
    )

    def forward(self, batch: Batch) -> Outputs:
        words = self.source(batch["source"][:, None])  # [B, 1, D]
        targets = batch["target"]
        mask = self.source.mask(targets)
        if not self.negatives:
            logits = (words @ self.output.weight.T).expand(-1, targets.shape[1], -1)
            return Outputs(logits, targets, mask)
        candidate_vectors = self.output(
            candidates(targets, batch, self.negatives)
        )  # [B, W, 1 + K, D]
        logits = (candidate_vectors @ words[..., None])[..., 0]
        return Outputs(logits, torch.zeros_like(targets), mask)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        drawn = self.source.example(batch, 1 + length * (1 + self.negatives), generator)
        example = {"source": drawn[:, 0], "target": drawn[:, 1 : 1 + length]}
        if self.negatives:
            example["noise"] = drawn[:, 1 + length :].view(batch, length, self.negatives)
        return example
