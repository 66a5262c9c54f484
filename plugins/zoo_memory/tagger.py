"""Tagger: says something of every position."""

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import Blueprint, Embedding, Encoder, forbid_stochastic


class Tagger(Model):
    r"""Names every position from the encoder's state there: one label, or each label's yes or no.

    .. math:: z_t = W h_t + b

    Paper: Graves et al. 2014, section 4.1, where the labels are bits to be copied.

    Args:
        source: embedding of the input.
        encoder: reads it.
        labels: how many there are.
        several: a position has any number of labels, for `binary-cross-entropy`; one if not.

    Shapes:
        batch {source, target [B, S], or [B, S, labels] of 0 and 1 if several; mask [B, S], the
        positions that count, all real ones if absent} -> logits [B, S, labels].
    """

    name: ClassVar[str] = "tagger"
    paper: ClassVar[str] = (
        "Graves, Wayne and Danihelka 2014, Neural Turing Machines, arXiv:1410.5401"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        labels: Annotated[int, Field(ge=1)],
        several: bool = False,
    ) -> None:
        super().__init__()
        self.several = several
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        self.out = nn.Linear(self.encoder.output_dim, labels)

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encoder(self.source(batch["source"]), self.source.mask(batch["source"]))
        loss_mask = batch.get("mask")
        mask = memory.mask if loss_mask is None else memory.mask & loss_mask
        return Outputs(self.out(memory.states), batch["target"], mask)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        labels = self.out.out_features
        positions = self.source.mask(source).shape
        shape = (*positions, labels) if self.several else positions
        where = generator.device if generator else source.device
        high = 2 if self.several else labels
        targets = torch.randint(0, high, shape, generator=generator, device=where).to(source.device)
        return {
            "source": source,
            "target": targets.to(self.out.weight.dtype if self.several else None),
        }
