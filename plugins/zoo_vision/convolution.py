"""Convolution backbone: layers of convolutions, as many and as large as a spec says."""

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Backbone, Blueprint, FromParent
from zoo_vision.feature_size import validate_images
from zoo_vision.layer import ConvolutionLayer, Pool

DEFAULT_CHANNELS = (16, 32, 64)
"""Depths of the layers that a spec does not name."""


class Convolution(Backbone):
    r"""Convolutions one after another, each with what follows it.

    .. math:: F = (f_n \circ \dots \circ f_1)(I), \qquad
        f(x) = \mathrm{pool}(\mathrm{relu}(\mathrm{norm}(W * x + b)))

    Paper: LeCun et al. 1998, section 2. Simonyan and Zisserman 2015 (VGG) and Shi et al. 2015
    (CRNN) are lists of such layers.

    Args:
        channels: of the image.
        layers: from the image up; three small ones that halve the sides if not set.

    Shapes:
        [B, channels, height, width] -> [B, channels of the last layer, h, w].
    """

    name: ClassVar[str] = "convolution"
    paper: ClassVar[str] = (
        "LeCun et al. 1998, Gradient-Based Learning Applied to Document Recognition"
    )
    test_params: ClassVar[dict[str, Any]] = {
        "layers": [
            {"channels": 4, "norm": "batch", "pool": {"size": [2, 1]}},
            {"channels": 5, "kernel": 2, "stride": [1, 2], "padding": 0, "activation": "tanh"},
        ]
    }

    def __init__(
        self,
        *,
        channels: FromParent[int],
        layers: Sequence[Blueprint[ConvolutionLayer]] | None = None,
    ) -> None:
        super().__init__()
        if layers is None:
            pool = Blueprint.of(Pool)
            layers = [
                Blueprint.of(ConvolutionLayer, channels=n, pool=pool) for n in DEFAULT_CHANNELS
            ]
        if not layers:
            raise ZooError("layers: at least one is needed")
        self.channels = channels
        self.output_dim = channels
        built = []
        for layer in layers:
            built.append(layer.build(input_dim=self.output_dim))
            self.output_dim = built[-1].conv.out_channels
        self.layers = nn.ModuleList(built)
        self.least = (1, 1)
        for last in reversed(built):
            self.least = last.needed(self.least)

    def forward(self, images: Tensor) -> Tensor:
        validate_images(images, self.name, channels=self.channels, least=self.least)
        for layer in self.layers:
            images = layer(images)
        return images
