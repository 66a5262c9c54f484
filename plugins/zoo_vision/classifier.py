"""Classifier: one name for the whole input."""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import Blueprint, Embedding, Encoder, forbid_stochastic


class Classifier(Model):
    r"""Names the whole input from one vector of what the encoder made of it.

    .. math:: p(y) = \mathrm{softmax}(W h + b)

    Paper: Dosovitskiy et al. 2021, equation 4.

    Args:
        source: embedding of the input.
        encoder: reads it.
        classes: how many names there are.
        read: the first state, or the encoder's summary.

    Shapes:
        batch {source, target [B]} -> logits [B, 1, classes].
    """

    name: ClassVar[str] = "classifier"
    paper: ClassVar[str] = (
        "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        classes: Annotated[int, Field(ge=1)],
        read: Literal["first", "summary"] = "first",
    ) -> None:
        super().__init__()
        self.read = read
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        width = self.encoder.output_dim if read == "first" else self.encoder.summary_dim
        self.out = nn.Linear(width, classes)

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encoder(self.source(batch["source"]), self.source.mask(batch["source"]))
        vector = memory.states[:, 0] if self.read == "first" else memory.summary
        targets = batch["target"][:, None]
        return Outputs(
            self.out(vector)[:, None], targets, torch.ones_like(targets, dtype=torch.bool)
        )

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        device = generator.device if generator else source.device
        drawn = torch.randint(
            0, self.out.out_features, (batch,), generator=generator, device=device
        )
        return {"source": source, "target": drawn.to(source.device)}
