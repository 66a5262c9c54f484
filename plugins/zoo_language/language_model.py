"""Language model: says what comes next."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import Blueprint, Decoder, Embedding, Memory, Speech, refuse_drawing

Symbol = Annotated[int, Field(ge=0)]


class LanguageModel(Model):
    r"""Predicts each token from those before it, with any decoder that needs no source.

    .. math:: p(y) = \prod_t p(y_t \mid y_{<t})

    Paper: Bengio et al. 2003, equation 1.

    Args:
        embedding: of the tokens.
        decoder: predicts the next from the last.
        bos: symbol before the first token; None where texts begin as they are.
        eos: symbol after the last, or several of which any is the last.

    Shapes:
        batch {target [B, T] from bos on, padded} -> logits [B, T - 1, V]; to generate,
        batch {prompt [B, P] from bos on, padded}. Where the embedding has no padding symbol,
        mask [B, T] or [B, P] is True at what is real, if not all is.
    """

    name: ClassVar[str] = "language-model"
    reads: ClassVar[str | None] = "prompt"
    paper: ClassVar[str] = "Bengio et al. 2003, A Neural Probabilistic Language Model"

    def __init__(
        self,
        *,
        embedding: Blueprint[Embedding],
        decoder: Blueprint[Decoder],
        bos: Symbol | None = 1,
        eos: Symbol | Annotated[Sequence[Symbol], Field(min_length=1)] = 2,
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
        mask, real = self.embedding.mask(targets), batch.get("mask")
        return Outputs(logits, targets, mask if real is None else mask & real[:, 1:])

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        tokens = self.embedding.example(batch, length + 1, generator)
        return {"target": tokens, "prompt": tokens}

    def speech(self, batch: Batch) -> Speech:
        prompt, real = batch["prompt"], batch.get("mask")
        if real is None and self.embedding.padding is None:
            real = self.embedding.mask(prompt)
        if real is not None and bool((real[:, 1:] & ~real[:, :-1]).any()):
            raise ZooError("a prompt's mask opens again after it closed; prompts are padded behind")
        first = self.eos if isinstance(self.eos, int) else self.eos[0]
        return Speech(
            self.decoder,
            unread(self.embedding, prompt),
            bos=first if self.bos is None else self.bos,
            eos=self.eos,
            pad=self.pad,
            prompt=prompt,
            lengths=None if real is None else real.sum(dim=1),
        )

    def embedding_for(self, side: str) -> Embedding:
        return self.embedding


def unread(embedding: Embedding, tokens: Tensor) -> Memory:
    """The memory of no source, for tokens [B, T], in the dtype of the embedding."""
    dtype = next((weight.dtype for weight in embedding.parameters()), None)
    return Memory.nothing(tokens.shape[0], tokens.device, dtype)
