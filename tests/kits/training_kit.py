"""A small translation task: files, specs, and training in child processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

import zoo
from zoo.artifact.checkpoint import open_tensors
from zoo.training.callback import Callback

ROOT = Path(__file__).parents[2]
LETTERS = "abcdefgh"


def write_tokenizer(path: Path, words: Iterable[str]) -> None:
    """Write a tokenizer of words between spaces."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {w: index for index, w in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(path))


def write_files(folder: Path) -> Path:
    """Write a tokenizer, training and validation texts: letters and their reversal."""
    write_tokenizer(folder / "words.json", LETTERS)
    rng = random.Random(0)
    for split, count in (("train", 60), ("validation", 10)):
        rows = [[rng.choice(LETTERS) for _ in range(rng.randint(2, 6))] for _ in range(count)]
        for side, step in (("source", 1), ("target", -1)):
            lines = "".join(" ".join(row[::step]) + "\n" for row in rows)
            (folder / f"{split}.{side}").write_text(lines)
    return folder


def make_spec(folder: Path, **train: Any) -> dict[str, Any]:
    """Return a spec that trains a tiny Transformer on the files; ``train`` replaces settings."""

    def texts(split: str) -> dict[str, str]:
        sides = {side: str(folder / f"{split}.{side}") for side in ("source", "target")}
        return {"type": "parallel-text", **sides}

    text = {"type": "text", "tokenizer": str(folder / "words.json")}
    return {
        "zoo": 1,
        "name": "tiny-reversal",
        "extends": "transformer-tiny",
        "model": {"encoder": {"layers": 1}, "decoder": {"layers": 1}},
        "metrics": [],
        "preprocessing": {"source": text, "target": text},
        "train": {
            "data": texts("train"),
            "validation": texts("validation"),
            "optimiser": {"type": "adam", "lr": 0.01},
            "batch": {"items": 8},
            "steps": 12,
            "log": {"every": 5},
            **train,
        },
    }


def make_story_spec(folder: Path, *, linear_start: bool | int, **train: Any) -> dict[str, Any]:
    """Write stories, and return a spec that trains a memory network to answer questions."""
    write_tokenizer(folder / "story-words.json", [*LETTERS, "at", "where"])
    rng = random.Random(0)
    for split, count in (("train", 32), ("validation", 12)):
        lines = []
        for _ in range(count):
            places = {who: rng.choice(LETTERS[4:]) for who in rng.sample(LETTERS[:4], 2)}
            lines += [f"{i} {who} at {places[who]}" for i, who in enumerate(places, 1)]
            who = rng.choice(list(places))
            lines.append(f"3 where {who}\t{places[who]}\t1")
        (folder / f"{split}.stories").write_text("".join(f"{line}\n" for line in lines))
    text = {"type": "text", "tokenizer": str(folder / "story-words.json")}
    data = {
        key: {"type": "stories", "files": str(folder / f"{split}.stories"), "target": "text"}
        for key, split in (("data", "train"), ("validation", "validation"))
    }
    return {
        "zoo": 1,
        "name": "tiny-stories",
        "extends": "memory-network-tiny",
        "model": {"linear_start": linear_start},
        "preprocessing": {
            "story": {**text, "type": "text-list"},
            "question": text,
            "target": text,
        },
        "train": {
            **data,
            "optimiser": {"type": "adam", "lr": 0.01},
            "batch": {"items": 8},
            "steps": 6,
            **train,
        },
    }


class Messages(Callback):
    """Collects the messages of a run in `texts`."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_message(self, text: str) -> None:
        self.texts.append(text)


class Stop(Callback):
    """Ends the run after a step, as if it was killed."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, step: int) -> None:
        if step == self.step:
            raise KeyboardInterrupt


def set_dropout(spec: dict[str, Any], probability: float) -> dict[str, Any]:
    """Return a spec with dropout in encoder and decoder."""
    parts = {key: {**part, "dropout": probability} for key, part in spec["model"].items()}
    return {**spec, "model": parts}


def weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a file."""
    reader = open_tensors([path])
    return {name: reader.read(name).clone() for name in reader.metas}


def assert_equal_weights(first: Path, second: Path) -> None:
    """Assert that two files have the same tensors, bit for bit."""
    a, b = weights(first), weights(second)
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of the log without what depends on time."""
    timed = {"seconds", "tokens_per_second"}
    lines = (folder / "log.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return [{key: v for key, v in entry.items() if key not in timed} for entry in entries]


def _train(spec: dict[str, Any], output: Path, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)
    zoo.train(spec, output=output, resume=True, device="cpu")


def start_server() -> Any:
    """Start the process that is forked by `start_training`, so that imports are done once."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["training_kit", "accelerate", "zoo.training.run"])
    process = context.Process(target=int)
    process.start()
    process.join()
    return context


def start_training(spec: dict[str, Any], output: Path, **environment: str) -> Any:
    """Start a process that trains or resumes."""
    context = start_server()
    process = context.Process(target=_train, args=(spec, output, environment))
    process.start()
    return process


def torchrun(script: Path, *arguments: object, processes: int = 2) -> subprocess.Popen[str]:
    """Start a script in several processes that communicate over gloo."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "plugins", ROOT / "tests" / "kits")))
    return subprocess.Popen(
        [
            sys.executable,
            *("-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(processes), str(script), *map(str, arguments)),
        ],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
