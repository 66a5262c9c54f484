"""Masked language model: fills in what is hidden."""

from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import Blueprint, Embedding, Encoder, Memory, forbid_stochastic


class MaskedLM(Model):
    r"""Predicts every token from all around it, with any encoder.

    .. math:: p(y_t) = \mathrm{softmax}(E\, \mathrm{LN}(\mathrm{gelu}(W h_t)) + b)

    Paper: Devlin et al. 2019, section 3.1.

    Args:
        source: embedding of the tokens, whose table serves as output too.
        encoder: reads them.
        eps: of the LayerNorm before the output.

    Shapes:
        batch {source [B, S], target [B, S], counted [B, S] if not all of them count}
        -> logits [B, S, V].
    """

    name: ClassVar[str] = "masked-lm"
    paper: ClassVar[str] = "Devlin et al. 2019, BERT, arXiv:1810.04805"

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        eps: Annotated[float, Field(gt=0)] = 1e-12,
    ) -> None:
        super().__init__()
        self.source = source.build()
        if self.source.vocab is None:
            raise ZooError(f"embedding '{self.source.name}' has no vocabulary to predict")
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        dim = self.source.dim
        self.transform = nn.Linear(self.encoder.output_dim, dim)
        self.norm = nn.LayerNorm(dim, eps=eps)
        self.bias = nn.Parameter(torch.zeros(self.source.vocab))

    def encode(self, source: Tensor) -> Memory:
        """source [B, S] -> memory."""
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        return memory

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encode(batch["source"])
        states = self.norm(F.gelu(self.transform(memory.states)))
        logits = self.source.unembed(states) + self.bias
        counted = batch.get("counted")
        mask = memory.mask if counted is None else memory.mask & counted
        return Outputs(logits, batch["target"], mask)

    def get_embedding(self, side: str) -> Embedding:
        return self.source

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {
            "source": self.source.example(batch, length, generator),
            "target": self.source.example(batch, length, generator),
        }
