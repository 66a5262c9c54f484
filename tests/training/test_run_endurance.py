"""Long runs in child processes: memory that stays constant, and files larger than memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from training_kit import ROOT, make_spec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the memory in use from /proc"),
]

FLAT = """
import json, sys, torch, zoo
from zoo.training.callback import Callback

torch.set_num_threads(1)

class Memory(Callback):
    def on_step(self, step):
        if step % 1000 == 0:
            pages = int(open("/proc/self/statm").read().split()[1])
            print(step, pages * 4096, flush=True)

spec, output = sys.argv[1:]
zoo.train(json.loads(spec), output=output, device="cpu", callbacks=[Memory()])
"""

LIMITED = """
import json, os, resource, sys, torch, zoo
from zoo.data import token_cache

torch.set_num_threads(1)
token_cache.MAX_IN_MEMORY = 2**18  # the tokens of a file of several gigabytes, in small
spec, small, large, output, memory = sys.argv[1:]

def train(file, name):
    data = f"train.data.files={file}"
    return zoo.train(json.loads(spec), output=f"{output}/{name}", device="cpu", overrides=[data])

train(small, "small")  # imports libraries
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = int(status["VmData"].split()[0]) * 1024 + int(memory)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    bytearray(os.path.getsize(large))
except MemoryError:
    print("limited")
print(train(large, "large").step)
"""

LANGUAGE_MODEL = {
    "zoo": 1,
    "name": "limited",
    "model": {
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 24, "dim": 8},
        "decoder": {"type": "plain-rnn", "hidden": 8, "init": "zeros"},
    },
    "objective": "cross-entropy",
    "train": {
        "data": {"type": "plain-text", "files": "set by the script"},
        "optimiser": {"type": "adamw", "lr": 1e-3},
        "batch": {"items": 4, "block": 16},
        "steps": 20,
    },
}


def _run(script, *arguments, cache):
    path = os.pathsep.join(map(str, (ROOT, ROOT / "plugins")))
    result = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
            "XDG_CACHE_HOME": str(cache),
            "TMPDIR": str(cache),
        },
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.splitlines()


def test_memory_is_constant_over_10000_steps(files, tmp_path):
    spec = make_spec(
        files,
        steps=10_000,
        average={"ema": 0.99},
        checkpoints={"every": 250, "last": 2},
        evaluate={"every": 500},
        log={"every": 10},
    )
    lines = _run(FLAT, json.dumps(spec), tmp_path / "run", cache=tmp_path)
    used = {int(step): int(size) for step, size in map(str.split, lines)}
    assert list(used) == list(range(1000, 10_001, 1000))
    assert used[10_000] - used[2000] < 4 * 2**20, used


def test_training_from_a_file_larger_than_memory(tmp_path):
    memory, words = 40 * 2**20, [letter * 60 for letter in "abcdefghijklmnopqrst"]
    line = " ".join(words) + "\n"
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    small.write_text(line * 10)
    with open(large, "w") as file:
        for _ in range(2 * memory // len(line)):
            file.write(line)
    assert large.stat().st_size > 1.9 * memory
    tokenizer = tmp_path / "words.json"
    _write_tokenizer(tokenizer, words)
    text = {"type": "text", "tokenizer": str(tokenizer)}
    spec = {**LANGUAGE_MODEL, "preprocessing": {"target": text}}
    lines = _run(LIMITED, json.dumps(spec), small, large, tmp_path, memory, cache=tmp_path)
    assert lines == ["limited", "20"]


def _write_tokenizer(path: Path, words: list[str]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    special = ["<pad>", "<bos>", "<eos>", "<unk>"]
    vocabulary = {word: index for index, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(path))
