"""The benchmarks of the installed plugins."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from functools import cache

from zoo.errors import RegistryError, ZooError
from zoo.interfaces import Entry
from zoo.registry.component_registry import default_registry
from zoo.registry.plugin_call import PluginCall
from zoo.registry.plugin_data import Plugin
from zoo_lab.bench.benchmark import Benchmark

FOLDER = "zoo_lab.benchmarks"
FAST_LANE = "zoo_fast"
"""Benchmarks of its kernels are left out where it is not installed."""


@cache
def benchmarks() -> Sequence[Entry]:
    """Return the benchmarks of all enabled plugins, sorted by name.

    Those of the plugin ``zoo_NAME`` are in the list ``BENCHMARKS`` of ``zoo_lab.benchmarks.NAME``
    or of the plugin's own module ``benchmarks``.
    """
    plugins = [plugin for plugin in default_registry().plugins if plugin.enabled]
    found = [entry for plugin in plugins for entry in _benchmarks_of(plugin)]
    return sorted(found, key=lambda entry: (entry.name, entry.plugin))


def _benchmarks_of(plugin: Plugin) -> Iterator[Entry]:
    package = plugin.target.partition(":")[0]
    for module in (f"{FOLDER}.{package.removeprefix('zoo_')}", f"{package}.benchmarks"):
        try:
            if importlib.util.find_spec(module) is None:
                continue
        except ImportError:  # the plugin is a single module, or cannot be imported
            continue
        try:
            with PluginCall():
                classes = importlib.import_module(module).BENCHMARKS
        except ModuleNotFoundError as error:
            if error.name != FAST_LANE:
                raise ZooError(f"{module} cannot be loaded: {error}") from error
            continue
        except Exception as error:
            raise ZooError(f"{module} cannot be loaded: {error}") from error
        for cls in classes:
            if not (isinstance(cls, type) and issubclass(cls, Benchmark)):
                raise RegistryError(f"{module}.BENCHMARKS has {cls!r}, which is not a Benchmark")
            yield Entry(cls, plugin.name, plugin.distribution, plugin.version)
