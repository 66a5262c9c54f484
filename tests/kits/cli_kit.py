"""Run ``zoo`` in new processes, with a cache directory and packages of their own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_calls = itertools.count()

CODE = """
import sys
from zoo.cli.main import main
report = sys.argv.pop()
try:
    main()
finally:
    with open(report, "w") as file:
        print(*sys.modules, file=file)
"""

PROBE = """
from zoo.cli.index.fingerprint import environment, is_current
from zoo.cli.index.store import index_file, read_data
data = read_data(index_file(environment()))
print(data is not None and is_current(data["fingerprint"]))
"""

# The files have the content that was indexed, with other times of their last change.
RENEW = """
from zoo.cli.index.fingerprint import environment, take_fingerprint
from zoo.cli.index.store import index_file, read_data, write_data
data = read_data(index_file(environment()))
old = data["fingerprint"]
data["fingerprint"] = take_fingerprint(old["packages"], old["trees"], old["files"])
write_data(index_file(environment()), data)
"""


@dataclass(frozen=True)
class Result:
    """The output of a command, and the modules that its process imported."""

    stdout: str
    stderr: str
    modules: frozenset[str]

    @property
    def built_index(self) -> bool:
        return "zoo.cli.index.build" in self.modules


class Shell:
    """Runs ``zoo`` with a cache directory and further entries of ``sys.path``."""

    def __init__(self, folder: Path, *path: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.report = folder / "modules"
        self.path = [str(entry) for entry in path]
        self.environ: dict[str, str] = {}

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command, without waiting for its end."""
        return self._start(CODE, *map(str, arguments), str(self.report))

    @property
    def env(self) -> dict[str, str]:
        """The environment variables of the processes."""
        path = os.pathsep.join([*self.path, os.environ.get("PYTHONPATH", "")])
        environ = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(self.cache)}
        environ.pop("ZOO_PLUGINS", None)
        return environ | self.environ

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.env,
        )

    def run(self, *arguments: object, code: int = 0) -> Result:
        """Run a command and check its exit code."""
        process = self.start(*arguments)
        stdout, stderr = process.communicate(timeout=300)
        assert process.returncode == code, f"{stdout}\n{stderr}"
        return Result(stdout, stderr, frozenset(self.report.read_text().split()))

    def has_current_index(self) -> bool:
        """Return whether the next command would use the index as it is."""
        return self._evaluate(PROBE) == "True\n"

    def renew_index(self) -> None:
        """Make the index current for files that were copied back."""
        self._evaluate(RENEW)

    def _evaluate(self, code: str) -> str:
        stdout, stderr = (process := self._start(code)).communicate(timeout=300)
        assert process.returncode == 0, stderr
        return stdout

    @property
    def index_files(self) -> list[Path]:
        return sorted((self.cache / "attention-zoo").glob("index-*.json"))


def age(folder: Path) -> None:
    """Set the times of all files to the past, later at each call, so that an index is kept."""
    changed = 10**18 + next(_calls)
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, ns=(changed, changed))
