"""Skip-gram: predicts the context of a word."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import BatchSchema
from zoo_word2vec.word_model import WordModel, concat_noise


class SkipGram(WordModel):
    r"""Skip-gram: predicts the context words of a word from its vector.

    .. math:: p(o \mid c) = \frac{\exp(u_o^\top v_c)}{\sum_w \exp(u_w^\top v_c)}

    With negatives, only the logits of the target and of the noise words are computed, for the
    objective `negative-sampling`. u is initialised uniformly, not with zeros as in the authors'
    program.

    Paper: Mikolov et al. 2013, equations 2 and 4.

    Args:
        source: embedding with the input vectors v.
        negatives: number of noise words for each target; 0 computes the full softmax.

    Shapes:
        batch {source [B], target [B, W] context words, padded; with K negatives noise
        [B, W, K]} -> logits [B, W, 1 + K], the target first, or [B, W, vocab].
    """

    name: ClassVar[str] = "skip-gram"
    paper: ClassVar[str] = (
        "Mikolov et al. 2013, Distributed Representations of Words and Phrases, arXiv:1310.4546"
    )

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        words = self.source.input_schema()
        noise = words.with_dims("B", "W", self.negatives or "K")
        return {
            "source": words.with_dims("B"),
            "target": words.with_dims("B", "W"),
            "noise": noise._replace(optional=not self.negatives),
        }

    def forward(self, batch: Batch) -> Outputs:
        words = self.source(batch["source"][:, None])  # [B, 1, D]
        targets = batch["target"]
        mask = self.source.mask(targets)
        if not self.negatives:
            logits = (words @ self.output_table().T).expand(-1, targets.shape[1], -1)
            return Outputs(logits, targets, mask)
        candidate_vectors = self.output(concat_noise(targets, batch))  # [B, W, 1 + K, D]
        logits = (candidate_vectors @ words[..., None])[..., 0]
        return Outputs(logits, torch.zeros_like(targets), mask)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        words = self.source.example(batch, 1 + length * (1 + self.negatives), generator)
        example = {"source": words[:, 0], "target": words[:, 1 : 1 + length]}
        if self.negatives:
            example["noise"] = words[:, 1 + length :].view(batch, length, self.negatives)
        return example
