"""Virtual environments with the packages of one extra only, without a download.

The packages are those of the environment that runs the tests: each file or folder of a package that
an extra requires, directly or not, is linked into the new environment. Nothing else is in it.
"""

from __future__ import annotations

import tomllib
import venv
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging_kit import ROOT, Environment

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])


class NotInstalled(Exception):
    """Raised if the environment that runs the tests lacks a package."""


def requirements(extras: Iterable[str]) -> list[Requirement]:
    """Return what the project requires with some extras."""
    listed = [*PROJECT["dependencies"]]
    for extra in extras:
        listed += PROJECT["optional-dependencies"][extra]
    return [Requirement(line) for line in listed]


def closure(wanted: Sequence[Requirement]) -> dict[str, Distribution]:
    """Return the installed packages that requirements need, directly or not, by name.

    Raises:
        NotInstalled: if one of them is not installed in a version that is required.
    """
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            try:
                found[name] = distribution(name)
            except PackageNotFoundError:
                raise NotInstalled(f"{requirement} is not installed") from None
            if not requirement.specifier.contains(found[name].version, prereleases=True):
                raise NotInstalled(f"{requirement}: {found[name].version} is installed")
            needs = [Requirement(line) for line in found[name].requires or ()]
            waiting += [need for need in needs if _applies(need, extra)]
    return found


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


class ExtraEnvironment(Environment):
    """A virtual environment with what the project needs with some extras, and built wheels.

    Args:
        folder: directory of the environment; commands run in it.
        wheels: to install; the weights of an extra among them.
        extras: of pyproject.toml.
    """

    def __init__(self, folder: Path, *wheels: Path, extras: Iterable[str] = ()) -> None:
        built = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}
        wanted = [r for r in requirements(extras) if canonicalize_name(r.name) not in built]
        packages = closure(wanted)
        venv.create(folder)
        self.locate(folder)
        for package in packages.values():
            for part in _parts(package):
                link = self.site / part
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.exists():
                    link.symlink_to(package.locate_file(part))
        self.install(*wheels)


def _parts(package: Distribution) -> set[Path]:
    """Return the files and folders of a package that are not parts of folders of others."""
    parts = set()
    for file in package.files or ():
        path = Path(file)
        if ".." in path.parts or "__pycache__" in path.parts:
            continue
        count = 1
        while count < len(path.parts) and _is_shared(package, Path(*path.parts[:count])):
            count += 1
        parts.add(Path(*path.parts[:count]))
    return parts


def _is_shared(package: Distribution, folder: Path) -> bool:
    """Return whether a folder is a namespace, which packages share."""
    if folder.suffix in (".dist-info", ".libs"):
        return False
    located = Path(str(package.locate_file(folder)))
    return not (located / "__init__.py").is_file()
