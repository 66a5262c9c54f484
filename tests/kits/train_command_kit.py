"""``zoo train`` in child processes that are forked from one process, so that imports are fast."""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import yaml


def start_zoo(folder: Path, *arguments: object) -> BaseProcess:
    """Start ``zoo`` in a folder, in its own process group.

    It writes to ``output.txt`` and ``errors.txt`` there.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["train_command_kit", "accelerate", "zoo.training.run"])
    process = context.Process(target=_zoo, args=(folder, list(map(str, arguments))))
    process.start()
    return process


def _zoo(folder: Path, arguments: list[str]) -> None:
    import torch

    from zoo.cli.main import main

    torch.set_num_threads(1)
    os.setpgid(0, 0)
    os.chdir(folder)
    for name, stream in (("output.txt", 1), ("errors.txt", 2)):
        file = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, stream)
    sys.argv = ["zoo", *arguments]
    main()


def run_zoo(folder: Path, *arguments: object) -> tuple[int | None, str, str]:
    """Run ``zoo`` in a folder; return exit code, output and errors."""
    process = start_zoo(folder, *arguments)
    process.join()
    return process.exitcode, *(
        (folder / f"{name}.txt").read_text() for name in ("output", "errors")
    )


def write_spec(folder: Path, spec: dict[str, Any]) -> Path:
    """Write a spec to a file, and return its path."""
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path
