"""Bidirectional language model (ELMo)."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import BatchSchema, Blueprint, Decoder, Embedding, OutputSchema, forbid_stochastic
from zoo_language.language_model import empty_memory


class BiLM(Model):
    r"""Bidirectional language model: one decoder in each direction.

    .. math:: \sum_t \log p(y_t \mid y_{<t}) + \log \overleftarrow{p}(y_t \mid y_{>t})

    Paper: Peters et al. 2018, equation 1 (ELMo). Both directions share the embedding.

    Args:
        embedding: token embedding.
        decoder: decoder of one direction, built twice.
        eos: token ID that ends a sequence and starts the backward direction.

    Shapes:
        batch {target [B, T] from bos to eos, padded} -> logits [B, 2 (T - 1), V]: the forward
        logits of tokens 1..T-1, then the backward logits of tokens T-2..0.
    """

    name: ClassVar[str] = "bilm"
    paper: ClassVar[str] = (
        "Peters et al. 2018, Deep Contextualized Word Representations, arXiv:1802.05365"
    )

    def __init__(
        self,
        *,
        embedding: Blueprint[Embedding],
        decoder: Blueprint[Decoder],
        eos: Annotated[int, Field(ge=0)] = 2,
    ) -> None:
        super().__init__()
        self.eos: int = eos
        self.embedding = embedding.build()
        if self.embedding.vocab is None or self.embedding.padding is None:
            raise ZooError(f"embedding '{self.embedding.name}' needs a vocabulary with padding")
        kwargs = {"embedding": self.embedding, "memory_dim": 0, "summary_dim": 0, "carry": {}}
        self.forwards = decoder.build(**kwargs)
        self.backwards = decoder.build(**kwargs)
        forbid_stochastic(self.forwards, "the decoder")

    def forward(self, batch: Batch) -> Outputs:
        tokens = batch["target"]
        reversed_tokens = reverse_tokens(tokens, self.embedding.mask(tokens))
        memory = empty_memory(self.embedding, tokens)
        logits = [
            self.forwards(tokens[:, :-1], memory),
            self.backwards(reversed_tokens[:, :-1], memory),
        ]
        targets = torch.cat([tokens[:, 1:], reversed_tokens[:, 1:]], dim=1)
        return Outputs(torch.cat(logits, dim=1), targets, self.embedding.mask(targets))

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        tokens = self.embedding.input_schema().with_dims("B", "T")
        return {"target": tokens._replace(prefix=(self.eos,), suffix=(self.eos,))}

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="token")

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {"target": self.embedding.example(batch, length + 1, generator)}


def reverse_tokens(tokens: Tensor, mask: Tensor) -> Tensor:
    """Reverse the valid tokens of each row [B, T]; padding stays at the end."""
    index = torch.arange(tokens.shape[1], device=tokens.device)
    reversed_index = mask.sum(dim=1, keepdim=True) - 1 - index
    return tokens.gather(1, torch.where(reversed_index >= 0, reversed_index, index))
