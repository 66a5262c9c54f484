"""``--cases sample``: a quarter of costly tests and of many cases, another for each commit.

All run nightly, and where a change touches the test or the file that it mirrors. Costly tests are
those that took a second and more when ``--record-costly`` wrote `COSTLY`.
"""

import os
import subprocess
import zlib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
COSTLY = Path(__file__).parents[1] / "costly_tests.txt"
MIN_SECONDS = 1.0
MIN_CASES = 8
PARTS = 4
BASE = "ZOO_TEST_BASE"
"""The commit that a change is compared with; by default the commit before."""
_ROTATION, _TOUCHED = "ZOO_TEST_ROTATION", "ZOO_TEST_TOUCHED"
"""Set by the first process for its workers."""


def add_option(parser):
    parser.addoption(
        "--cases",
        choices=("all", "sample"),
        default="all",
        help=f"sample: of tests with {MIN_CASES} and more cases, and of costly tests, run "
        f"1 / {PARTS}, another one for each commit; all cases of tests that the change touches",
    )
    parser.addoption(
        "--record-costly",
        action="store_true",
        help=f"write the tests that take {MIN_SECONDS:g} s and more to tests/costly_tests.txt",
    )


def sample(config, items):
    """Deselect the cases that do not belong to the sample of this commit."""
    if config.getoption("--cases") == "all":
        return
    rotation, touched = _state()
    functions = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    listed = set(COSTLY.read_text(encoding="utf-8").splitlines())
    kept, costly = [], []
    for name, cases in functions.items():
        if name.partition("::")[0] in touched:
            kept += cases
        elif len(cases) >= MIN_CASES:
            kept += choose(cases, rotation)
        else:
            costly += [item for item in cases if item.nodeid in listed]
            kept += [item for item in cases if item.nodeid not in listed]
    chosen = {id(item) for item in (*kept, *choose(costly, rotation))}
    dropped = [item for item in items if id(item) not in chosen]
    items[:] = [item for item in items if id(item) in chosen]
    config.hook.pytest_deselected(items=dropped)


def choose(cases, rotation):
    """Return a part of the cases; every case is in one of `PARTS` successive rotations.

    They are shuffled by their names, so that a part has values of every parameter.
    """
    shuffled = sorted(cases, key=lambda item: (zlib.crc32(item.nodeid.encode()), item.nodeid))
    return shuffled[rotation % PARTS :: PARTS]


class CostlyTests:
    """Writes the tests that took long; a plugin of the process that collects reports."""

    def __init__(self):
        self.seconds = defaultdict(float)

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        names = sorted(name for name, seconds in self.seconds.items() if seconds >= MIN_SECONDS)
        COSTLY.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def mirrors(test, changed):
    """Return whether a test file is changed, or tests a changed file: tests/ROOM/test_NAME*.py."""
    if test in changed:
        return True
    path = Path(test)
    name = path.stem.removeprefix("test_")
    room = path.parent.relative_to("tests").as_posix()
    for each in map(Path, changed):
        folder = each.parent.as_posix().removeprefix("zoo/")
        is_room = folder == room or folder.startswith(f"{room}/")
        if is_room and (name == each.stem or name.startswith(f"{each.stem}_")):
            return True
    return False


def _state():
    """Return the rotation and the test files that the change touches."""
    if _ROTATION not in os.environ:
        changed = set(_git("diff", "--name-only", os.environ.get(BASE, "HEAD~1")).split())
        tests = _git("ls-files", "tests/**/test_*.py", "tests/test_*.py").split()
        os.environ[_ROTATION] = _git("rev-list", "--count", "HEAD").strip() or "0"
        os.environ[_TOUCHED] = "\n".join(test for test in tests if mirrors(test, changed))
    return int(os.environ[_ROTATION]), set(os.environ[_TOUCHED].split("\n"))


def _git(*arguments):
    """Return what git prints; nothing without git, without a repository, or without the commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
