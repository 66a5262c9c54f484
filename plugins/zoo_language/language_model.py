"""Language model: says what comes next."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import Blueprint, Decoder, Embedding, GenerationInputs, Memory, forbid_stochastic

TokenId = Annotated[int, Field(ge=0)]


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
    generation_input: ClassVar[str | None] = "prompt"
    paper: ClassVar[str] = "Bengio et al. 2003, A Neural Probabilistic Language Model"

    def __init__(
        self,
        *,
        embedding: Blueprint[Embedding],
        decoder: Blueprint[Decoder],
        bos: TokenId | None = 1,
        eos: TokenId | Annotated[Sequence[TokenId], Field(min_length=1)] = 2,
    ) -> None:
        super().__init__()
        self.bos = bos
        self.eos = eos
        self.embedding = embedding.build()
        self.pad = self.embedding.validate_special_tokens(bos=bos, eos=eos)
        self.decoder = decoder.build(
            embedding=self.embedding, memory_dim=0, summary_dim=0, carry={}
        )
        forbid_stochastic(self.decoder, "the decoder")

    def forward(self, batch: Batch) -> Outputs:
        inputs, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        logits = self.decoder(inputs, empty_memory(self.embedding, inputs))
        mask, real = self.embedding.mask(targets), batch.get("mask")
        return Outputs(logits, targets, mask if real is None else mask & real[:, 1:])

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        tokens = self.embedding.example(batch, length + 1, generator)
        return {"target": tokens, "prompt": tokens}

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        prompt, real = batch["prompt"], batch.get("mask")
        if real is None and self.embedding.padding is None:
            real = self.embedding.mask(prompt)
        if real is not None and bool((real[:, 1:] & ~real[:, :-1]).any()):
            raise ZooError("a prompt's mask opens again after it closed; prompts are padded behind")
        first = self.eos if isinstance(self.eos, int) else self.eos[0]
        return GenerationInputs(
            self.decoder,
            empty_memory(self.embedding, prompt),
            bos=first if self.bos is None else self.bos,
            eos=self.eos,
            pad=self.pad,
            prompt=prompt,
            lengths=None if real is None else real.sum(dim=1),
        )

    def get_embedding(self, side: str) -> Embedding:
        return self.embedding


def empty_memory(embedding: Embedding, tokens: Tensor) -> Memory:
    """The memory of no source, for tokens [B, T], in the dtype of the embedding."""
    dtype = next((weight.dtype for weight in embedding.parameters()), None)
    return Memory.empty(tokens.shape[0], tokens.device, dtype)
