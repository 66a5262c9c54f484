"""Program 'draw-bound': the variational bound of a trained DRAW model, and drawn images."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

import zoo
from zoo import ZooError
from zoo.plugin import FileBytes, MissingExtra, Part, Program, ProgramRun, atomic_write
from zoo_draw.draw import Draw


class BoundProgram(Program, Part):
    r"""Variational bound of a DRAW model on test images, with sampled latents, and drawn images.

    .. math:: L = \frac{1}{N S} \sum_i \sum_s \Big[ {-} \log p(x_i \mid z_{is})
        + \sum_t \mathrm{KL}_{it} \Big]

    In evaluation the model uses the means of its latents, so the loss of ``zoo.evaluate`` is lower
    than the bound. The images are written to ``drawn.png`` in the folder of the run.

    Paper: Gregor et al. 2015, equation 12.

    Args:
        images: test images in the IDX format.
        binarise: 'threshold': pixels of at least half the largest value are 1; 'sample': a pixel is
            1 with the probability of its intensity, sampled once, as in Salakhutdinov and Murray
            2008.
        samples: number of samples of the latents, S.
        drawn: number of images to draw; 0 for none.
        batch: number of images of a batch.
        limit: use the first images only, this many.

    Shapes:
        images [N, height, width] -> {test/bound: nats per image}.
    """

    name: ClassVar[str] = "draw-bound"
    paper: ClassVar[str] = (
        "Gregor et al. 2015, DRAW: A Recurrent Neural Network For Image Generation, "
        "arXiv:1502.04623"
    )
    test_params: ClassVar[Mapping[str, Any]] = {"images": "t10k-images-idx3-ubyte"}

    def __init__(
        self,
        *,
        images: str,
        binarise: Literal["threshold", "sample"] = "threshold",
        samples: Annotated[int, Field(ge=1, le=10_000)] = 1,
        drawn: Annotated[int, Field(ge=0, le=10_000)] = 64,
        batch: Annotated[int, Field(ge=1)] = 500,
        limit: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.images = images
        self.binarise = binarise
        self.samples = samples
        self.drawn = drawn
        self.batch = batch
        self.limit = limit

    def run(self, run: ProgramRun) -> Mapping[str, float]:
        if run.model is None:
            raise ZooError(f"program '{self.name}' needs a trained model; add 'spec' to the recipe")
        model = zoo.load(run.model, device=run.device)
        if not isinstance(model, Draw):
            raise ZooError(f"program '{self.name}' needs a model 'draw', not '{model.name}'")
        generator = torch.Generator(run.device).manual_seed(run.seed)
        images = self._read_images(model)
        total, count = 0.0, 0
        for _ in range(self.samples):
            for start in range(0, len(images), self.batch):
                chunk = images[start : start + self.batch].to(run.device)
                total += float(model.bound(chunk, generator).double().sum())
                count += len(chunk)
                if run.progress is not None:
                    run.progress("bound", count, self.samples * len(images))
        if self.drawn:
            self._write_drawn(model, run, generator)
        return {"test/bound": total / count}

    def _read_images(self, model: Draw) -> torch.Tensor:
        """Return binary images [N, 1, height, width]."""
        content = torch.frombuffer(bytearray(FileBytes(self.images).read()), dtype=torch.uint8)
        pixels = content[16:].view(-1, *model.shape)[: self.limit]
        if self.binarise == "threshold":
            return (pixels >= 128).float()
        return torch.bernoulli(pixels / 255, generator=torch.Generator().manual_seed(0))

    def _write_drawn(self, model: Draw, run: ProgramRun, generator: torch.Generator) -> None:
        """Write drawn images as one grey picture, eight in a row."""
        try:
            from PIL import Image
        except ImportError:
            raise MissingExtra("writing images", library="pillow", extra="train") from None
        drawn = model.sample(self.drawn, generator)[:, 0].cpu()  # [n, height, width]
        rows = -(-len(drawn) // 8)
        padded = torch.cat([drawn, drawn.new_zeros(rows * 8 - len(drawn), *drawn.shape[1:])])
        height, width = drawn.shape[1:]
        sheet = padded.view(rows, 8, height, width).transpose(1, 2).reshape(rows * height, -1)
        picture = Image.fromarray((sheet * 255).round().byte().numpy())
        with atomic_write(run.folder / "drawn.png", follow_links=False) as temporary:
            picture.save(temporary, format="PNG")
