import pytest
import torch
import transformers as hf
from torch.nn import functional as F
from transformers.models.speech_to_text.modeling_speech_to_text import Conv1dSubsampler

from zoo import ZooError
from zoo.plugin import Blueprint
from zoo_ctc.convolved import Convolved
from zoo_ctc.log_mel import LogMel

MEL = Blueprint.of(LogMel, rate=1000, window=32, hop=16, mels=4)


def build(**options):
    options = {"dim": 3, "kernels": [3, 3], "strides": [1, 2], **options}
    return Convolved(inner=MEL, **options).double()


def test_known_values():
    embedding = build(dim=1, kernels=[3], strides=[2])
    audio = embedding.example(1, 2, torch.Generator().manual_seed(0))
    frames = embedding.inner(audio)[0]  # [4, mels]
    with torch.no_grad():
        embedding.convolutions[0].weight.zero_()
        embedding.convolutions[0].weight[0, 1] = torch.tensor([1.0, 10.0, 100.0])
        embedding.convolutions[0].bias.fill_(0.5)
    band = frames[:, 1]
    sums = torch.stack([10 * band[0] + 100 * band[1], band[1] + 10 * band[2] + 100 * band[3]])
    torch.testing.assert_close(embedding(audio)[0, :, 0], F.gelu(sums + 0.5))


def test_vectors_of_a_padded_item_equal_those_of_the_item_alone():
    embedding = build()
    audio = embedding.example(2, 4, torch.Generator().manual_seed(0))
    audio[1, 32 + 4 * 16 :] = 0.0  # 5 of 8 frames
    mask = embedding.mask(audio)
    assert mask.tolist() == [[True] * 4, [True] * 3 + [False]]
    alone = embedding(audio[1:, : 32 + 4 * 16])
    torch.testing.assert_close(embedding(audio)[1, :3], alone[0])
    assert not embedding(audio)[1, 3].any()


def test_gated_linear_units_are_those_of_the_subsampler_of_transformers():
    embedding = build(channels=5, activation="glu", strides=[2, 2], kernels=[3, 5], scaled=True)
    config = hf.Speech2TextConfig(
        d_model=3, conv_channels=10, conv_kernel_sizes=[3, 5], input_feat_per_channel=4
    )
    theirs = Conv1dSubsampler(config).double()
    theirs.conv_layers.load_state_dict(embedding.convolutions.state_dict())
    audio = embedding.example(2, 4, torch.Generator().manual_seed(0))
    expected = 3**0.5 * theirs(embedding.inner(audio))
    torch.testing.assert_close(embedding(audio), expected)


def test_parameter_names():
    assert set(build().state_dict()) == {
        f"convolutions.{i}.{name}" for i in (0, 1) for name in ("weight", "bias")
    }


def test_invalid_values():
    with pytest.raises(ZooError, match="kernels has 2 values, but strides has 1"):
        build(strides=[1])
    with pytest.raises(ZooError, match=r"kernels \(\[3, 2\]\) must be odd"):
        build(kernels=[3, 2])
