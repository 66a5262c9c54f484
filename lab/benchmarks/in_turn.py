"""Benchmarks of this tree and of another one, in turn, so that both see the same machine.

    python lab/benchmarks/in_turn.py main greedy-generation beam-generation
    python lab/benchmarks/in_turn.py FOLDER first-token:prompt_length=16 gpt2-generation:batch=1

Each tree has several processes, since the same code differs by some percent from one to the
next. They prepare the benchmarks side by side, without the check and the peers, and then measure
one after the other, in rounds. Ends with status 1 if a benchmark became slower than allowed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
EXPORTED = ("zoo", "plugins", "registry.yaml")
SECONDS = 0.3
"""Time of the calls of a benchmark in a round."""


class Worker:
    """A process that measures the benchmarks of a tree."""

    def __init__(self, tree: Path, options: argparse.Namespace) -> None:
        settings = {"device": options.device, "names": options.name}
        self.times: list[list[float]] = [[] for _ in options.name]
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--worker", json.dumps(settings)],
            env=os.environ | {"PYTHONPATH": _search_path(tree)},
            cwd=tree,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._tree = tree

    def wait(self) -> None:
        """Wait until the benchmarks are prepared."""
        found = Path(self._answer())
        if self._tree.resolve() not in found.resolve().parents:
            raise SystemExit(f"{self._tree}: the process imports {found}")

    def measure(self, number: int) -> None:
        assert self._process.stdin is not None
        print(number, file=self._process.stdin, flush=True)
        self.times[number].append(float(self._answer()))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"{self._tree}: a process ended")
        return line


class Row(NamedTuple):
    """The times of a benchmark in seconds; of each tree, the median of each of its processes."""

    name: str
    before: Sequence[float]
    now: Sequence[float]

    @property
    def ratio(self) -> float:
        return statistics.mean(self.now) / statistics.mean(self.before)

    def __str__(self) -> str:
        return f"{self.name:<48}{_cell(self.before):>33}{_cell(self.now):>33}{self.ratio:>9.3f}"


def _cell(seconds: Sequence[float]) -> str:
    each = ", ".join(f"{1e3 * value:.3f}" for value in seconds)
    return f"{1e3 * statistics.mean(seconds):.3f} ({each})"


def _search_path(tree: Path) -> str:
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = [str(ROOT), str(ROOT / "plugins")]
    others = [folder for folder in given if folder and folder not in own]
    return os.pathsep.join([str(tree), str(tree / "plugins"), *others])


@contextlib.contextmanager
def open_tree(name: str) -> Iterator[Path]:
    """Yield a folder with the tree: the folder of this name, or the files of a revision."""
    if Path(name).is_dir():
        yield Path(name).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="zoo-tree-") as folder:
        archive = Path(folder, "tree.tar")
        command = ["git", "archive", "-o", str(archive), name, *EXPORTED]
        if subprocess.run(command, cwd=ROOT).returncode:
            sys.exit(f"{name} is neither a folder nor a revision")
        subprocess.run(["tar", "xf", str(archive)], cwd=folder, check=True)
        archive.unlink()
        yield Path(folder)


def compare(options: argparse.Namespace, before: Path) -> list[Row]:
    """Measure the benchmarks in turn, and return a row for each."""
    trees = [before, ROOT] * options.processes
    workers: list[Worker] = []
    try:
        workers += [Worker(tree, options) for tree in trees]
        for worker in workers:
            worker.wait()
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for index in range(len(options.name)):
                for worker in workers if number % 2 else workers[::-1]:
                    worker.measure(index)
    finally:
        for worker in workers:
            worker.stop()
    medians = [[statistics.median(times) for times in worker.times] for worker in workers]
    return [
        Row(name, [each[index] for each in medians[::2]], [each[index] for each in medians[1::2]])
        for index, name in enumerate(options.name)
    ]


def work(device: str, names: Sequence[str]) -> None:
    """Prepare benchmarks, then measure each whose number is read, and print its seconds."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # libraries may print
    import torch

    import zoo
    from zoo_lab.bench.measuring import StepTime, measure
    from zoo_lab.bench.selection import select_cases

    target = torch.device(device)

    def seconds(function: Any, repeats: int) -> float:
        return measure(function, target, repeats=repeats, cpu_memory=False).seconds

    functions, repeats = [], []
    for name in names:
        benchmark, _, settings = name.partition(":")
        overrides = settings.split(",") if settings else ()
        try:
            [case] = select_cases([benchmark], target.type, overrides)
        except zoo.ZooError as error:
            sys.exit(str(error))
        torch.manual_seed(0)
        prepared = case.build()
        prepared.prepare(target)
        function = prepared.timed()
        long = function.long if isinstance(function, StepTime) else function
        functions.append(function)
        repeats.append(max(3, min(50, int(SECONDS / seconds(long, 3)))))
    print(zoo.__file__, file=answers, flush=True)
    for line in sys.stdin:
        index = int(line)
        print(seconds(functions[index], repeats[index]), file=answers, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="a revision or the folder of another tree")
    parser.add_argument("name", nargs="+", help="a benchmark: NAME or NAME:PARAM=VALUE,PARAM=VALUE")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--processes", type=int, default=2, help="of each tree")
    parser.add_argument("--allowed", type=float, default=1.03, help="largest ratio")
    if sys.argv[1:2] == ["--worker"]:
        settings = json.loads(sys.argv[2])
        work(settings["device"], settings["names"])
        return
    options = parser.parse_args()
    started = time.perf_counter()
    with open_tree(options.before) as before:
        rows = compare(options, before)
    print(f"{'ms':<48}{'before':>33}{'now':>33}{'ratio':>9}")
    for row in rows:
        print(row)
    print(f"{options.rounds} rounds, {time.perf_counter() - started:.0f} s")
    slower = [row.name for row in rows if row.ratio > options.allowed]
    if slower:
        sys.exit(f"slower than {options.allowed:.2f} x: {', '.join(slower)}")


if __name__ == "__main__":
    main()
