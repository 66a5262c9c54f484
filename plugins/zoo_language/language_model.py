"""Language model: says what comes next."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Blueprint, Decoder, Embedding, Memory, Model, Outputs, ZooError


class LanguageModel(Model):
    r"""Predicts each token from those before it, with any decoder that needs no source.

    .. math:: p(y) = \prod_t p(y_t \mid y_{<t})

    Paper: Bengio et al. 2003, equation 1.

    Args:
        embedding: of the tokens.
        decoder: predicts the next from the last.
        bos: symbol before the first token.
        eos: symbol after the last.

    Shapes:
        batch {target [B, T] from bos on, padded} -> logits [B, T - 1, V].
    """

    name: ClassVar[str] = "language-model"
    paper: ClassVar[str] = "Bengio et al. 2003, A Neural Probabilistic Language Model"

    def __init__(
        self,
        *,
        embedding: Blueprint[Embedding],
        decoder: Blueprint[Decoder],
        bos: Annotated[int, Field(ge=0)] = 1,
        eos: Annotated[int, Field(ge=0)] = 2,
    ) -> None:
        super().__init__()
        self.bos = bos
        self.eos = eos
        built = embedding.build()
        if built.vocab is None or built.padding is None:
            raise ZooError(f"embedding '{built.name}' has no vocabulary with padding to speak in")
        for name, token in (("bos", bos), ("eos", eos)):
            if token >= built.vocab:
                raise ZooError(f"{name} ({token}) must be a symbol below vocab ({built.vocab})")
        if eos == built.padding:
            raise ZooError(f"eos ({eos}) must be another symbol than padding ({built.padding})")
        self.pad = built.padding
        self.embedding = built
        self.decoder = decoder.build(embedding=built, memory_dim=0, summary_dim=0, carry={})

    def forward(self, batch: Batch) -> Outputs:
        told, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        logits = self.decoder(told, self._nothing(told))
        return Outputs(logits, targets, targets != self.pad)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {"target": self.embedding.example(batch, length + 1, generator)}

    def _nothing(self, tokens: Tensor) -> Memory:
        """The memory of no source, for a batch of tokens [B, T], in the dtype of the table."""
        kept = next(self.embedding.parameters(), torch.empty(0))
        empty = kept.new_zeros(tokens.shape[0], 0, device=tokens.device)
        return Memory(empty[:, :, None], empty.bool(), empty)
