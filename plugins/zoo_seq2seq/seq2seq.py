"""Sequence to sequence: an encoder reads, a decoder speaks."""

from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Model, Outputs, ZooError, record_samples, recording
from zoo.plugin import (
    Attention,
    Blueprint,
    Decoder,
    Embedding,
    Encoder,
    GenerationInputs,
    Memory,
    find_stochastic,
    forbid_stochastic,
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
        shared: source and target are looked up in one table.
        bos: target symbol before the first token; may be the padding.
        eos: target symbol after the last.
        looks: hand the weights of the decoder's looks over to the objective, as 'looks', beside
            'source_mask', which tells the places that are real.

    Shapes:
        batch {source [B, S], target [B, T] from bos to eos, padded} -> logits [B, T - 1, V],
        looks [B, T - 1, S], source_mask [B, S].
    """

    name: ClassVar[str] = "seq2seq"
    generation_input: ClassVar[str | None] = "source"
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
        shared: bool = False,
        bos: Annotated[int, Field(ge=0)] = 1,
        eos: Annotated[int, Field(ge=0)] = 2,
        looks: bool = False,
    ) -> None:
        super().__init__()
        self.bos = bos
        self.eos = eos
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        if shared and target is not None:
            raise ZooError("source and target share one table, so 'target' has no meaning")
        embedding = self.source if shared else (target or source).build()
        self.pad = embedding.validate_special_tokens(bos=bos, eos=eos)
        if embedding.padding is None:
            raise ZooError(
                f"embedding '{embedding.name}' has no padding, by which targets of unequal length "
                "are told; set padding"
            )
        self.decoder = decoder.build(
            embedding=embedding,
            memory_dim=self.encoder.output_dim,
            summary_dim=self.encoder.summary_dim,
            carry=self.encoder.carry,
        )
        self.is_stochastic = find_stochastic(self.decoder) is not None
        self.looks = looks
        if looks:
            _require_single_attention(self.decoder)

    def encode(self, source: Tensor) -> Memory:
        """source [B, S] -> memory."""
        memory: Memory = self.encoder(self.source(source), self.source.mask(source))
        return memory

    def forward(self, batch: Batch) -> Outputs:
        told, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        memory = self.encode(batch["source"])
        if not self.looks:
            return self._outputs(told, targets, memory)
        with recording(self.decoder, gradients=True) as log:
            outputs = self._outputs(told, targets, memory)
        (calls,) = log.values()
        looks = torch.cat(calls, dim=2).mean(dim=1)  # [B, T, S]
        return replace(outputs, extras={"looks": looks, "source_mask": memory.mask})

    def _outputs(self, told: Tensor, targets: Tensor, memory: Memory) -> Outputs:
        if not self.is_stochastic:
            return Outputs(self.decoder(told, memory), targets, targets != self.pad)
        with record_samples(self.decoder) as log:
            logits = self.decoder(told, memory)
        return Outputs(logits, targets, targets != self.pad, log.total())

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        return {
            "source": source,
            "target": self._target_embedding().example(batch, length + 2, generator),
        }

    @torch.no_grad()
    def prepare_generation(self, batch: Batch) -> GenerationInputs:
        memory = self.encode(batch["source"])
        return GenerationInputs(self.decoder, memory, bos=self.bos, eos=self.eos, pad=self.pad)

    def get_embedding(self, side: str) -> Embedding:
        return self.source if side == "source" else self._target_embedding()

    def _target_embedding(self) -> Embedding:
        embedding: Embedding = self.decoder.embedding  # type: ignore[assignment]
        return embedding


def _require_single_attention(decoder: Decoder) -> None:
    count = sum(isinstance(module, Attention) for module in decoder.modules())
    if count != 1:
        raise ZooError(
            f"looks: true needs a decoder with one attention, but decoder '{decoder.name}' has "
            f"{count or 'none'}"
        )
