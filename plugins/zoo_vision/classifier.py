"""Classifier model."""

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    FromParent,
    Memory,
    OutputSchema,
    TensorSchema,
    forbid_stochastic,
    rename_params,
)

Probability = Annotated[float, Field(ge=0, lt=1)]


class Inner(nn.Module):
    r"""Dense layer between the pooled vector and the output layer of a classifier.

    .. math:: h' = f(W h + b), \quad \text{or with a norm: } \mathrm{LN}(f(W h + b))

    Args:
        input_dim: width of the pooled vector.
        dim: width of the result; input_dim if not set.
        activation: f; 'none' is the identity.
        dropout: dropout probability of the pooled vector.
        bias: whether the layer has a bias.
        norm_eps: epsilon of a LayerNorm of the result (ModernBERT); none if not set.
        norm_bias: whether that LayerNorm has a bias.

    Shapes:
        [B, input_dim] -> [B, dim].
    """

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        dim: Annotated[int, Field(ge=1)] | None = None,
        activation: Literal["tanh", "relu", "gelu", "none"] = "tanh",
        dropout: Probability = 0.0,
        bias: bool = True,
        norm_eps: Annotated[float, Field(gt=0)] | None = None,
        norm_bias: bool = True,
    ) -> None:
        super().__init__()
        self.input_dim, self.output_dim, self.activation = input_dim, dim or input_dim, activation
        self.map = nn.Linear(input_dim, self.output_dim, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.norm = None
        if norm_eps is not None:
            self.norm = nn.LayerNorm(self.output_dim, eps=norm_eps, bias=norm_bias)

    def forward(self, vector: Tensor) -> Tensor:
        projected: Tensor = self.map(self.dropout(vector))
        activate = {"tanh": torch.tanh, "relu": torch.relu, "gelu": nn.functional.gelu}
        if self.activation != "none":
            projected = activate[self.activation](projected)
        return projected if self.norm is None else self.norm(projected)


class Classifier(Model):
    r"""Classifier: embedding, encoder and a linear layer over one pooled vector.

    .. math:: p(y) = \mathrm{softmax}(W h + b), \quad
        \text{or with several labels } p(y_i) = \sigma(w_i h + b_i)

    Paper: Dosovitskiy et al. 2021, equation 4; Devlin et al. 2019, section 4.1, for an inner layer.

    Args:
        source: embedding of the input.
        encoder: encoder of the embedded input.
        classes: number of classes.
        pooling: "first" uses the first encoder state, "mean" the mean of the states,
            "first-mean" the first state and the mean of the others, concatenated (Oquab et al.
            2023), "summary" the encoder's summary.
        inner: dense layer before the output layer; none if not set.
        dropout: dropout probability of the vector that the output layer takes.
        multi_label: whether an item can have any number of labels (objective
            `binary-cross-entropy`) instead of exactly one (`cross-entropy`).
        distilled: whether a second output layer takes the second state, that of a distillation
            token, and the logits are the mean of both (Touvron et al. 2021, section 4); it requires
            pooling "first" and no inner layer.

    Shapes:
        batch {source, target [B], or [B, classes] of 0 and 1 with multi_label} -> logits
        [B, 1, classes].
    """

    name: ClassVar[str] = "classifier"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
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
        pooling: Literal["first", "mean", "first-mean", "summary"] = "first",
        inner: Blueprint[Inner] | None = None,
        dropout: Probability = 0.0,
        multi_label: bool = False,
        distilled: bool = False,
    ) -> None:
        super().__init__()
        if distilled and (pooling != "first" or inner is not None):
            raise ZooError("distilled requires pooling 'first' and no inner layer")
        self.classes = classes
        self.multi_label = multi_label
        self.pooling = pooling
        self.source = source.build()
        self.encoder = encoder.build(input_dim=self.source.dim)
        forbid_stochastic(self.encoder, "the encoder")
        width = self.encoder.summary_dim if pooling == "summary" else self.encoder.output_dim
        width *= 2 if pooling == "first-mean" else 1
        self.inner = None if inner is None else inner.build(input_dim=width)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width if self.inner is None else self.inner.output_dim, classes)
        self.distilled_out = nn.Linear(width, classes) if distilled else None

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, read="pooling")
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encoder(self.source(batch["source"]), self.source.mask(batch["source"]))
        vector = self.pool(memory)
        if self.inner is not None:
            vector = self.inner(vector)
        logits = self.out(self.dropout(vector))
        if self.distilled_out is not None:
            logits = (logits + self.distilled_out(self.dropout(memory.states[:, 1]))) / 2
        logits = logits[:, None]
        mask = torch.ones(logits.shape[:2], dtype=torch.bool, device=logits.device)
        return Outputs(logits, batch["target"][:, None], mask)

    def pool(self, memory: Memory) -> Tensor:
        """Return one vector [B, D] for each item."""
        if self.pooling == "summary":
            return memory.summary
        if self.pooling == "first":
            return memory.states[:, 0]
        if self.pooling == "first-mean":
            others = _mean(memory.states[:, 1:], memory.mask[:, 1:])
            return torch.cat([memory.states[:, 0], others], dim=-1)
        return _mean(memory.states, memory.mask)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        target = TensorSchema(("B",), "integer", below=self.classes)
        if self.multi_label:
            target = TensorSchema(("B", self.classes))
        target = target._replace(optional=inference)
        return {"source": self.source.input_schema(), "target": target}

    def output_schema(self) -> OutputSchema:
        targets: Literal["class", "multi-label"] = "multi-label" if self.multi_label else "class"
        return OutputSchema(logits="item", targets=targets)

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


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean [B, D] of the valid states [B, S, D]."""
    valid = mask[..., None]
    return states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(min=1)
