"""The laws of backbones."""

from __future__ import annotations

import torch

from zoo.testing.law import Law
from zoo.testing.laws.tensors import noise, same
from zoo.testing.subject import Subject

_SIDE = 32


def _images(subject: Subject) -> torch.Tensor:
    return noise(3, subject.given()["channels"], _SIDE, _SIDE)


def declared_depth(subject: Subject) -> None:
    """Features are [B, output_dim, h, w], no larger than the image."""
    backbone = subject.part()
    features = backbone(_images(subject))
    assert features.dim() == 4, f"features are {list(features.shape)}, not [B, D, h, w]"
    assert features.shape[:2] == (3, backbone.output_dim), "features are not output_dim deep"
    assert max(features.shape[2:]) <= _SIDE, "the map is larger than the image"


def images_apart(subject: Subject) -> None:
    """An image alone gives what it gives in a batch."""
    backbone, images = subject.part(), _images(subject)
    together = backbone(images)
    for item in range(3):
        same(backbone(images[item : item + 1]), together[item : item + 1], "an image alone", 1e-7)


def pixels_matter(subject: Subject) -> None:
    """A finite gradient reaches the pixels."""
    backbone, images = subject.part(), _images(subject).requires_grad_()
    features = backbone(images)
    (gradient,) = torch.autograd.grad((features * noise(*features.shape, seed=1)).sum(), images)
    assert gradient.isfinite().all(), "the gradient of the pixels is not finite"
    assert gradient.abs().sum() > 0, "no gradient reaches the pixels"


LAWS = (
    Law("declared-depth", declared_depth),
    Law("images-apart", images_apart),
    Law("pixels-matter", pixels_matter),
)
