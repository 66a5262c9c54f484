"""Features of an encoder, without a head."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    Linear,
    OutputSchema,
    TensorSchema,
)
from zoo_language.encoder_model import EncoderModel


class Features(EncoderModel):
    r"""Encoder without a head: its states are the outputs.

    .. math:: h = \mathrm{encode}(x), \qquad p = \tanh(W h_1 + b) \text{ if pooled}

    It has no objective. To train it, use its weights in a model with a head, such as a
    classifier or a tagger, or train it as a masked language model.

    Paper: Devlin et al. 2019, section 3 (the final states, and the pooled first state).

    Args:
        source: embedding of the inputs.
        encoder: encoder of the inputs.
        pooler: whether the extras contain `pooled` [B, D], the first state after a linear layer
            and tanh.

    Shapes:
        batch {source [B, S]} -> logits [B, S, D], the states; targets are zeros. If the embedding
        of tokens has no padding token, a mask [B, S] marks the valid ones.
    """

    name: ClassVar[str] = "features"
    paper: ClassVar[str] = "Devlin et al. 2019, BERT, arXiv:1810.04805"

    def __init__(
        self, *, source: Blueprint[Embedding], encoder: Blueprint[Encoder], pooler: bool = False
    ) -> None:
        super().__init__(source, encoder)
        dim = self.encoder.output_dim
        self.pooler = Linear(dim, dim) if pooler else None

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        schema = {"source": self.source.input_schema()}
        if self.source.vocab is not None and self.source.padding is None:
            schema["mask"] = TensorSchema(("B", "S"), "bool", optional=True)
        return schema

    def output_schema(self) -> OutputSchema:
        extras = () if self.pooler is None else ("pooled",)
        return OutputSchema(
            logits="feature",
            targets="multi-label",
            extras=extras,
            trained_by=(extras,) if extras else (),
        )

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encode(batch["source"], batch.get("mask"))
        extras = {}
        if self.pooler is not None:
            extras["pooled"] = torch.tanh(self.pooler(memory.states[:, 0]))
        return Outputs(memory.states, torch.zeros_like(memory.states), memory.mask, extras=extras)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {"source": self.source.example(batch, length, generator)}
