"""Comparison of two specs or models."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from zoo.spec.composition import resolve_device
from zoo_diff.outputs import OutputDifferences, compare_outputs
from zoo_diff.settings import SettingDifference, compare_settings
from zoo_diff.side import open_side
from zoo_diff.tensors import Progress, TensorDifferences, compare_tensors

SECTIONS = ("settings", "tensors", "outputs")


@dataclass(frozen=True)
class Difference:
    """What differs between two specs or models; None for a section that was not compared."""

    a: tuple[str, str]
    b: tuple[str, str]
    settings: list[SettingDifference] | None
    tensors: TensorDifferences | None
    outputs: OutputDifferences | None

    @property
    def equal(self) -> bool:
        """Whether nothing that was compared differs."""
        others = (each.equal for each in (self.tensors, self.outputs) if each is not None)
        return not self.settings and all(others)

    def as_json(self) -> dict[str, Any]:
        """Return the sections that were compared as plain data."""
        found: dict[str, Any] = {"equal": self.equal}
        for side in ("a", "b"):
            found[side] = dict(zip(("name", "kind"), getattr(self, side), strict=True))
        if self.settings is not None:
            found["settings"] = [each.as_json() for each in self.settings]
        if self.tensors is not None:
            found["tensors"] = self.tensors.as_json()
        if self.outputs is not None:
            found["outputs"] = self.outputs.as_json()
        return found


def compare(
    a: str,
    b: str,
    *,
    only: Collection[str] = SECTIONS,
    as_specs: bool = False,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[], AbstractContextManager[Progress | None]] = nullcontext,
) -> Difference:
    """Compare the settings, tensors and outputs of two specs or models.

    Args:
        only: the sections to compare.
        as_specs: whether names that both a spec and a shipped model have are specs.
        seed: random seed of the weights of specs.
        progress: shows the progress of the comparison of tensors.
    """
    target = resolve_device(device)
    with_weights = bool({"tensors", "outputs"} & set(only))
    one, two = (
        open_side(name, seed=seed, as_spec=as_specs, with_weights=with_weights) for name in (a, b)
    )
    tensors = None
    if "tensors" in only:
        with progress() as report:
            tensors = compare_tensors(one, two, report)
    return Difference(
        (a, one.kind),
        (b, two.kind),
        compare_settings(one, two) if "settings" in only else None,
        tensors,
        compare_outputs(one, two, target) if "outputs" in only else None,
    )
