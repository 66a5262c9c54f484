"""Program 'draw-bound'."""

import struct

import pytest
import torch
from PIL import Image

import zoo
from zoo import ZooError
from zoo.plugin import ProgramRun
from zoo_draw.bound import BoundProgram


def test_the_bound_is_the_mean_over_images_and_samples(tmp_path):
    model = zoo.compose("draw-tiny").eval()
    zoo.save(model, tmp_path / "model.safetensors")
    pixels = torch.randint(0, 256, (3, 8, 7), generator=torch.Generator().manual_seed(0))
    header = struct.pack(">4B3I", 0, 0, 8, 3, 3, 8, 7)
    (tmp_path / "images").write_bytes(header + pixels.byte().numpy().tobytes())
    program = BoundProgram(images=str(tmp_path / "images"), samples=2, drawn=9, batch=2)
    run = ProgramRun(tmp_path, tmp_path / "model.safetensors", torch.device("cpu"), 5)
    generator = torch.Generator().manual_seed(5)
    images = (pixels >= 128).float()[:, None]
    chunks = [images[:2], images[2:]] * 2
    expected = torch.cat([model.bound(chunk, generator) for chunk in chunks]).mean()
    assert program.run(run) == {"test/bound": pytest.approx(float(expected))}
    with Image.open(tmp_path / "drawn.png") as picture:
        assert picture.size == (56, 16)


def test_sampled_pixels_are_1_with_the_probability_of_their_intensity(tmp_path):
    model = zoo.compose("draw-tiny")
    pixels = torch.full((200, 8, 7), 64, dtype=torch.uint8)
    pixels[0] = 0
    pixels[1] = 255
    header = struct.pack(">4B3I", 0, 0, 8, 3, 200, 8, 7)
    (tmp_path / "images").write_bytes(header + pixels.numpy().tobytes())
    program = BoundProgram(images=str(tmp_path / "images"), binarise="sample")
    images = program._read_images(model)
    assert images[0].max() == 0
    assert images[1].min() == 1
    assert images[2:].unique().tolist() == [0, 1]
    assert float(images[2:].mean()) == pytest.approx(64 / 255, abs=0.02)


def test_a_trained_model_is_needed(tmp_path):
    with pytest.raises(ZooError, match="needs a trained model; add 'spec' to the recipe"):
        BoundProgram(images="x").run(ProgramRun(tmp_path, None, torch.device("cpu"), 0))
