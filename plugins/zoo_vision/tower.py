"""Tower: one vector for each input."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Blueprint, Embedding, Encoder, Linear, Memory, forbid_stochastic


class Tower(nn.Module):
    """Embedding, encoder, pooling and projection: one vector for each input.

    Args:
        embedding: embedding of the inputs.
        encoder: encoder of the embedded inputs.
        pooling: "first", "mean" and "last" use the first state, the mean of the states and the last
            state; "eos" the state of the first end token; "summary" the encoder's summary.
        eos: ID of the end token for pooling "eos"; the highest token of the text if not set, which
            is the end token in Radford et al. 2021.
        dim: width of the vectors, by a linear projection; the pooled states if not set.
        bias: whether the projection has a bias.

    Shapes:
        inputs of the embedding -> [B, D].
    """

    def __init__(
        self,
        *,
        embedding: Blueprint[Embedding],
        encoder: Blueprint[Encoder],
        pooling: Literal["first", "mean", "last", "eos", "summary"] = "mean",
        eos: Annotated[int, Field(ge=0)] | None = None,
        dim: Annotated[int, Field(ge=1)] | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = embedding.build()
        self.encoder = encoder.build(input_dim=self.embedding.dim)
        forbid_stochastic(self.encoder, "the encoder")
        self.pooling, self.eos = pooling, eos
        self._check_eos()
        is_summary = pooling == "summary"
        width = self.encoder.summary_dim if is_summary else self.encoder.output_dim
        self.projection = None if dim is None else Linear(width, dim, bias=bias)
        self.output_dim = width if dim is None else dim

    def forward(self, inputs: Tensor) -> Tensor:
        return self.encode(inputs)[1]

    def encode(self, inputs: Tensor) -> tuple[Memory, Tensor]:
        """Return the states of the encoder and the vectors [B, D]."""
        memory: Memory = self.encoder(self.embedding(inputs), self.embedding.mask(inputs))
        pooled = self._pool(memory, inputs)
        vectors: Tensor = pooled if self.projection is None else self.projection(pooled)
        return memory, vectors

    def extra_repr(self) -> str:
        return f"pooling={self.pooling!r}, eos={self.eos}"

    def _pool(self, memory: Memory, inputs: Tensor) -> Tensor:
        """Return one state [B, D] for each input."""
        states = memory.states
        if self.pooling == "summary":
            return memory.summary
        if self.pooling == "first":
            return states[:, 0]
        if self.pooling == "mean":
            valid = memory.mask[..., None]
            return states.masked_fill(~valid, 0.0).sum(dim=1) / valid.sum(dim=1).clamp(min=1)
        if self.pooling == "last":
            index = (memory.mask.sum(dim=1) - 1).clamp(min=0)
        else:
            index = (inputs if self.eos is None else (inputs == self.eos).int()).argmax(dim=1)
        return states[torch.arange(len(index), device=index.device), index]

    def _check_eos(self) -> None:
        vocab = self.embedding.vocab
        if self.pooling == "eos" and vocab is None:
            raise ZooError(f"pooling 'eos' requires tokens, not embedding '{self.embedding.name}'")
        if self.eos is None:
            return
        if self.pooling != "eos":
            raise ZooError(f"eos requires pooling 'eos', not '{self.pooling}'")
        if self.eos >= (vocab or 0) or self.eos == self.embedding.padding:
            raise ZooError(
                f"eos ({self.eos}) must be less than vocab ({vocab}) and differ from padding"
            )
