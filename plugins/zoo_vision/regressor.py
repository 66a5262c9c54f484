"""Regressor model."""

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import BatchSchema, Blueprint, Embedding, Encoder, OutputSchema, TensorSchema
from zoo_vision.classifier import Classifier, Inner, Probability


class Regressor(Classifier):
    r"""Regressor: embedding, encoder and a linear layer over one pooled vector predict numbers.

    .. math:: \hat y = W h + b

    Paper: Devlin et al. 2019, section 4.1, where STS-B is a regression task.

    Args:
        source: embedding of the input.
        encoder: encoder of the embedded input.
        outputs: number of values that are predicted for each item.
        pooling: "first" uses the first encoder state, "mean" the mean of the states, "summary" the
            encoder's summary.
        inner: dense layer before the output layer; none if not set.
        dropout: dropout probability of the vector that the output layer takes.

    Shapes:
        batch {source, target [B] of numbers, or [B, outputs] if there are several} -> logits
        [B, 1, outputs], the predicted numbers.
    """

    name: ClassVar[str] = "regressor"
    version: ClassVar[int] = 1
    paper: ClassVar[str] = "Devlin et al. 2019, BERT, arXiv:1810.04805"

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        outputs: Annotated[int, Field(ge=1)] = 1,
        pooling: Literal["first", "mean", "summary"] = "first",
        inner: Blueprint[Inner] | None = None,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__(
            source=source,
            encoder=encoder,
            classes=outputs,
            pooling=pooling,
            inner=inner,
            dropout=dropout,
        )
        self.outputs = outputs

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        target = batch["target"].reshape(-1, self.outputs)
        return super().forward({**batch, "target": target})

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        dims = ("B",) if self.outputs == 1 else ("B", self.outputs)
        target = TensorSchema(dims, "float", optional=inference)
        return {"source": self.source.input_schema(), "target": target}

    def output_schema(self) -> OutputSchema:
        return OutputSchema("item", targets="value")

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        source = self.source.example(batch, length, generator)
        device = generator.device if generator else source.device
        shape = (batch,) if self.outputs == 1 else (batch, self.outputs)
        target = torch.randn(shape, generator=generator, device=device)
        return {"source": source, "target": target.to(self.out.weight)}
