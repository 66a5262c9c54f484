"""One tower."""

from typing import ClassVar

import torch
from torch import Tensor

from zoo import Batch, Model, Outputs
from zoo.plugin import BatchSchema, Blueprint, Embedding, OutputSchema
from zoo_vision.tower import Tower


class OneTower(Model):
    r"""One tower: states and a vector of each input, for example of an image or a text.

    .. math:: h = \mathrm{encode}(x), \qquad u = W\, \mathrm{pool}(h)

    It has no objective. To train it, use its weights in a model with a head, or in `two-towers`.

    Paper: Radford et al. 2021, section 2.4 (CLIP): an encoder of images or of texts.

    Args:
        source: the tower.

    Shapes:
        batch {source} -> logits [B, S, D], the states; the vectors [B, D] are in the extras, and
        targets are zeros. `embed` {source} -> [B, D].
    """

    name: ClassVar[str] = "one-tower"
    paper: ClassVar[str] = (
        "Radford et al. 2021, Learning Transferable Visual Models From Natural Language "
        "Supervision, arXiv:2103.00020"
    )

    def __init__(self, *, source: Blueprint[Tower]) -> None:
        super().__init__()
        self.source = source.build()

    def get_embedding(self, side: str) -> Embedding:
        embedding: Embedding = self.source.embedding
        return embedding

    def embed(self, batch: Batch) -> Tensor:
        """Return vectors [B, D], not of length one."""
        self.check_batch(batch, inference=True)
        vectors: Tensor = self.source(batch["source"])
        return vectors

    def forward(self, batch: Batch) -> Outputs:
        memory, vectors = self.source.encode(batch["source"])
        zeros = torch.zeros_like(memory.states)
        return Outputs(memory.states, zeros, memory.mask, extras={"vectors": vectors})

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        return {"source": self.get_embedding("source").input_schema()}

    def output_schema(self) -> OutputSchema:
        extras = ("vectors",)
        trained_by = (extras,) if self.source.projection is not None else ()
        return OutputSchema("feature", targets="multi-label", extras=extras, trained_by=trained_by)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {"source": self.get_embedding("source").example(batch, length, generator)}
