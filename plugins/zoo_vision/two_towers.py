"""Two towers."""

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import BatchSchema, Blueprint, Embedding, OutputSchema
from zoo_vision.tower import Tower


class TwoTowers(Model):
    r"""Two towers: sources and targets, for example images and texts, as vectors of one space.

    .. math:: z_{ij} = e^{\lambda} \cos(u_i, v_j) + b

    It is trained on pairs, with the other targets of the batch as negatives: objective
    `contrastive`, or `sigmoid-contrastive` with a bias.

    Paper: Radford et al. 2021, section 2.3 (CLIP); Zhai et al. 2023 (bias).

    Args:
        source: tower of the sources.
        target: tower of the targets.
        scale: initial factor of the cosine similarities; it is learned.
        bias: initial bias of the logits, which is learned; none if not set.

    Shapes:
        batch {source, target} -> logits [B, 1, B]. The vectors [B, D] of both, of length one, are
        in the extras. `embed` {source} or {target} -> [B, D].
    """

    name: ClassVar[str] = "two-towers"
    paper: ClassVar[str] = (
        "Radford et al. 2021, Learning Transferable Visual Models From Natural Language "
        "Supervision, arXiv:2103.00020"
    )
    weight_roles: ClassVar[Mapping[str, str]] = {"log_scale": "special", "bias": "special"}

    def __init__(
        self,
        *,
        source: Blueprint[Tower],
        target: Blueprint[Tower],
        scale: Annotated[float, Field(gt=0)] = 1 / 0.07,
        bias: float | None = None,
    ) -> None:
        super().__init__()
        self.source, self.target = source.build(), target.build()
        if self.source.output_dim != self.target.output_dim:
            raise ZooError(
                f"source and target have vectors of {self.source.output_dim} and "
                f"{self.target.output_dim} features; set the same 'dim' in both"
            )
        self.initial_scale, self.initial_bias = scale, bias
        self.log_scale = nn.Parameter(torch.empty(()))
        self.bias = None if bias is None else nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.log_scale, math.log(self.initial_scale))
        if self.bias is not None:
            nn.init.constant_(self.bias, self.initial_bias or 0.0)

    def get_embedding(self, side: str) -> Embedding:
        embedding: Embedding = (self.source if side == "source" else self.target).embedding
        return embedding

    def embed(self, batch: Batch) -> Tensor:
        """Return vectors [B, D] of length one for a batch {source} or {target}."""
        self.check_batch(batch, inference=True)
        sides = [side for side in ("source", "target") if side in batch]
        if len(sides) != 1:
            raise ZooError("embed takes a batch with either 'source' or 'target'")
        return self._vectors(batch, sides[0])

    def forward(self, batch: Batch) -> Outputs:
        sources, targets = (self._vectors(batch, side) for side in ("source", "target"))
        vectors = self.whole_batch({"source_vectors": sources, "target_vectors": targets})
        sources, targets = vectors["source_vectors"], vectors["target_vectors"]
        logits = self.log_scale.exp() * (sources @ targets.T)
        logits = logits if self.bias is None else logits + self.bias
        labels = torch.arange(len(sources), device=sources.device)[:, None]
        return Outputs(
            logits[:, None], labels, torch.ones_like(labels, dtype=torch.bool), extras=vectors
        )

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source, target = (self.get_embedding(side).input_schema() for side in ("source", "target"))
        return {
            "source": source._replace(optional=inference),
            "target": target.rename("S", "T")._replace(optional=inference),
        }

    def output_schema(self) -> OutputSchema:
        vectors = ("source_vectors", "target_vectors")
        return OutputSchema("candidate", in_batch=True, extras=vectors)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        return {
            side: self.get_embedding(side).example(batch, length, generator)
            for side in ("source", "target")
        }

    def _vectors(self, batch: Batch, side: str) -> Tensor:
        tower = self.source if side == "source" else self.target
        return F.normalize(tower(batch[side]), dim=-1)
