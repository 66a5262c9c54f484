"""Helpers of the Hub tests: sample weights, processes and file lists."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hub_server import Hub

NAME = "zoo-team/kit"
BYTES = random.Random(0).randbytes(300_000)
WEIGHTS = "model.safetensors"


def list_files(folder: Path, *excluded: Path) -> dict[str, int]:
    """Return the size of every file below a directory, except below the excluded ones."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(other) for other in excluded):
            found[str(path.relative_to(folder))] = path.stat().st_size
    return found


def environment(hub: Hub, home: Path, **more: str) -> dict[str, str]:
    """Return an environment with this hub and home, without other HF_ variables."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    own = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), base.get("PYTHONPATH", "")]),
    }
    return {**base, **own, **more}


def zoo(
    hub: Hub, home: Path, *arguments: str, here: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a new process."""
    return run_process(
        [sys.executable, "-m", "zoo", *arguments], environment(hub, home, **more), here
    )


def python(
    hub: Hub, home: Path, code: str, *, here: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    return run_process([sys.executable, "-c", code], environment(hub, home, **more), here)


def run_process(
    command: Sequence[str], env: Mapping[str, str], here: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, cwd=here, capture_output=True, text=True, timeout=120, check=False
    )
