"""Acceleration of the location-aware scores of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from zoo.plugin import Acceleration, Call, Declined
from zoo_fast.device.triton_support import why_not_triton, why_not_triton_on
from zoo_location.location import Location

MAX_FILTERS = 128
"""Largest number of filters of the kernel."""


class LocationTriton(Acceleration):
    """The scores of a query, with the features of the previous weights, in one Triton kernel."""

    name: ClassVar[str] = "location-triton"
    serves: ClassVar[type[Location]] = Location
    dtypes: ClassVar[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16)
    differentiable: ClassVar[bool] = True
    supports_autocast: ClassVar[bool] = True

    def why_not(self, target: Location, device: torch.device) -> str | None:
        if target.filters > MAX_FILTERS:
            return f"filters is {target.filters}, the kernel takes at most {MAX_FILTERS}"
        return why_not_triton_on(device.type)

    def cases(self, dtype: torch.dtype) -> Iterator[Call]:
        device, generator = torch.empty(0).device, torch.Generator("cpu").manual_seed(0)
        for B, S, hidden, filters, radius in ((2, 1, 1, 3, 2), (2, 37, 33, 3, 2), (1, 5, 4, 1, 0)):
            scorer = Location(
                query_dim=3, key_dim=4, hidden=hidden, filters=filters, kernel_radius=radius
            )
            query, prepared, weights = (
                torch.rand(shape, generator=generator, device="cpu").to(device, dtype)
                for shape in ((B, 1, 3), (B, S, hidden), (B, S))
            )
            arguments = (query, prepared, {"weights": weights})
            yield Call(scorer.to(device, dtype), arguments, method="step")

    def step(
        self, target: Location, query: Tensor, prepared: Tensor, state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]] | Declined:
        if not prepared.numel():
            return Declined(f"the shape of the keys is {list(prepared.shape)}")
        reason = why_not_triton(prepared, state["weights"], target.w)
        if reason is not None:
            return Declined(reason)
        from zoo_fast.location.kernels.step_scores import step_scores

        scores = step_scores(
            target.query_term(query)[:, 0],
            prepared,
            state["weights"],
            target.F.weight[:, 0],
            target.U.weight,
            target.w,
        )
        return scores[:, None], {}
