"""Components whose preprocessing autocast changes, and the valid ones."""

import torch
from torch import Tensor

from zoo import Batch, Outputs
from zoo.plugin import full_precision
from zoo.testing.tiny import TinyBackbone
from zoo_ctc.log_mel import LogMel
from zoo_ram.ram import RAM


class HalfPrecisionEnergies(LogMel):
    _log_energies = LogMel._log_energies.__wrapped__


class HalfPrecisionProjection(TinyBackbone):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images @ torch.eye(images.shape[-1]))


class FullPrecisionProjection(TinyBackbone):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(_project(images))


@full_precision
def _project(images: Tensor) -> Tensor:
    return images @ torch.eye(images.shape[-1])


class HalfPrecisionImages(RAM):
    def forward(self, batch: Batch) -> Outputs:
        images = batch["source"]
        return super().forward({**batch, "source": images @ torch.eye(images.shape[-1])})


# (law, broken component, valid component)
BROKEN = [
    ("autocast-preprocessing", HalfPrecisionEnergies, LogMel),
    ("autocast-preprocessing", HalfPrecisionProjection, FullPrecisionProjection),
    ("autocast-preprocessing", HalfPrecisionImages, RAM),
]
