"""GRU encoder."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor

from zoo.plugin import Encoder, FromParent, Memory
from zoo_recurrent.stack import Stack


class GRU(Encoder):
    r"""Reads the inputs into a state that two gates keep or replace.

    .. math::
        r, z = \sigma(W_{r,z}\, x_t + U_{r,z}\, h_{t-1} + b_{r,z}), \quad
        \tilde h = \tanh(W x_t + r \odot (U h_{t-1} + b))

        h_t = (1 - z) \odot \tilde h + z \odot h_{t-1}

    Paper: Cho et al. 2014, appendix A.

    Args:
        input_dim: width of the inputs.
        hidden: width of the state, in each direction.
        layers: how many are stacked.
        bidirectional: read from both ends; states are twice as wide.
        dropout: between layers.
        variant: 'cudnn' applies the reset gate after the recurrent product, 'cho' before it, as
            the paper writes it.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, hidden * directions].
    """

    name: ClassVar[str] = "gru"
    paper: ClassVar[str] = (
        "Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder, "
        "arXiv:1406.1078"
    )

    def __init__(
        self,
        *,
        input_dim: FromParent[int],
        hidden: Annotated[int, Field(ge=1)],
        layers: Annotated[int, Field(ge=1, le=64)] = 1,
        bidirectional: bool = False,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        variant: Literal["cudnn", "cho"] = "cudnn",
    ) -> None:
        super().__init__()
        self.stack = Stack(
            "gru" if variant == "cudnn" else "gru-cho",
            input_dim=input_dim,
            hidden=hidden,
            layers=layers,
            bidirectional=bidirectional,
            dropout=dropout,
        )
        self.output_dim = self.summary_dim = self.stack.output_dim
        self.carry = {"h": (layers, self.output_dim)}

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        memory: Memory = self.stack(inputs, mask)
        return memory
