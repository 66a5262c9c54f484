"""The images of a pass as pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo_inspect.passes import Pass


def is_image(looked_at: Pass, key: str) -> bool:
    """Return whether a key of the batch is an image, [B, C, H, W] with 1 or 3 channels."""
    tensor, preprocessor = looked_at.batch[key], looked_at.preprocessors.get(key)
    has_pixels = tensor.is_floating_point() and tensor.dim() == 4 and tensor.shape[1] in (1, 3)
    return has_pixels and (preprocessor is None or preprocessor.content in ("image", "array"))


def find_images(looked_at: Pass) -> dict[str, Tensor]:
    """Return the images that the model takes as pixels [H, W, 3] of uint8, by key of the batch."""
    return {
        key: to_pixels(tensor[0].float().cpu())
        for key, tensor in looked_at.batch.items()
        if is_image(looked_at, key)
    }


def to_pixels(image: Tensor) -> Tensor:
    """Convert an image [C, H, W] to pixels [H, W, 3]; values that are not from 0 to 1 are scaled to
    their range, which undoes a normalisation up to contrast."""
    low, high = image.amin(), image.amax()
    if low < 0 or high > 1:
        image = (image - low) / (high - low).clamp(min=1e-9)
    pixels = (image * 255).round().to(torch.uint8)
    return pixels.permute(1, 2, 0).expand(-1, -1, 3).contiguous()
