"""Optimisers and learning rate schedules."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return []
