"""Pooled states with a norm."""

from dataclasses import replace
from typing import ClassVar, Literal

from torch import Tensor

from zoo.plugin import Blueprint, Encoder, FromParent, Memory
from zoo_transformer.norm import Norm


class NormedPoolingEncoder(Encoder):
    r"""Encoder whose summary is the norm of a pooled state.

    .. math:: s = \mathrm{LN}(h_1), \quad \text{or} \quad
        s = \mathrm{LN}\left(\frac{1}{n - 1} \sum_{i=2}^{n} h_i\right)

    The states have no norm of their own if that of the encoder is turned off (`final: false`).
    Models use the summary with ``pooling: summary``.

    Paper: Radford et al. 2021 (CLIP), of the class token; Bao et al. 2022 (BEiT), section 2.5, of
    the mean of the patches.

    Args:
        input_dim: width of the inputs.
        encoder: encoder whose states are pooled.
        pooling: "first" uses the first state, "mean" the mean of the states, "rest" the mean of all
            states but the first.
        norm: kind of the norm; LayerNorm if not set.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states of the encoder [B, S, D]; the summary is
        [B, D].
    """

    name: ClassVar[str] = "normed-pooling"
    paper: ClassVar[str] = (
        "Bao et al. 2022, BEiT: BERT Pre-Training of Image Transformers, arXiv:2106.08254"
    )

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        encoder: Blueprint[Encoder],
        pooling: Literal["first", "mean", "rest"] = "first",
        norm: Blueprint[Norm] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder.build(input_dim=input_dim)
        dim = self.encoder.output_dim
        self.input_dim, self.output_dim, self.carry = input_dim, dim, self.encoder.carry
        self.summary_dim, self.pooling = dim, pooling
        self.norm = (norm.build() if norm else Norm()).build(dim)

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}, pooling={self.pooling!r}"

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.encoder(inputs, mask)
        return replace(memory, summary=self.norm(self._pool(memory)))

    def _pool(self, memory: Memory) -> Tensor:
        """Return one state [B, D] for each item."""
        if self.pooling == "first":
            return memory.states[:, 0]
        first = int(self.pooling == "rest")
        states, valid = memory.states[:, first:], memory.mask[:, first:, None]
        return states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(min=1)
