"""Masked language model."""

from typing import Annotated, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Outputs, ZooError
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    Embedding,
    Encoder,
    OutputSchema,
    TensorSchema,
)
from zoo_language.encoder_model import EncoderModel


class MaskedLM(EncoderModel):
    r"""Masked language model with any encoder and an output tied to the embedding.

    .. math:: p(y_t) = \mathrm{softmax}(E\, \mathrm{LN}(f(W h_t)) + b)

    Paper: Devlin et al. 2019, section 3.1.

    Args:
        source: token embedding, whose table is also the output matrix.
        encoder: encoder of the tokens.
        eps: epsilon of the LayerNorm before the output.
        activation: f; 'gelu-tanh' is the tanh approximation of GELU, 'quick-gelu' x σ(1.702 x).
        bias: whether W h has a bias.
        norm_bias: whether the LayerNorm has a bias.
        output_bias: whether the logits have a bias, b.

    Shapes:
        batch {source [B, S], target [B, S], optional loss_mask [B, S], True for the tokens to
        predict} -> logits [B, S, V].
    """

    name: ClassVar[str] = "masked-lm"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    paper: ClassVar[str] = "Devlin et al. 2019, BERT, arXiv:1810.04805"

    def __init__(
        self,
        *,
        source: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        eps: Annotated[float, Field(gt=0)] = 1e-12,
        activation: Literal["gelu", "gelu-tanh", "quick-gelu", "relu", "silu"] = "gelu",
        bias: bool = True,
        norm_bias: bool = True,
        output_bias: bool = True,
    ) -> None:
        super().__init__(source, encoder)
        if self.source.vocab is None:
            raise ZooError(
                f"embedding '{self.source.name}' is not a token embedding and has no vocabulary"
            )
        dim = self.source.dim
        self.transform = nn.Linear(self.encoder.output_dim, dim, bias=bias)
        self.norm = nn.LayerNorm(dim, eps=eps, bias=norm_bias)
        self.eps, self.activation = eps, activation
        self.bias = nn.Parameter(torch.empty(self.source.vocab)) if output_bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source = self.source.input_schema()
        target = source.with_dims("B", "S")._replace(minimum=None, optional=inference)
        loss_mask = TensorSchema(("B", "S"), "bool", optional=True)
        return {"source": source, "target": target, "loss_mask": loss_mask}

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="token")

    def forward(self, batch: Batch) -> Outputs:
        memory = self.encode(batch["source"])
        states = self.norm(self.activate(self.transform(memory.states)))
        logits = self.source.unembed(states)
        logits = logits if self.bias is None else logits + self.bias
        loss_mask = batch.get("loss_mask")
        mask = memory.mask if loss_mask is None else memory.mask & loss_mask
        return Outputs(logits, batch["target"], mask)

    def activate(self, x: Tensor) -> Tensor:
        """Compute f(x)."""
        if self.activation == "relu":
            return F.relu(x)
        if self.activation == "quick-gelu":
            return x * torch.sigmoid(1.702 * x)
        if self.activation == "silu":
            return F.silu(x)
        return F.gelu(x, approximate="tanh" if self.activation == "gelu-tanh" else "none")
