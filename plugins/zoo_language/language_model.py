"""Causal language model."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Decoder,
    Embedding,
    GenerationInputs,
    Memory,
    OutputSchema,
    TensorSchema,
    forbid_stochastic,
)

TokenId = Annotated[int, Field(ge=0)]


class LanguageModel(Model):
    r"""Causal language model with any decoder that does not need a source.

    .. math:: p(y) = \prod_t p(y_t \mid y_{<t})

    Paper: Bengio et al. 2003, equation 1. The start of a text is given: bos is not a target, also
    where a block has several texts (``batch.block``).

    Args:
        embedding: token embedding.
        decoder: predicts the next token.
        bos: token ID that starts a text; None for none.
        eos: token ID that ends a text, or a list of them; None for none: texts are generated up
            to the maximum length.
        generates_padding: whether the padding token can be generated, as any other token.

    Shapes:
        batch {target [B, T] from bos on, padded} -> logits [B, T - 1, V]; to generate,
        batch {prompt [B, P] from bos on, padded}. If the embedding has no padding token, a mask
        [B, T] or [B, P] marks the valid tokens. Of a row with several texts (``batch.pack``),
        segments [B, T] are the numbers of the text of each token; no text attends to another.
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
        eos: TokenId | Annotated[Sequence[TokenId], Field(min_length=1)] | None = 2,
        generates_padding: bool = False,
    ) -> None:
        super().__init__()
        self.bos = bos
        self.eos: int | Sequence[int] = () if eos is None else eos
        self.generates_padding = generates_padding
        self.first_eos = eos if isinstance(eos, int) else next(iter(eos or ()), None)
        self.is_bos_given = bos not in (None, self.first_eos)
        self.embedding = embedding.build()
        self.pad = self.embedding.validate_special_tokens(bos=bos, eos=self.eos)
        self.decoder = decoder.build(
            embedding=self.embedding, memory_dim=0, summary_dim=0, carry={}
        )
        forbid_stochastic(self.decoder, "the decoder")

    def forward(self, batch: Batch) -> Outputs:
        inputs, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        memory, segments = empty_memory(self.embedding, inputs), batch.get("segments")
        mask, valid = self.embedding.mask(targets), batch.get("mask")
        if segments is None:
            logits = self.decoder(inputs, memory)
        else:
            logits = self.decoder(inputs, memory, segments=segments[:, :-1])
            mask = mask & (segments[:, 1:] == segments[:, :-1])
        if self.is_bos_given:
            mask = mask & (targets != self.bos)
        return Outputs(logits, targets, mask if valid is None else mask & valid[:, 1:])

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        bos, eos = (() if token is None else (token,) for token in (self.bos, self.first_eos))
        tokens = self.embedding.input_schema()._replace(pad=self.pad, prefix=bos)
        target, prompt = tokens.with_dims("B", "T"), tokens.with_dims("B", "P")
        mask = TensorSchema(("B", "P" if inference else "T"), "bool", optional=True)
        packed = self.decoder.supports_segments and not inference
        segments = TensorSchema(("B", "T"), "integer", optional=True)
        return {
            "target": target._replace(optional=inference, suffix=eos),
            "prompt": prompt._replace(optional=not inference),
            "mask": mask,
            **({"segments": segments} if packed else {}),
        }

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="token", decoding=("step",))

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        tokens = self.embedding.example(batch, length + 1, generator)
        return {"target": tokens, "prompt": tokens}

    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        prompt, mask, lengths = batch["prompt"], batch.get("mask"), None
        if mask is not None:
            mask = mask.cpu()  # each value that is read is awaited
            if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
                raise ZooError(
                    "the mask of a prompt is True after a False; pad prompts on the right"
                )
            lengths = mask.sum(dim=1)
        elif self.embedding.padding is None:
            lengths = torch.full(prompt.shape[:1], prompt.shape[1], device="cpu")
        return GenerationInputs(
            self.decoder,
            empty_memory(self.embedding, prompt),
            bos=next(token for token in (self.bos, self.first_eos, self.pad) if token is not None),
            eos=self.eos,
            pad=self.pad,
            prompt=prompt,
            lengths=lengths,
            # Without padding and end tokens, the ID of the padding is that of an ordinary token.
            generates_padding=self.generates_padding
            or (self.first_eos is None and self.embedding.padding is None),
        )

    def get_embedding(self, side: str) -> Embedding:
        return self.embedding


def empty_memory(embedding: Embedding, tokens: Tensor) -> Memory:
    """Return the memory of an empty source for tokens [B, T], in the dtype of the embedding."""
    dtype = next((weight.dtype for weight in embedding.parameters()), None)
    return Memory.empty(tokens.shape[0], tokens.device, dtype)
