"""Convolutional backbone."""

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from zoo import ZooError
from zoo.plugin import Backbone, Blueprint, FromParent, rename_params
from zoo_vision.feature_size import validate_images
from zoo_vision.layer import ConvolutionLayer, Pool

DEFAULT_CHANNELS = (16, 32, 64)
"""Channels of the default layers."""


class Convolution(Backbone):
    r"""Convolutional backbone: stacked convolution, normalisation, activation and pooling layers.

    .. math:: F = (f_n \circ \dots \circ f_1)(I), \qquad
        f(x) = \mathrm{pool}(\mathrm{relu}(\mathrm{norm}(W * x + b)))

    Paper: LeCun et al. 1998, section 2. Simonyan and Zisserman 2015 (VGG) and Shi et al. 2015
    (CRNN) are lists of such layers.

    Args:
        channels: number of image channels.
        layers: the layers in order; by default three small ones that each halve the size.

    Shapes:
        [B, channels, height, width] -> [B, channels of the last layer, h, w].
    """

    name: ClassVar[str] = "convolution"
    version: ClassVar[int] = 2
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
            raise ZooError("layers is empty; at least one layer is needed")
        self.channels = channels
        self.output_dim = channels
        built = []
        for layer in layers:
            built.append(layer.build(input_dim=self.output_dim))
            self.output_dim = built[-1].conv.out_channels
        self.layers = nn.ModuleList(built)
        self.min_size = (1, 1)
        for module in reversed(built):
            self.min_size = module.input_size(self.min_size)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            for layer in params.get("layers") or []:
                if layer.get("pool"):
                    rename_params(layer["pool"], how="mode")
        return params, tensors

    def forward(self, images: Tensor) -> Tensor:
        validate_images(images, self.name, channels=self.channels, min_size=self.min_size)
        for layer in self.layers:
            images = layer(images)
        return images
