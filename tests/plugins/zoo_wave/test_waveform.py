import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import zoo
from zoo import ZooError
from zoo_wave.conv_position import ConvPosition
from zoo_wave.waveform import Waveform

NAN = float("nan")


def build_waveform(**changes):
    torch.manual_seed(0)
    sizes = {"dim": 6, "channels": 4, "kernels": [5, 3], "strides": [3, 2], **changes}
    return Waveform(**sizes).double().eval()


def test_a_frame_of_known_weights():
    wave = Waveform(dim=1, channels=2, kernels=[2], strides=[2], norm="layer").double()
    wave.load_state_dict({
        "convolutions.0.weight": torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]),
        "norms.0.weight": torch.ones(2), "norms.0.bias": torch.zeros(2),
        "last_norm.weight": torch.ones(2), "last_norm.bias": torch.zeros(2),
        "map.weight": torch.tensor([[1.0, 2.0]]), "map.bias": torch.tensor([0.5]),
    })  # fmt: skip

    (vector,) = wave(torch.tensor([[3.0, 1.0, 9.0]]).double())[0].tolist()

    # The two samples are the two channels; both norms make of them 1 and -1, but for eps.
    assert vector[0] == pytest.approx(1 - 2 + 0.5, abs=1e-4)


def test_normalising_the_first_layer_equals_torchs_group_norm():
    wave = build_waveform()
    with torch.no_grad():
        wave.norms[0].weight.normal_()
        wave.norms[0].bias.normal_()
    norm = nn.GroupNorm(4, 4).double()
    norm.load_state_dict(wave.norms[0].state_dict())
    samples = torch.randn(2, 20).double()

    states = F.gelu(norm(wave.convolutions[0](samples[:, None])))
    states = F.gelu(wave.convolutions[1](states))

    expected = wave.map(wave.last_norm(states.transpose(1, 2)))
    torch.testing.assert_close(wave(samples), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["group", "layer"])
def test_a_sound_among_longer_ones_equals_itself_alone(norm):
    surroundings = zoo.plugin.Blueprint.of(ConvPosition, kernel=4, groups=2)
    wave = build_waveform(norm=norm, bias=True, surroundings=surroundings)
    sounds = torch.randn(3, 40).double()
    lengths = [40, 23, 11]
    for sound, length in zip(sounds, lengths, strict=True):
        sound[length:] = NAN

    vectors, mask = wave(sounds), wave.mask(sounds)

    for item, length in enumerate(lengths):
        alone = wave(sounds[item : item + 1, :length])[0]
        frames = math.floor((math.floor((length - 5) / 3) + 1 - 3) / 2) + 1
        assert mask[item].sum() == len(alone) == frames
        torch.testing.assert_close(vectors[item, :frames], alone, rtol=0, atol=1e-12)
        assert (vectors[item, frames:] == 0).all()


def test_a_sound_shorter_than_a_frame_among_others_has_no_frame():
    sounds = torch.randn(2, 40).double()
    sounds[1, 10:] = NAN

    wave = build_waveform()

    assert wave.mask(sounds).sum(dim=1).tolist() == [5, 0]  # 40 samples, 12 frames, 5
    assert wave(sounds).isfinite().all()


def test_fewer_samples_than_a_frame_are_refused():
    with pytest.raises(ZooError, match=r"^10 samples are too few; one frame needs 11$"):
        build_waveform()(torch.randn(1, 10).double())


@pytest.mark.parametrize(
    "samples", [torch.zeros(50), torch.zeros(1, 50, 1), torch.zeros(1, 50, dtype=torch.int16)]
)
def test_what_is_no_waveform_is_refused(samples):
    with pytest.raises(ZooError, match=r"^a waveform is samples \[B, N\] in floating point, not"):
        build_waveform()(samples)


def test_kernels_without_as_many_strides_are_refused():
    with pytest.raises(ZooError, match=r"^there are 2 kernels, but 1 strides$"):
        build_waveform(strides=[2])


def test_in_bfloat16_it_is_near_its_float64_self():
    wave, samples = build_waveform(), torch.randn(2, 40).double()
    expected = wave(samples)

    vectors = wave.bfloat16()(samples.bfloat16())

    assert vectors.dtype is torch.bfloat16
    assert (vectors.double() - expected).norm() < 0.05 * expected.norm()
