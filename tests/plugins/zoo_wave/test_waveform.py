import math

import numpy as np
import pytest
import soundfile
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


def test_known_value():
    wave = Waveform(dim=1, channels=2, kernels=[2], strides=[2], norm="layer").double()
    wave.load_state_dict({
        "convolutions.0.weight": torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]),
        "norms.0.weight": torch.ones(2), "norms.0.bias": torch.zeros(2),
        "last_norm.weight": torch.ones(2), "last_norm.bias": torch.zeros(2),
        "map.weight": torch.tensor([[1.0, 2.0]]), "map.bias": torch.tensor([0.5]),
    })  # fmt: skip

    (vector,) = wave(torch.tensor([[3.0, 1.0, 9.0]]).double())[0].tolist()

    # The two samples become the two channels; both norms map them to 1 and -1, except for eps.
    assert vector[0] == pytest.approx(1 - 2 + 0.5, abs=1e-4)


def test_group_norm_matches_torch():
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
def test_padding_does_not_change_the_frames(norm):
    conv_position = zoo.plugin.Blueprint.of(ConvPosition, kernel=4, groups=2)
    wave = build_waveform(norm=norm, bias=True, conv_position=conv_position)
    waveforms = torch.randn(3, 40).double()
    lengths = [40, 23, 11]
    for waveform, length in zip(waveforms, lengths, strict=True):
        waveform[length:] = NAN

    vectors, mask = wave(waveforms), wave.mask(waveforms)

    for item, length in enumerate(lengths):
        alone = wave(waveforms[item : item + 1, :length])[0]
        frames = math.floor((math.floor((length - 5) / 3) + 1 - 3) / 2) + 1
        assert mask[item].sum() == len(alone) == frames
        torch.testing.assert_close(vectors[item, :frames], alone, rtol=0, atol=1e-12)
        assert (vectors[item, frames:] == 0).all()


def test_a_waveform_shorter_than_a_frame_is_fully_masked():
    waveforms = torch.randn(2, 40).double()
    waveforms[1, 10:] = NAN

    wave = build_waveform()

    assert wave.mask(waveforms).sum(dim=1).tolist() == [5, 0]  # 40 samples give 12, then 5 frames
    assert wave(waveforms).isfinite().all()


def test_fewer_samples_than_a_frame_raise():
    with pytest.raises(ZooError, match=r"10 samples.*11"):
        build_waveform()(torch.randn(1, 10).double())


@pytest.mark.parametrize(
    "samples", [torch.zeros(50), torch.zeros(1, 50, 1), torch.zeros(1, 50, dtype=torch.int16)]
)
def test_inputs_that_are_not_waveforms_raise(samples):
    with pytest.raises(ZooError, match=r"'waveform'.*\[B, N\].*\[1?.*50"):
        build_waveform()(samples)


def test_unequal_numbers_of_kernels_and_strides_raise():
    with pytest.raises(ZooError, match=r"kernels.*2.*strides.*1"):
        build_waveform(strides=[2])


def test_bfloat16_is_close_to_float64():
    wave, samples = build_waveform(), torch.randn(2, 40).double()
    expected = wave(samples)

    vectors = wave.bfloat16()(samples.bfloat16())

    assert vectors.dtype is torch.bfloat16
    assert (vectors.double() - expected).norm() < 0.05 * expected.norm()


def test_a_recording_shorter_than_a_frame_is_named_by_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, samples in (("long", 400), ("short", 3)):
        soundfile.write(f"{name}.wav", np.full(samples, 0.1), 8000)
    (tmp_path / "a.csv").write_text("path,word\nlong.wav,yes\nshort.wav,no\n")
    fields = {"source": {"column": "path", "content": "audio"}}
    fields |= {"target": {"column": "word", "content": "label"}}
    model = {
        "type": "classifier",
        "source": {"type": "waveform", "dim": 4, **Waveform.test_params},
        "encoder": {"type": "gru", "hidden": 4},
        "classes": 2,
    }
    spec = {
        "zoo": 1,
        "name": "words",
        "model": model,
        "objective": "cross-entropy",
        "preprocessing": {"source": {"type": "audio", "rate": 8000}},
        "train": {
            "data": {"type": "csv", "file": "a.csv", "fields": fields},
            "optimiser": {"type": "adam", "lr": 0.1},
            "steps": 1,
        },
    }
    with pytest.raises(zoo.DataError, match=r"a\.csv:3: 'source' has 3 values, .* takes 5 or more"):
        zoo.train(spec, output="run", device="cpu")
    with pytest.raises(zoo.DataError, match="input 1: 'source' has 3 values"):
        zoo.predict(zoo.compose({k: v for k, v in spec.items() if k != "train"}), ["short.wav"])
