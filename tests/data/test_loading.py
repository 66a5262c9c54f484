"""Worker processes: same batches, errors with their origin, nothing left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from data_kit import array_batches, parallel_columns, text_batches

from zoo.errors import DataError
from zoo.spec.training import Batching

COLUMNS = parallel_columns(60)
KITS = Path(__file__).parents[1] / "kits"


def _tensors(batches, epoch, **options):
    return [
        (update.index, update.examples, {k: t.tolist() for k, t in update.batches[0].items()})
        for update in batches.epoch(epoch, **options)
    ]


def _children():
    return psutil.Process().children()


def test_processes_make_the_same_batches_and_end():
    before = _children()
    alone = text_batches(COLUMNS, Batching(tokens=60))
    with text_batches(COLUMNS, Batching(tokens=60), workers=2) as batches:
        assert _tensors(batches, 0) == _tensors(alone, 0)
        workers = [child for child in _children() if child not in before]
        assert len(workers) == 2
        for _ in batches.epoch(0):
            break  # leaves batches that were made ahead
        assert _tensors(batches, 1, start=2) == _tensors(alone, 1)[2:]
        assert [child for child in _children() if child not in before] == workers
    assert set(_children()) <= set(before)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_has_its_origin_and_ends_the_processes(workers):
    before = _children()
    bad = {7: np.full((3, 3, 3), np.nan)}
    batches = array_batches(12, Batching(items=4), bad=bad, workers=workers)
    with pytest.raises(DataError, match=r"^list:8: 'source' contains 27 values") as caught:
        list(batches.epoch(0))
    assert caught.value.origin == "list:8"
    assert set(_children()) <= set(before)


SCRIPT = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from data_kit import parallel_columns, text_batches
from zoo.spec.training import Batching

if sys.argv[2] == "record":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
batches = text_batches(parallel_columns(60), Batching(items=2), workers=2)
for index, update in enumerate(batches.epoch(0)):
    if index == 0:
        print(flush=True)
        sys.stdin.readline()
print(index + 1)
"""


def _signal_group(number, *, handler):
    """Send a signal to a process and its two workers; return them, output and last error."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(KITS), handler],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) == 2
    os.killpg(process.pid, number)
    output, errors = process.communicate(timeout=60)
    return workers, output.strip(), "".join(errors.strip().splitlines()[-1:])


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind():
    workers, _, error = _signal_group(signal.SIGINT, handler="raise")
    assert psutil.wait_procs(workers, timeout=30)[1] == []
    assert error == "KeyboardInterrupt"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_leave_signals_of_the_group_to_the_main_process(number):
    workers, output, error = _signal_group(number, handler="record")
    assert (output, error) == ("30", "")
    assert psutil.wait_procs(workers, timeout=30)[1] == []


def test_workers_that_are_an_epoch_ahead_make_the_batches_that_are_asked_for():
    alone = array_batches(12, Batching(items=4))
    with array_batches(12, Batching(items=4), workers=1) as batches:
        for epoch, start in ((0, 0), (1, 0), (2, 0), (2, 0), (3, 1), (4, 0)):
            assert _tensors(batches, epoch, start=start) == _tensors(alone, epoch, start=start)
            if epoch == 1:
                next(iter(batches.epoch(2)))  # the rest of the epoch is not used
