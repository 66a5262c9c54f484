"""Language model: says what comes next."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import (
    Batch,
    Blueprint,
    Decoded,
    Decoder,
    Embedding,
    Filter,
    Memory,
    Model,
    Outputs,
    Sampler,
    Speech,
    refuse_drawing,
    speak,
)


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
        batch {target [B, T] from bos on, padded} -> logits [B, T - 1, V]; to generate,
        batch {prompt [B, P] from bos on, padded}.
    """

    name: ClassVar[str] = "language-model"
    reads: ClassVar[str | None] = "prompt"
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
        self.embedding = embedding.build()
        self.pad = self.embedding.spoken_in(bos=bos, eos=eos)
        self.decoder = decoder.build(
            embedding=self.embedding, memory_dim=0, summary_dim=0, carry={}
        )
        refuse_drawing(self.decoder, "the decoder")

    def forward(self, batch: Batch) -> Outputs:
        told, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        logits = self.decoder(told, unread(self.embedding, told))
        return Outputs(logits, targets, targets != self.pad)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        tokens = self.embedding.example(batch, length + 1, generator)
        return {"target": tokens, "prompt": tokens}

    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
        filters: Sequence[Filter] = (),
    ) -> Decoded:
        return speak(
            self.speech(batch),
            sampler,
            max_length=max_length,
            generator=generator,
            filters=filters,
        )

    def speech(self, batch: Batch) -> Speech:
        prompt = batch["prompt"]
        memory = unread(self.embedding, prompt)
        return Speech(self.decoder, memory, bos=self.bos, eos=self.eos, pad=self.pad, prompt=prompt)

    def embedding_for(self, side: str) -> Embedding:
        return self.embedding


def unread(embedding: Embedding, tokens: Tensor) -> Memory:
    """The memory of no source, for tokens [B, T], in the dtype of the embedding."""
    dtype = next((weight.dtype for weight in embedding.parameters()), None)
    return Memory.nothing(tokens.shape[0], tokens.device, dtype)
