"""CBOW: predicts a word from its context."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import BatchSchema
from zoo_word2vec.word_model import WordModel, concat_noise


class Cbow(WordModel):
    r"""Continuous bag of words (CBOW): predicts a word from the mean vector of its context.

    .. math:: p(c \mid o_{1..n}) = \mathrm{softmax}_c\Big(u_c^\top \frac{1}{n} \sum_j v_{o_j}\Big)

    Paper: Mikolov et al. 2013, section 3.1; negatives as in arXiv:1310.4546, equation 4.

    Args:
        source: embedding with the input vectors v.
        negatives: number of noise words for each target; 0 computes the full softmax.

    Shapes:
        batch {source [B, W] context words, padded, target [B]; with K negatives noise
        [B, 1, K]} -> logits [B, 1, 1 + K], the target first, or [B, 1, vocab].
    """

    name: ClassVar[str] = "cbow"
    paper: ClassVar[str] = (
        "Mikolov et al. 2013, Efficient Estimation of Word Representations, arXiv:1301.3781"
    )

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        words = self.source.input_schema()
        noise = words.with_dims("B", 1, self.negatives or "K")
        return {
            "source": words.with_dims("B", "W"),
            "target": words.with_dims("B"),
            "noise": noise._replace(optional=not self.negatives),
        }

    def forward(self, batch: Batch) -> Outputs:
        valid = self.source.mask(batch["source"])  # [B, W]
        count = valid.sum(dim=1, keepdim=True)
        vectors = self.source(batch["source"]) * valid[..., None]
        mean = vectors.sum(dim=1, keepdim=True) / count.clamp(min=1)[..., None]  # [B, 1, D]
        targets, mask = batch["target"][:, None], count > 0
        if not self.negatives:
            return Outputs(mean @ self.output_table().T, targets, mask)
        candidate_vectors = self.output(concat_noise(targets, batch))  # [B, 1, 1 + K, D]
        logits = (candidate_vectors @ mean[..., None])[..., 0]
        return Outputs(logits, torch.zeros_like(targets), mask)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        words = self.source.example(batch, length + 1 + self.negatives, generator)
        example = {"source": words[:, :length], "target": words[:, length]}
        if self.negatives:
            example["noise"] = words[:, None, length + 1 :]
        return example
