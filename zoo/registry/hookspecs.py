"""All plugin hooks.

A plugin is a module named by an entry point in the group ``zoo``, with functions decorated with
``@zoo.plugin.hookimpl``. Specs and maps need no hook: every ``specs/*.yaml`` and ``maps/*.yaml``
inside the plugin's package is registered under its file name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

from zoo.registry.distributions import GROUP

if TYPE_CHECKING:  # a plugin that only adds commands does not import torch
    from zoo.interfaces import Component
    from zoo.interfaces.importer import Importer
    from zoo.registry.command import Command

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def zoo_components() -> Sequence[type[Component]]:  # type: ignore[empty-body]
    """Return the component classes that this plugin provides."""


@hookspec
def zoo_importers() -> Sequence[Importer]:  # type: ignore[empty-body]
    """Return the importers for models of other libraries."""


@hookspec
def zoo_catalogues() -> Sequence[str | os.PathLike[str]]:  # type: ignore[empty-body]
    """Return paths of files in the format of ``registry.yaml`` that list published models."""


@hookspec
def zoo_folder_importers() -> Sequence[str]:  # type: ignore[empty-body]
    """Return names of modules that import folders and repositories of other libraries.

    A module is imported when a model is loaded from such a folder. It has the functions
    ``import_folder``, ``import_repository`` and ``list_source_files`` of ``zoo_exchange.imported``.
    """


@hookspec
def zoo_importer_laws() -> Sequence[str]:  # type: ignore[empty-body]
    """Return names of modules with laws of importers, in a variable ``LAWS``."""


@hookspec
def zoo_commands() -> Sequence[Command]:  # type: ignore[empty-body]
    """Return the commands that this plugin adds to ``zoo``.

    ``zoo --help`` lists them in a panel of the plugin. The module of a command is imported when
    the command runs, so keep ``import torch`` out of the plugin's ``__init__`` if a command
    should start quickly. A command whose name is already used is ignored and reported by
    ``zoo plugins``.
    """
