import pytest
import torch
from torch import nn


@pytest.fixture
def torch_lstm():
    """Return a function that makes an ``nn.LSTM`` with the weights of a `ProjectedLSTM`."""
    return _torch_lstm


@torch.no_grad()
def _torch_lstm(layer):
    other = nn.LSTM(layer.dim, layer.hidden, proj_size=layer.dim, batch_first=True)
    other.weight_ih_l0.copy_(layer.weight_ih)
    other.weight_hh_l0.copy_(layer.weight_hh)
    other.weight_hr_l0.copy_(layer.weight_hr)
    other.bias_ih_l0.copy_(layer.bias)
    other.bias_hh_l0.zero_()  # torch has two biases
    return other
