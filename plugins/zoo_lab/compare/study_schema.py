"""The keys of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from zoo.errors import ZooError
from zoo.registry.blueprint import Blueprint
from zoo_lab.reproduce.recipe_schema import FileHeading, Seed

Changes = dict[str, Any]
"""Values by their paths in the spec, such as ``decoder.attention.align``."""


class Group:
    """Variants that are compared with each other and with the base.

    Args:
        title: what differs between the variants.
        baseline: the base's name in this group.
        swap: for each path the values to try; a name selects a component.
        product: whether each combination of the values is a variant; by default each value is.
        variants: variants with several changes, by name.
        left_out: what is not part of the group, with the reason.
    """

    def __init__(
        self,
        *,
        title: str = "",
        baseline: str = "baseline",
        swap: dict[str, list[Any]] | None = None,
        product: bool = False,
        variants: dict[str, Changes] | None = None,
        left_out: dict[str, str] | None = None,
    ) -> None:
        if not swap and not variants:
            raise ZooError("set 'swap', 'variants' or both")
        self.title = title
        self.baseline = baseline
        self.swap = swap or {}
        self.product = product
        self.variants = variants or {}
        self.left_out = left_out or {}


@dataclass(frozen=True, kw_only=True)
class StudyHeading(FileHeading):
    """What a study compares."""

    title: str = ""
    description: str = ""


class Study:
    """A comparison of variants of one spec, with one budget for each run.

    Args:
        zoo: version of the format.
        name: name of the study.
        title: the task in a few words.
        description: what is compared, for readers.
        base: a recipe or a spec, by name or path.
        groups: the variants, by the name of their group.
        set: values that replace those of the base's spec, by path; the same for all variants.
        evaluate: replaces keys of the recipe's ``evaluate``.
        figures: replaces the recipe's ``figures``; the first one is the quality.
        seeds: random seeds; there is one run of each variant for each seed.
        limit: seconds of training of each run.
        speed: what the speed of the training counts.
    """

    def __init__(
        self,
        *,
        heading: StudyHeading,
        base: str,
        groups: Mapping[str, Blueprint[Group]],
        set: Changes | None = None,
        evaluate: dict[str, Any] | None = None,
        figures: list[dict[str, Any]] | None = None,
        seeds: Annotated[list[Seed], Field(min_length=1)] | None = None,
        limit: Annotated[float, Field(gt=0)] | None = None,
        speed: str = "tokens",
    ) -> None:
        self.name = heading.name
        self.base = base
        self.groups = {key: group.build() for key, group in groups.items()}
        self.title = heading.title or heading.name
        self.description = heading.description
        self.set = set or {}
        self.evaluate = evaluate
        self.figures = figures
        self.seeds = seeds or [0, 1, 2]
        self.limit = limit
        self.speed = speed
