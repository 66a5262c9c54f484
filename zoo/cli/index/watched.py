"""The packages and files that an index depends on."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from zoo.cli.index.fingerprint import Fingerprint, take_fingerprint
from zoo.hub.catalogue import builtin_file
from zoo.registry.plugin_data import Plugin

_TRACE_FILE = re.compile(r'File "([^"]+)"')
_MISSING_MODULE = re.compile(r"No module named '(\w+)")


def fingerprint_of(plugins: Iterable[Plugin]) -> Fingerprint:
    """Return the fingerprint of everything that has been imported to load the plugins."""
    modules = {
        name: file
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] not in sys.stdlib_module_names and _is_importable(name, module)
        if isinstance(file := getattr(module, "__file__", None), str) and os.path.isfile(file)
    }
    packages = {name.partition(".")[0] for name in modules}
    trees = {str(Path(__file__).parents[2])}  # the package `zoo`
    files = {*modules.values(), str(builtin_file())}
    for plugin in plugins:
        files |= {str(path) for path in plugin.catalogues}
        if plugin.enabled:
            packages.add(_top_level(plugin))
            folders, single_files = _locations(plugin)
            trees |= folders
            files |= single_files
        # A module that failed to import is not in sys.modules.
        files |= set(_TRACE_FILE.findall(plugin.traceback))
        packages |= set(_MISSING_MODULE.findall(plugin.traceback))
    inside = tuple(folder + os.sep for folder in trees)
    files = {file for file in files if not file.startswith(inside)}
    return take_fingerprint(sorted(packages), sorted(trees), sorted(files))


def _is_importable(name: str, module: object) -> bool:
    """Return False for ``__main__`` and modules that were created under another name."""
    return getattr(getattr(module, "__spec__", None), "name", None) == name


def _top_level(plugin: Plugin) -> str:
    return plugin.target.partition(":")[0].partition(".")[0].strip()


def _locations(plugin: Plugin) -> tuple[set[str], set[str]]:
    """Return the folders and files of a plugin's package, also if it failed to import."""
    module = sys.modules.get(plugin.target.partition(":")[0].strip())
    try:
        spec = module.__spec__ if module else importlib.util.find_spec(_top_level(plugin))
    except (ImportError, ValueError):  # the target is not a module name
        return set(), set()
    if spec is None:
        return set(), set()
    folders = set(spec.submodule_search_locations or ())
    return folders, {spec.origin} if spec.origin and not folders else set()
