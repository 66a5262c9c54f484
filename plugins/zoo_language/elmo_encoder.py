"""Contextual representations of ELMo as an encoder."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Blueprint, Encoder, FromParent, Memory
from zoo_language.bilm_layers import BiLMLayers
from zoo_language.layer_mix import LayerMix


class ElmoEncoder(Encoder):
    r"""Weighted sum of all layers of a bidirectional language model.

    .. math:: \mathrm{ELMo}_k = \gamma \sum_{j=0}^{L} s_j h_{k,j}, \qquad s = \mathrm{softmax}(w)

    The LSTM layers have the parameter names of the model `elmo`, so the weights of a trained
    language model are loaded with ``load_state_dict`` of `lstm`. The summary is the forward half
    of the last state and the backward half of the first. Layer normalisation before the sum, which
    the paper uses for some tasks, is not implemented.

    Paper: Peters et al. 2018, equation 1.

    Args:
        input_dim: width of the inputs, and of the LSTM projections.
        lstm: LSTM layers of both directions.

    Shapes:
        inputs [B, S, input_dim], mask [B, S] -> states [B, S, 2 input_dim].
    """

    name: ClassVar[str] = "elmo"
    paper: ClassVar[str] = (
        "Peters et al. 2018, Deep Contextualized Word Representations, arXiv:1802.05365"
    )

    def __init__(self, *, input_dim: FromParent[int], lstm: Blueprint[BiLMLayers]) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.output_dim = self.summary_dim = 2 * input_dim
        self.carry: Mapping[str, tuple[int, int]] = {}
        self.lstm = lstm.build(dim=input_dim)
        self.mix = LayerMix(len(self.lstm.forwards) + 1)

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        states = self.mix(self.lstm(inputs, mask))
        forwards, backwards = states.chunk(2, dim=-1)
        last = (mask.sum(dim=1) - 1).clamp(min=0)
        final = forwards.take_along_dim(last[:, None, None], dim=1)[:, 0]
        return Memory(states, mask, torch.cat([final, backwards[:, 0]], dim=-1))
