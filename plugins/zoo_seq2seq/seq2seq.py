"""Sequence to sequence: an encoder reads, a decoder speaks."""

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
    Encoder,
    Memory,
    Model,
    Outputs,
    Sampler,
    ZooError,
    choosing,
    decode,
    drawing,
)


class Seq2Seq(Model):
    r"""Reads one sequence and speaks another, a token at a time.

    .. math:: p(y \mid x) = \prod_t p(y_t \mid y_{<t}, \mathrm{encode}(x))

    Paper: Sutskever et al. 2014, equation 1.

    Args:
        source: embedding of what is read.
        encoder: reads it.
        decoder: speaks.
        target: embedding of what is spoken; another table like the source's if not set.
        bos: target symbol before the first token.
        eos: target symbol after the last.

    Shapes:
        batch {source [B, S], target [B, T] from bos to eos, padded} -> logits [B, T - 1, V].
    """

    name: ClassVar[str] = "seq2seq"
    paper: ClassVar[str] = (
        "Sutskever et al. 2014, Sequence to Sequence Learning with Neural Networks, arXiv:1409.3215"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        decoder: Blueprint[Decoder],
        target: Blueprint[Embedding] | None = None,
        bos: Annotated[int, Field(ge=0)] = 1,
        eos: Annotated[int, Field(ge=0)] = 2,
    ) -> None:
        super().__init__()
        self.bos = bos
        self.eos = eos
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        drawn = drawing(self.encoder)
        if drawn is not None:
            raise ZooError(
                f"alignment '{drawn.name}' draws where the encoder looks, of which no objective "
                "hears; let a gradient pass it (straight_through: true) or choose another"
            )
        embedding = (target or source).build()
        self.pad = _padding(embedding, bos, eos)
        self.decoder = decoder.build(
            embedding=embedding,
            memory_dim=self.encoder.output_dim,
            summary_dim=self.encoder.summary_dim,
            carry=self.encoder.carry,
        )
        self.draws = drawing(self.decoder) is not None

    def encode(self, source: Tensor) -> Memory:
        """source [B, S] -> memory."""
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        return memory

    def forward(self, batch: Batch) -> Outputs:
        told, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        memory = self.encode(batch["source"])
        if not self.draws:
            return Outputs(self.decoder(told, memory), targets, targets != self.pad)
        with choosing(self.decoder) as log:
            logits = self.decoder(told, memory)
        return Outputs(logits, targets, targets != self.pad, log.summed())

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        return {"source": source, "target": self._embedding().example(batch, length + 2, generator)}

    @torch.no_grad()
    def generate(
        self,
        batch: Batch,
        sampler: Sampler,
        *,
        max_length: int,
        generator: torch.Generator | None = None,
    ) -> Decoded:
        return decode(
            self.decoder,
            self.encode(batch["source"]),
            sampler,
            bos=self.bos,
            eos=self.eos,
            pad=self.pad,
            max_length=max_length,
            generator=generator,
        )

    def _embedding(self) -> Embedding:
        embedding: Embedding = self.decoder.embedding  # type: ignore[assignment]
        return embedding


def _padding(embedding: Embedding, bos: int, eos: int) -> int:
    if embedding.vocab is None or embedding.padding is None:
        raise ZooError(f"embedding '{embedding.name}' has no vocabulary with padding to speak in")
    for name, token in (("bos", bos), ("eos", eos)):
        if token >= embedding.vocab or token == embedding.padding:
            raise ZooError(
                f"{name} ({token}) must be a symbol below vocab ({embedding.vocab}) "
                f"other than padding ({embedding.padding})"
            )
    return embedding.padding
