"""Classifier model."""

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    OutputSchema,
    TensorSchema,
    forbid_stochastic,
    rename_params,
)


class Classifier(Model):
    r"""Classifier: embedding, encoder and a linear layer over one pooled vector.

    .. math:: p(y) = \mathrm{softmax}(W h + b)

    Paper: Dosovitskiy et al. 2021, equation 4.

    Args:
        source: embedding of the input.
        encoder: encoder of the embedded input.
        classes: number of classes.
        pooling: "first" uses the first encoder state, "summary" the encoder's summary.
        multi_label: whether an item can have any number of classes (objective
            `binary-cross-entropy`) instead of exactly one (`cross-entropy`).

    Shapes:
        batch {source, target [B], or [B, classes] of 0 and 1 with multi_label} -> logits
        [B, 1, classes].
    """

    name: ClassVar[str] = "classifier"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929"
    )

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        classes: Annotated[int, Field(ge=1)],
        pooling: Literal["first", "summary"] = "first",
        multi_label: bool = False,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.multi_label = multi_label
        self.pooling = pooling
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        width = self.encoder.output_dim if pooling == "first" else self.encoder.summary_dim
        self.out = nn.Linear(width, classes)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, read="pooling")
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encoder(self.source(batch["source"]), self.source.mask(batch["source"]))
        vector = memory.states[:, 0] if self.pooling == "first" else memory.summary
        logits, targets = self.out(vector)[:, None], batch["target"][:, None]
        return Outputs(logits, targets, logits.new_ones(logits.shape[:2], dtype=torch.bool))

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        target = TensorSchema(("B",), "integer", below=self.classes)
        if self.multi_label:
            target = TensorSchema(("B", self.classes))
        return {
            "source": self.source.input_schema(),
            "target": target._replace(optional=inference),
        }

    def output_schema(self) -> OutputSchema:
        return OutputSchema("item", targets="multi-label" if self.multi_label else "class")

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        device = generator.device if generator else source.device
        shape = (batch, self.classes) if self.multi_label else (batch,)
        high = 2 if self.multi_label else self.classes
        target = torch.randint(0, high, shape, generator=generator, device=device)
        dtype = self.out.weight.dtype if self.multi_label else None
        return {"source": source, "target": target.to(source.device, dtype)}
