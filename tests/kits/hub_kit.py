"""What the tests of the Hub share: weights to send, processes to start, folders to look at."""

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


def list_files(folder: Path, *but: Path) -> dict[str, int]:
    """Every file below a folder with its size, but for those below the others."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(other) for other in but):
            found[str(path.relative_to(folder))] = path.stat().st_size
    return found


def environment(hub: Hub, home: Path, **more: str) -> dict[str, str]:
    """A user's environment: this hub, that home, and nothing else of Hugging Face."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    own = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), kept.get("PYTHONPATH", "")]),
    }
    return {**kept, **own, **more}


def zoo(
    hub: Hub, home: Path, *arguments: str, here: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """The command line, in a process of its own."""
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
