"""Laws of backbones."""

from __future__ import annotations

import torch

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.autocast import BACKBONE_LAWS as AUTOCAST_LAWS
from zoo.testing.laws.helpers import assert_close, randn

_IMAGE_SIZE = 32


def _images(config: Configuration) -> torch.Tensor:
    return randn(3, config.parent_values()["channels"], _IMAGE_SIZE, _IMAGE_SIZE)


def output_channels(config: Configuration) -> None:
    """Features are [B, output_dim, h, w] and not larger than the image."""
    backbone = config.build()
    features = backbone(_images(config))
    assert features.dim() == 4, f"features are {list(features.shape)}, not [B, D, h, w]"
    assert features.shape[:2] == (3, backbone.output_dim), (
        "features do not have output_dim channels"
    )
    assert max(features.shape[2:]) <= _IMAGE_SIZE, "the feature map is larger than the image"


def batch_independence(config: Configuration) -> None:
    """The features of an image do not depend on the batch."""
    backbone, images = config.build(), _images(config)
    together = backbone(images)
    for item in range(3):
        assert_close(
            backbone(images[item : item + 1]),
            together[item : item + 1],
            "the features of an image alone",
            1e-7,
        )


def input_gradient(config: Configuration) -> None:
    """The gradient of the pixels is finite and not zero."""
    backbone, images = config.build(), _images(config).requires_grad_()
    features = backbone(images)
    (gradient,) = torch.autograd.grad((features * randn(*features.shape, seed=1)).sum(), images)
    assert gradient.isfinite().all(), "the gradient of the pixels is not finite"
    assert gradient.abs().sum() > 0, "the gradient of the pixels is zero"


LAWS = (
    Law("output-channels", output_channels),
    Law("batch-independence", batch_independence),
    Law("input-gradient", input_gradient),
    *AUTOCAST_LAWS,
)
