"""All plugin hooks.

A plugin is a module named by an entry point in the group ``zoo``, with functions decorated with
``@zoo.plugin.hookimpl``. Specs and maps need no hook: every ``specs/*.yaml`` and ``maps/*.yaml``
inside the plugin's package is registered under its file name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pluggy

from zoo.interfaces import Component
from zoo.interfaces.importer import Importer

GROUP = "zoo"

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def zoo_components() -> Sequence[type[Component]]:  # type: ignore[empty-body]
    """The component classes this plugin offers."""


@hookspec
def zoo_importers() -> Sequence[Importer]:  # type: ignore[empty-body]
    """How models of other libraries come in and go out."""


@hookspec
def zoo_catalogues() -> Sequence[str | os.PathLike[str]]:  # type: ignore[empty-body]
    """Files in the form of ``registry.yaml`` that list models this plugin's makers published."""
