"""Identity encoder."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from zoo.plugin import Encoder, FromParent, Memory


class Identity(Encoder):
    r"""Identity encoder: the states are the inputs, the summary is their mean.

    .. math:: h_j = x_j, \qquad \text{summary} = \frac{1}{S} \sum_j x_j

    Paper: Xu et al. 2015, section 3.1.1, where the decoder attends to convolutional features.

    Args:
        input_dim: width of the inputs.

    Shapes:
        inputs [B, S, input_dim] -> states [B, S, input_dim], summary [B, input_dim].
    """

    name: ClassVar[str] = "identity"
    paper: ClassVar[str] = (
        "Xu et al. 2015, Show, Attend and Tell: Neural Image Caption Generation with Visual "
        "Attention, arXiv:1502.03044"
    )

    def __init__(self, *, input_dim: FromParent[int]) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.output_dim = self.summary_dim = input_dim
        self.carry: Mapping[str, tuple[int, int]] = {}

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        states = inputs.masked_fill(~mask[..., None], 0.0)
        count = mask.sum(dim=1, keepdim=True).clamp(min=1)
        return Memory(states, mask, states.sum(dim=1) / count)
