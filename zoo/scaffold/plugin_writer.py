"""Writing a plugin project from templates."""

from __future__ import annotations

import importlib.resources
import keyword
import os
import re
from pathlib import Path
from string import Template

from zoo.about import DISTRIBUTION
from zoo.errors import ZooError, suggest
from zoo.files import os_error_message, staging_dir
from zoo.interfaces import KINDS

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PROJECT_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "readme.md",
    "zoo_$module/__init__.py": "init.py",
    "tests/test_$module.py": "test.py",
}


_IMPORTER_FILES = {
    **_PROJECT_FILES,
    "README.md": "readme_importer.md",
    "zoo_$module/__init__.py": "init_importer.py",
}
_README = {"acceleration": "readme_acceleration.md"}
"""Kinds whose README is not that of other components."""
IMPORTER = "importer"
"""The value of `kind` for a plugin with an importer, which is not a component."""


def write_plugin(name: str, kind: str, folder: Path) -> Path:
    """Write a plugin project into a new folder ``zoo-NAME`` and return the folder.

    The folder appears only when it is complete.

    Args:
        kind: the kind of its component, or 'importer'.
    """
    if kind not in (*KINDS, IMPORTER):
        raise ZooError(f"no kind named '{kind}'{suggest(kind, [*KINDS, IMPORTER])}")
    module = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(module):
        raise ZooError(
            f"'{name}' is not a valid plugin name; use lower-case words joined by hyphens"
        )
    target = folder / f"zoo-{name}"
    if os.path.lexists(target):
        raise ZooError(f"{target} already exists; choose another name or folder")
    values = {
        "name": name,
        "module": module,
        "Class": "".join(word.capitalize() for word in name.split("-")),
        "kind": kind,
        "distribution": DISTRIBUTION,
    }
    project_files = _IMPORTER_FILES if kind == IMPORTER else _PROJECT_FILES
    files = {**project_files, f"zoo_{module}/{module}.py": f"{kind}.py"}
    files["README.md"] = _README.get(kind, files["README.md"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with staging_dir(target) as staging:
            for path, template in files.items():
                file = staging / "new" / Template(path).substitute(values)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(_load_template(template).substitute(values), encoding="utf-8")
            (staging / "new").rename(target)
    except OSError as error:
        raise ZooError(f"{target} could not be written: {os_error_message(error)}") from None
    return target


def _load_template(name: str) -> Template:
    source = importlib.resources.files("zoo.scaffold") / "templates" / f"{name}.tmpl"
    return Template(source.read_text(encoding="utf-8"))
