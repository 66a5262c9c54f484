import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo.plugin import Blueprint
from zoo_ctc.log_mel import LogMel
from zoo_ctc.subsampled import Subsampled
from zoo_tokens.token import Token

WAVEFORMS = Blueprint.of(LogMel, rate=1000, window=50, hop=20, mels=5)
TOKENS = Blueprint.of(Token, vocab=9, dim=6)


def build(inner=TOKENS, **params):
    torch.manual_seed(0)
    return Subsampled(inner=inner, dim=4, channels=3, **params).double()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_matches_torch_convolutions(layers):
    embedding = build(WAVEFORMS, layers=layers)
    wave = torch.randn(2, 50 + 20 * 12, dtype=torch.float64)
    states = embedding.inner(wave)[:, None]
    for layer in embedding.layers:
        states = F.relu(F.conv2d(states, layer.weight, layer.bias, stride=2, padding=1))
    flat = torch.stack([states[:, :, s].reshape(2, -1) for s in range(states.shape[2])], dim=1)
    expected = F.linear(flat, embedding.out.weight, embedding.out.bias)
    assert expected.shape[1] == -(-13 // 2**layers)
    torch.testing.assert_close(embedding(wave), expected)
    assert embedding.mask(wave).shape == expected.shape[:2]


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9])
def test_padding_does_not_change_the_vectors(length, kernel):
    embedding = build(kernel=kernel)
    inputs = embedding.example(2, 3, torch.Generator().manual_seed(0))
    inputs[0, length:] = 0
    together, mask = embedding(inputs), embedding.mask(inputs)
    alone = embedding(inputs[:1, :length])
    count = -(-length // 4)
    assert mask.tolist() == [[n < count for n in range(3)], [True] * 3]
    assert alone.shape[1] == count
    torch.testing.assert_close(together[:1, :count], alone)
    assert (together[0, count:] == 0).all()


def test_an_even_kernel_raises():
    with pytest.raises(ZooError, match=r"kernel \(4\).*odd"):
        build(kernel=4)


def test_weight_names_and_shapes():
    assert {k: tuple(v.shape) for k, v in build(WAVEFORMS).state_dict().items()} == {
        "layers.0.weight": (3, 1, 3, 3),
        "layers.0.bias": (3,),
        "layers.1.weight": (3, 3, 3, 3),
        "layers.1.bias": (3,),
        "out.weight": (4, 6),
        "out.bias": (4,),
    }
