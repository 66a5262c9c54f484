"""Built distributions and virtual environments to install them in, for tests of packaging."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(target: str, source: Path, folder: Path) -> Path:
    """Build the 'sdist' or 'wheel' of a project without network access and return its path."""
    command = ["-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    _run([sys.executable, *command], folder=source)
    (built,) = folder.glob({"sdist": "*.tar.gz", "wheel": "*.whl"}[target])
    return built


class Environment:
    """A fresh virtual environment with packages installed by pip.

    All other packages are imported from the environment that runs the tests.

    Args:
        folder: directory of the environment; commands run in it.
        sources: wheels or project directories to install.
    """

    def __init__(self, folder: Path, *sources: Path) -> None:
        venv.create(folder)
        self.locate(folder)
        outer = dict.fromkeys(str(each.locate_file("")) for each in distributions())
        # The .pth file appends to sys.path: packages of this environment take precedence.
        (self.site / "outer.pth").write_text("\n".join(outer) + "\n", encoding="utf-8")
        self.install(*sources)

    def locate(self, folder: Path) -> None:
        """Set the paths of the environment in a directory."""
        base = {"base": str(folder), "platbase": str(folder)}
        paths = sysconfig.get_paths("venv", vars=base)
        self.folder, self.scripts = folder, Path(paths["scripts"])
        self.site = Path(paths["purelib"])

    def install(self, *sources: Path) -> None:
        # --ignore-installed: the outer environment can hold the same version.
        flags = ["--no-deps", "--no-build-isolation", "--no-compile", "--ignore-installed"]
        self._pip("install", *flags, *map(str, sources))

    def uninstall(self, distribution: str) -> None:
        self._pip("uninstall", "--yes", distribution)

    def _pip(self, command: str, *arguments: str) -> None:
        pip = ["-m", "pip", "--python", str(self.scripts / "python"), command]
        _run([sys.executable, *pip, "--quiet", "--disable-pip-version-check", *arguments])

    def python(self, *arguments: str, code: int = 0) -> str:
        """Run Python with these arguments; return its output if it exits with the code."""
        command = [str(self.scripts / "python"), *arguments]
        return _run(command, folder=self.folder, code=code)

    def zoo(self, *arguments: object, code: int = 0) -> str:
        """Run the installed `zoo` command; return its output if it exits with the code."""
        command = [str(self.scripts / "zoo"), *map(str, arguments)]
        return _run(command, folder=self.folder, code=code)

    def shell(self, command: str, *, folder: Path) -> str:
        """Run a command line as in the activated environment; pip needs no network."""
        python = self.scripts / "python"
        modules = {
            "pip": f"{sys.executable} -m pip --python {python}",
            "pytest": f"{python} -m pytest",
        }
        for name, words in modules.items():
            (self.scripts / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
            (self.scripts / name).chmod(0o755)
        variables = {
            "PATH": f"{self.scripts}{os.pathsep}{os.environ['PATH']}",
            "PIP_NO_BUILD_ISOLATION": "0",  # the value that turns the isolation off
            "PIP_NO_DEPS": "1",
            "PIP_QUIET": "1",
        }
        return _run(["bash", "-c", command], folder=folder, variables=variables)


def _run(
    command: list[str],
    *,
    folder: Path | None = None,
    code: int = 0,
    variables: Mapping[str, str] | None = None,
) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ZOO"))}
    clean |= variables or {}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=folder, env=clean
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, f"{command} returned {done.returncode}:\n{output}"
    return output
