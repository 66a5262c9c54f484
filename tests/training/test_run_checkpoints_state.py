"""A resumed run has the same state in memory as one that was not interrupted."""

import contextlib
import shutil
from types import FunctionType, MethodType

import numpy as np
import pytest
import torch
from bad_data_kit import broken_image
from training_kit import make_spec, make_story_spec, set_dropout

from zoo.training.interruption import Signals
from zoo.training.monitor import lower_is_better
from zoo.training.processes import Processes
from zoo.training.random_state import get_random_state, seed_all
from zoo.training.resumption import open_checkpoint
from zoo.training.run_checkpoints import RunCheckpoints
from zoo.training.run_log import RunLog
from zoo.training.setup import build_setup, read_request
from zoo.training.state import RunState
from zoo.training.trainer import Trainer

# Not state of the training: open files, caches of encoded labels and decoded images, times, the
# size of the log, and Accelerate, which lists every model of the process.
NOT_COMPARED = ("._descriptor", "._known", ".seconds", ".log_bytes", ".processes")
NOT_COMPARED += ("._starts", "._used")


@contextlib.contextmanager
def open_run(spec, folder):
    """Open a run in a folder, from its newest checkpoint if it has one, with all its parts."""
    request = read_request(spec, (), None, None)
    with contextlib.ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        processes = Processes(folder, device="cpu")
        stack.callback(processes.close)
        seed_all(request.training.seed)
        setup = build_setup(request, processes)
        stack.callback(setup.close)
        lower = lower_is_better(request.training, setup.metrics)
        checkpoints = RunCheckpoints(folder / "checkpoints", setup, lower=lower)
        newest = checkpoints.newest()
        state = RunState()
        if newest is not None:
            state = checkpoints.restore(open_checkpoint(newest, processes, request))
        log = RunLog(folder / "log.jsonl", processes)
        stack.callback(log.close)
        yield Trainer(setup, state, log, checkpoints, (), lambda: {"train": {}})


def train(spec, folder):
    """Train to the last step and return the state of all parts, by path."""
    found = {}
    with open_run(spec, folder) as trainer:
        with Signals() as signals:
            trainer.train(signals)
        parts = {**vars(trainer.setup), "state": trainer.state, "random": get_random_state()}
        flatten(parts, "", found, set())
    return found


def flatten(value, path, found, seen):
    """Add every number, text and tensor that can be reached from a value, by path."""
    if path.endswith(NOT_COMPARED):
        return
    if isinstance(value, torch.Tensor):
        found[path] = value.detach().clone()
    elif isinstance(value, np.ndarray):
        found[path] = torch.from_numpy(value.copy())
    elif isinstance(value, bool | int | float | str | bytes | None | torch.dtype | torch.device):
        found[path] = value
    elif isinstance(value, np.random.Generator | torch.Generator):
        raise AssertionError(f"{path} is a random generator, whose state is not in checkpoints")
    elif id(value) not in seen and not isinstance(value, type | FunctionType | MethodType):
        seen.add(id(value))
        for key, part in children(value):
            flatten(part, f"{path}.{key}", found, seen)


def children(value):
    if isinstance(value, dict):
        return [
            (index if isinstance(key, torch.Tensor) else key, part)
            for index, (key, part) in enumerate(value.items())
        ]
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if isinstance(value, set | frozenset):
        return list(enumerate(sorted(value, key=repr)))
    return list(getattr(value, "__dict__", {}).items())


def averages(files, folder):
    train = {"average": {"ema": 0.9}, "clip": 1.0, "schedule": {"type": "plateau", "patience": 0}}
    return set_dropout(make_spec(files, **train, evaluate={"every": 2, "patience": 9}), 0.1)


def accumulation(files, folder):
    optimiser = {"type": "sgd", "lr": 0.1, "momentum": 0.9}
    return set_dropout(make_spec(files, optimiser=optimiser, accumulate=2), 0.1)


def sampled_attention(files, folder):
    return {
        **make_spec(files),
        "extends": "bahdanau-reversal",
        "model": {"decoder": {"attention": {"align": "hard"}}},
        "objective": "reinforce",
    }


def skipped_examples(files, folder):
    return broken_image(folder).spec


def batch_statistics(files, folder):
    spec = broken_image(folder).spec
    size = {"source": {"type": "image", "size": 32}, "target": "label"}
    return {**spec, "extends": "image-small", "model": {"classes": 5}, "preprocessing": size}


def linear_start(files, folder):
    return make_story_spec(folder, linear_start=2, evaluate={"every": 1})


SPECS = [
    averages,
    accumulation,
    sampled_attention,
    skipped_examples,
    batch_statistics,
    linear_start,
]


@pytest.mark.parametrize("make", SPECS, ids=lambda make: make.__name__)
def test_everything_with_state_is_restored(make, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = make(files, tmp_path)
    spec["train"] |= {
        "steps": 5,
        "bad_data": "skip",
        "checkpoints": {"every": 1, "last": 9},
        "log": {"every": 1},
    }
    whole = train(spec, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    for step in (4, 5):
        shutil.rmtree(tmp_path / f"resumed/checkpoints/step-{step:08d}")
    resumed = train(spec, tmp_path / "resumed")
    assert whole.keys() == resumed.keys()
    assert [path for path, value in whole.items() if not _equal(value, resumed[path])] == []


def _equal(first, second):
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    return first == second
