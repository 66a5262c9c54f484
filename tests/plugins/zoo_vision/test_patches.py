import pytest
import torch
import torch.nn.functional as F

from zoo import ZooError
from zoo_vision.patches import Patches


def build(**form: object) -> Patches:
    torch.manual_seed(0)
    return Patches(**{"size": 2, "dim": 5, "channels": 3} | form)


def test_patches_of_a_known_image():
    patches = build(dim=2, channels=1)
    patches.load_state_dict(
        {
            "whole": torch.tensor([7.0, 8.0]),
            "map.weight": torch.tensor([[[[1.0, 1], [1, 1]]], [[[1, 0], [0, -1]]]]),
            "map.bias": torch.tensor([0.5, 0.0]),
        }
    )
    image = torch.tensor([[[[1.0, 2, 5, 6], [3, 4, 7, 9]]]])

    # The sum of each patch and a half; its first pixel less its last.
    assert patches(image).tolist() == [[[7, 8], [10.5, 1 - 4], [27.5, 5 - 9]]]


def test_patches_go_row_by_row():
    patches = build(dim=1, channels=1, size=1, whole=False)
    patches.load_state_dict({"map.weight": torch.ones(1, 1, 1, 1), "map.bias": torch.zeros(1)})

    vectors = patches(torch.arange(6.0).view(1, 1, 2, 3))

    assert vectors.flatten().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_they_equal_a_linear_map_of_unfolded_squares(size):
    patches = build(size=size).double()
    images = torch.randn(2, 3, 4, 8, dtype=torch.float64)

    vectors = patches(images)

    squares = F.unfold(images, size, stride=size).transpose(1, 2)  # [B, S, C * size * size]
    expected = F.linear(squares, patches.map.weight.flatten(1), patches.map.bias)
    torch.testing.assert_close(vectors[:, 1:], expected, rtol=0, atol=1e-12)
    assert torch.equal(vectors[:, 0], patches.whole.expand(2, -1))


@pytest.mark.parametrize("whole", [True, False])
def test_every_patch_is_real(whole):
    patches, images = build(whole=whole), torch.zeros(2, 3, 4, 6)

    mask = patches.mask(images)

    assert mask.shape == patches(images).shape[:2] == (2, 6 + whole)
    assert mask.dtype is torch.bool
    assert mask.all()


@pytest.mark.parametrize("whole", [True, False])
def test_an_example_is_as_long_as_asked(whole):
    patches = build(whole=whole).double()

    example = patches.example(3, 5, torch.Generator().manual_seed(0))

    assert example.dtype is torch.float64
    assert patches(example).shape == (3, 5, 5)


@pytest.mark.parametrize("shape", [(3, 5, 4), (3, 4, 5), (1, 4, 4)])
def test_an_image_that_cannot_be_cut_is_refused(shape):
    channels, height, width = shape
    message = (
        f"^images of {channels} channels and {height} x {width} pixels cannot be cut into "
        "patches of 3 channels and 2 x 2$"
    )
    for ask in (build(), build().mask):
        with pytest.raises(ZooError, match=message):
            ask(torch.zeros(1, *shape))


def test_it_has_no_table_to_share():
    message = "embedding 'patches' has no table that an output could share"
    with pytest.raises(ZooError, match=message):
        build().unembed(torch.zeros(1, 5))


def test_its_weights_are_named():
    shapes = {k: tuple(v.shape) for k, v in build().state_dict().items()}

    assert shapes == {"whole": (5,), "map.weight": (5, 3, 2, 2), "map.bias": (5,)}
    assert set(build(whole=False).state_dict()) == {"map.weight", "map.bias"}
