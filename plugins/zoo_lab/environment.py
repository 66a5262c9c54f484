"""The machine, the versions and the commit of a run."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from zoo.about import version as zoo_version

_PACKAGE = Path(__file__).parents[1]


def describe_hardware(device: torch.device) -> dict[str, str | int]:
    """Return the device, the processor, and its number of cores and threads."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {
        "device": name,
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }


def find_versions() -> dict[str, str]:
    """Return the versions of Python, the zoo, torch, CUDA and Triton."""
    found = {"python": platform.python_version(), "zoo": zoo_version(), "torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    with contextlib.suppress(PackageNotFoundError):
        found["triton"] = version("triton")
    return found


def find_commit(package: Path = _PACKAGE) -> str | None:
    """Return the commit of the checkout of a package, with '+' if files differ from it.

    The environment variable ``ZOO_COMMIT`` names it for a copy of the sources; without a checkout
    and the variable it is None.
    """
    if "ZOO_COMMIT" in os.environ:
        return os.environ["ZOO_COMMIT"]
    tracked = _git(package, "ls-files", "--error-unmatch", "__init__.py")
    commit = _git(package, "rev-parse", "HEAD")
    if tracked is None or commit is None:
        return None
    changes = _git(package, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+" if changes else commit


def _git(package: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(package), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    """Return the name of the processor; its architecture if the system does not report it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
