import re
from typing import Any

import pytest
import torch
from torch import Tensor

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Blueprint
from zoo.testing.tiny import TinyBackbone
from zoo_sampling.greedy import Greedy
from zoo_video.clip import Clip
from zoo_video.motion import Motion


def build(**changes: Any) -> Clip:
    torch.manual_seed(0)
    motion = Blueprint.of(Motion, layers=[3, 4])
    params = {"motion": motion, "height": 8, "width": 12, "channels": 2} | changes
    return Clip(backbone=Blueprint.of(TinyBackbone), **params).double().eval()


def frames(batch: int = 2, count: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, count, 2, 8, 12, generator=generator, dtype=torch.float64)


def test_vectors_are_pooled_features_and_motion_features():
    clip, inputs = build(), frames()

    vectors = clip(inputs)

    assert vectors.shape == (2, 5, 5 + 4)
    assert clip.dim == 9
    for item in range(2):
        for f in range(5):
            pooled = clip.backbone(inputs[item, f : f + 1])[0].mean(dim=(1, 2))
            torch.testing.assert_close(vectors[item, f, :5], pooled, rtol=0, atol=1e-12)
    motion_vectors = clip.motion(inputs.transpose(1, 2), torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(vectors[..., 5:], motion_vectors, rtol=0, atol=0)


@torch.no_grad()
def test_motion_known_values():
    motion = Motion(channels=1, layers=[1])
    motion.layers[0].weight.zero_()
    # The difference to the previous frame.
    motion.layers[0].weight[0, 0, :, 1, 1] = torch.tensor([-1.0, 1.0, 0.0])
    motion.layers[0].bias.fill_(0.5)
    brightness = torch.tensor([2.0, 3.0, 1.0, 5.0])
    clip = brightness[None, None, :, None, None].expand(1, 1, 4, 2, 2)

    motion_vectors = motion(clip, torch.tensor([[True, True, True, False]]))

    # Differences 2, 1, -2 plus 0.5, then ReLU; the padding frame is 0.
    assert motion_vectors[0, :, 0].tolist() == [2.5, 1.5, 0.0, 0.0]


@torch.no_grad()
def test_motion_matches_explicit_convolutions():
    motion = build().motion
    inputs = frames(1, 4).transpose(1, 2)  # [1, 2, 4, 8, 12]

    motion_vectors = motion(inputs, torch.ones(1, 4, dtype=torch.bool))

    x = inputs[0]
    for layer in motion.layers:
        channels, _, time, height, width = layer.weight.shape
        out = torch.zeros(channels, *x.shape[1:], dtype=torch.float64)
        padded = torch.zeros(x.shape[0], *(n + 2 for n in x.shape[1:]), dtype=torch.float64)
        padded[:, 1:-1, 1:-1, 1:-1] = x
        for t in range(x.shape[1]):
            for row in range(x.shape[2]):
                for column in range(x.shape[3]):
                    window = padded[:, t : t + time, row : row + height, column : column + width]
                    out[:, t, row, column] = (layer.weight * window).sum(dim=(1, 2, 3, 4))
        out = (out + layer.bias[:, None, None, None]).clamp(min=0)
        x = out.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).amax(dim=(3, 5))
    torch.testing.assert_close(motion_vectors[0], x.amax(dim=(2, 3)).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("motion", [None, Blueprint.of(Motion, layers=[3, 4], kernel=5)])
def test_padding_does_not_change_the_vectors(motion):
    clip, inputs = build(motion=motion), frames(3)
    inputs[1, 2:] = 0
    inputs[2, 4:] = 0

    vectors = clip(inputs)

    for item, count in enumerate((5, 2, 4)):
        alone = clip(inputs[item : item + 1, :count])
        torch.testing.assert_close(vectors[item, :count], alone[0], rtol=0, atol=1e-12)
        assert (vectors[item, count:] == 0).all()


def test_only_zero_frames_at_the_end_are_padding():
    inputs = frames()
    inputs[0, 2] = 0  # a black frame between others
    inputs[1, 3:] = 0

    mask = build().mask(inputs)

    assert mask.tolist() == [[True] * 5, [True, True, True, False, False]]
    assert (build()(inputs)[0, 2] != 0).any()


def test_a_frame_with_one_non_zero_pixel_is_valid():
    inputs = torch.zeros(1, 3, 2, 8, 12)
    inputs[0, 1, 1, 7, 11] = -1e-30

    assert build().mask(inputs).tolist() == [[True, True, False]]


@pytest.mark.parametrize("shape", [(1, 3, 1, 8, 12), (1, 3, 2, 12, 8), (3, 2, 8, 12)])
def test_frames_of_another_shape_raise(shape):
    message = rf"'clip'.*\[B, F, 2, 8, 12\].*{re.escape(str(list(shape)))}"
    with pytest.raises(ZooError, match=message):
        build()(torch.zeros(shape))


def test_a_clip_without_frames_raises():
    with pytest.raises(ZooError, match="0 frames"):
        build()(torch.zeros(2, 0, 2, 8, 12))


def test_frames_too_small_for_motion_raise():
    with pytest.raises(ZooError, match=r"3 x 12.*2 layers.*4 x 4"):
        build(height=3)


def test_check_rejects_frames_too_small_for_the_backbone():
    with pytest.raises(SpecError, match=r"3 x 12.*'convolution'"):
        zoo.check("video-tiny", overrides=["model.source.height=3", "model.source.motion=null"])


@pytest.mark.parametrize(
    ("motion", "message"),
    [
        ("{layers: []}", "layers is empty"),
        ("{layers: [0]}", "greater than or equal to 1"),
        ("{layers: [2], kernel: 2}", r"kernel \(2\).*odd"),
    ],
)
def test_invalid_motion_raises(motion, message):
    with pytest.raises(SpecError, match=message):
        zoo.check("video-tiny", overrides=[f"model.source.motion={motion}"])


def test_padding_does_not_change_the_generated_tokens():
    model = zoo.compose("video-tiny").eval()
    clips = model.source.example(2, 5, torch.Generator().manual_seed(0))
    clips[1, 3:] = 0

    tokens = model.generate({"source": clips}, Greedy(), max_length=4).tokens[1]

    alone = model.generate({"source": clips[1:, :3]}, Greedy(), max_length=4).tokens[0]
    assert torch.equal(tokens, alone)


def test_bfloat16_is_close_to_float64():
    clip, inputs = build(), frames()
    inputs[1, 3:] = 0

    vectors = clip.bfloat16()(inputs.bfloat16())

    torch.testing.assert_close(vectors.double(), build()(inputs), rtol=0.05, atol=0.02)


def test_weight_names_and_shapes():
    assert {k: tuple(v.shape) for k, v in build().state_dict().items()} == {
        "backbone.map.weight": (5, 2, 4, 4),
        "backbone.map.bias": (5,),
        "motion.layers.0.weight": (3, 2, 3, 3, 3),
        "motion.layers.0.bias": (3,),
        "motion.layers.1.weight": (4, 3, 3, 3, 3),
        "motion.layers.1.bias": (4,),
    }
