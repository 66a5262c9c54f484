import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo_vision.patches import Patches


def build(**params: object) -> Patches:
    torch.manual_seed(0)
    return Patches(**{"size": 2, "dim": 5, "channels": 3} | params)


def test_known_values():
    patches = build(dim=2, channels=1)
    patches.load_state_dict(
        {
            "whole": torch.tensor([7.0, 8.0]),
            "map.weight": torch.tensor([[[[1.0, 1], [1, 1]]], [[[1, 0], [0, -1]]]]),
            "map.bias": torch.tensor([0.5, 0.0]),
        }
    )
    image = torch.tensor([[[[1.0, 2, 5, 6], [3, 4, 7, 9]]]])

    # The sum of each patch plus 0.5; its first pixel minus its last.
    assert patches(image).tolist() == [[[7, 8], [10.5, 1 - 4], [27.5, 5 - 9]]]


def test_patches_are_in_row_major_order():
    patches = build(dim=1, channels=1, size=1, class_token=False)
    patches.load_state_dict({"map.weight": torch.ones(1, 1, 1, 1), "map.bias": torch.zeros(1)})

    vectors = patches(torch.arange(6.0).view(1, 1, 2, 3))

    assert vectors.flatten().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_matches_a_linear_map_of_unfolded_patches(size):
    patches = build(size=size).double()
    images = torch.randn(2, 3, 4, 8, dtype=torch.float64)

    vectors = patches(images)

    squares = F.unfold(images, size, stride=size).transpose(1, 2)  # [B, S, C * size * size]
    expected = F.linear(squares, patches.map.weight.flatten(1), patches.map.bias)
    torch.testing.assert_close(vectors[:, 1:], expected, rtol=0, atol=1e-12)
    assert torch.equal(vectors[:, 0], patches.whole.expand(2, -1))


@pytest.mark.parametrize("class_token", [True, False])
def test_all_patches_are_valid(class_token):
    patches, images = build(class_token=class_token), torch.zeros(2, 3, 4, 6)

    mask = patches.mask(images)

    assert mask.shape == patches(images).shape[:2] == (2, 6 + class_token)
    assert mask.dtype is torch.bool
    assert mask.all()


@pytest.mark.parametrize("class_token", [True, False])
def test_an_example_has_the_requested_length(class_token):
    patches = build(class_token=class_token).double()

    example = patches.example(3, 5, torch.Generator().manual_seed(0))

    assert example.dtype is torch.float64
    assert patches(example).shape == (3, 5, 5)


@pytest.mark.parametrize("shape", [(3, 5, 4), (3, 4, 5), (1, 4, 4)])
def test_images_not_divisible_into_patches_raise(shape):
    channels, height, width = shape
    message = f"{channels} channels and {height} x {width}.*'patches'.*3 channels.*2"
    for call in (build(), build().mask):
        with pytest.raises(ZooError, match=message):
            call(torch.zeros(1, *shape))


def test_unembed_raises():
    with pytest.raises(ZooError, match="'patches'"):
        build().unembed(torch.zeros(1, 5))


def test_reset_parameters_repeats_the_initialisation():
    patches = build()
    initial = patches.whole.clone()
    torch.manual_seed(1)
    patches.reset_parameters()
    second = patches.whole.clone()
    torch.manual_seed(1)
    patches.reset_parameters()

    assert torch.equal(patches.whole, second)
    assert not torch.equal(initial, second)


def test_weight_names_and_shapes():
    shapes = {k: tuple(v.shape) for k, v in build().state_dict().items()}

    assert shapes == {"whole": (5,), "map.weight": (5, 3, 2, 2), "map.bias": (5,)}
    assert set(build(class_token=False).state_dict()) == {"map.weight", "map.bias"}


@pytest.mark.parametrize("shape", [(1, 3, 2, 8), (1, 3, 6, 6)])
def test_images_of_another_size_raise(shape):
    patches = build(image_size=4)
    assert patches(patches.example(2, 9)).shape == (2, 5, 5)
    with pytest.raises(ZooError, match="'patches' expects 4 x 4"):
        patches(torch.zeros(shape))


def test_an_image_size_not_divisible_into_patches_raises():
    with pytest.raises(ZooError, match=r"image_size \(5\) must be divisible by size \(2\)"):
        build(image_size=5)


def test_further_tokens_follow_the_class_token():
    patches, images = build(extra_tokens=2), torch.randn(2, 3, 4, 4)

    vectors = patches(images)

    assert vectors.shape[:2] == patches.mask(images).shape == (2, 1 + 2 + 4)
    assert torch.equal(vectors[:, 0], patches.whole.expand(2, -1))
    assert torch.equal(vectors[:, 1:3], patches.extra.expand(2, -1, -1))
    without = build(class_token=False)
    without.load_state_dict({n: p for n, p in patches.state_dict().items() if "map" in n})
    assert torch.equal(vectors[:, 3:], without(images))
