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


def test_a_vector_holds_the_mean_of_the_map_then_what_moves():
    clip, inputs = build(), frames()

    vectors = clip(inputs)

    assert vectors.shape == (2, 5, 5 + 4)
    assert clip.dim == 9
    for item in range(2):
        for f in range(5):
            seen = clip.backbone(inputs[item, f : f + 1])[0].mean(dim=(1, 2))
            torch.testing.assert_close(vectors[item, f, :5], seen, rtol=0, atol=1e-12)
    motion_vectors = clip.motion(inputs.transpose(1, 2), torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(vectors[..., 5:], motion_vectors, rtol=0, atol=0)


@torch.no_grad()
def test_motion_of_known_numbers():
    motion = Motion(channels=1, layers=[1])
    motion.layers[0].weight.zero_()
    motion.layers[0].weight[0, 0, :, 1, 1] = torch.tensor([-1.0, 1.0, 0.0])  # now less before
    motion.layers[0].bias.fill_(0.5)
    light = torch.tensor([2.0, 3.0, 1.0, 5.0])
    clip = light[None, None, :, None, None].expand(1, 1, 4, 2, 2)

    motion_vectors = motion(clip, torch.tensor([[True, True, True, False]]))

    # Differences 2, 1, -2 and a half; none below 0; nothing of the frame that is not real.
    assert motion_vectors[0, :, 0].tolist() == [2.5, 1.5, 0.0, 0.0]


@torch.no_grad()
def test_motion_equals_convolutions_written_out():
    motion = build().motion
    inputs = frames(1, 4).transpose(1, 2)  # [1, 2, 4, 8, 12]

    motion_vectors = motion(inputs, torch.ones(1, 4, dtype=torch.bool))

    x = inputs[0]
    for layer in motion.layers:
        depth, _, time, high, wide = layer.weight.shape
        out = torch.zeros(depth, *x.shape[1:], dtype=torch.float64)
        padded = torch.zeros(x.shape[0], *(n + 2 for n in x.shape[1:]), dtype=torch.float64)
        padded[:, 1:-1, 1:-1, 1:-1] = x
        for t in range(x.shape[1]):
            for row in range(x.shape[2]):
                for column in range(x.shape[3]):
                    window = padded[:, t : t + time, row : row + high, column : column + wide]
                    out[:, t, row, column] = (layer.weight * window).sum(dim=(1, 2, 3, 4))
        out = (out + layer.bias[:, None, None, None]).clamp(min=0)
        x = out.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).amax(dim=(3, 5))
    torch.testing.assert_close(motion_vectors[0], x.amax(dim=(2, 3)).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("motion", [None, Blueprint.of(Motion, layers=[3, 4], kernel=5)])
def test_a_padded_clip_gives_what_it_gives_alone(motion):
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
    inputs[0, 2] = 0  # a black frame in the midst
    inputs[1, 3:] = 0

    mask = build().mask(inputs)

    assert mask.tolist() == [[True] * 5, [True, True, True, False, False]]
    assert (build()(inputs)[0, 2] != 0).any()


def test_one_pixel_makes_a_frame_real():
    inputs = torch.zeros(1, 3, 2, 8, 12)
    inputs[0, 1, 1, 7, 11] = -1e-30

    assert build().mask(inputs).tolist() == [[True, True, False]]


@pytest.mark.parametrize("shape", [(1, 3, 1, 8, 12), (1, 3, 2, 12, 8), (3, 2, 8, 12)])
def test_frames_of_another_form_are_refused(shape):
    with pytest.raises(ZooError) as refused:
        build()(torch.zeros(shape))
    assert str(refused.value) == (
        f"embedding 'clip' reads frames [B, F, 2, 8, 12], not {list(shape)}"
    )


def test_a_clip_without_frames_is_refused():
    with pytest.raises(ZooError, match="a clip needs at least one frame, and these have none"):
        build()(torch.zeros(2, 0, 2, 8, 12))


def test_frames_too_small_for_motion_are_refused():
    message = "frames of 3 x 12 pixels are too small for motion, whose 2 layers need at least 4"
    with pytest.raises(ZooError, match=message):
        build(height=3)


def test_frames_too_small_for_the_backbone_are_refused_when_composed():
    with pytest.raises(SpecError, match="images of 3 x 12 pixels are too small for backbone"):
        zoo.check("video-tiny", overrides=["model.source.height=3", "model.source.motion=null"])


@pytest.mark.parametrize(
    ("motion", "message"),
    [
        ("{layers: []}", "layers: at least one is needed"),
        ("{layers: [0]}", "greater than or equal to 1"),
        ("{layers: [2], kernel: 2}", r"kernel \(2\) must be odd"),
    ],
)
def test_bad_motion_is_refused(motion, message):
    with pytest.raises(SpecError, match=message):
        zoo.check("video-tiny", overrides=[f"model.source.motion={motion}"])


def test_a_padded_clip_is_described_as_it_is_alone():
    model = zoo.compose("video-tiny").eval()
    clips = model.source.example(2, 5, torch.Generator().manual_seed(0))
    clips[1, 3:] = 0

    said = model.generate({"source": clips}, Greedy(), max_length=4).tokens[1]

    alone = model.generate({"source": clips[1:, :3]}, Greedy(), max_length=4).tokens[0]
    assert torch.equal(said, alone)


def test_it_runs_in_bfloat16():
    clip, inputs = build(), frames()
    inputs[1, 3:] = 0

    vectors = clip.bfloat16()(inputs.bfloat16())

    torch.testing.assert_close(vectors.double(), build()(inputs), rtol=0.05, atol=0.02)


def test_its_weights_are_named():
    assert {k: tuple(v.shape) for k, v in build().state_dict().items()} == {
        "backbone.map.weight": (5, 2, 4, 4),
        "backbone.map.bias": (5,),
        "motion.layers.0.weight": (3, 2, 3, 3, 3),
        "motion.layers.0.bias": (3,),
        "motion.layers.1.weight": (4, 3, 3, 3, 3),
        "motion.layers.1.bias": (4,),
    }
