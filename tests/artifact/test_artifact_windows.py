"""Saving and loading with the file functions of Windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from windows_kit import run_as_windows

SCRIPT = """
import gc, os, sys, torch, zoo
from pathlib import Path
folder = Path(sys.argv[1])
models = [zoo.compose("bahdanau-reversal", seed=seed) for seed in (0, 1)]

def check(path, model):
    loaded = zoo.load(path, verify=True)
    state = model.state_dict()
    assert all(torch.equal(t, state[name]) for name, t in loaded.state_dict().items())
    return loaded

file = folder / "m.safetensors"
for model in models:
    zoo.save(model, file)
    check(file, model)
loaded = zoo.load(file)
try:
    zoo.save(models[0], file)
except zoo.ArtifactError as error:
    print(error)
check(file, models[1])
del loaded
gc.collect()
zoo.save(models[0], file)
check(file, models[0])

shards = folder / "shards"
zoo.save(models[0], shards, shard_bytes="100kB")
loaded = check(shards, models[0])
zoo.save(models[1], shards, shard_bytes="100kB")
check(shards, models[1])
del loaded
gc.collect()
zoo.save(models[0], shards, shard_bytes="100kB")
check(shards, models[0])
print(sorted(os.listdir(folder)), len(os.listdir(shards)))
"""


@pytest.mark.slow
def test_save_load_and_replace(tmp_path: Path) -> None:
    imports = (
        "import torch, zoo, zoo.cli.main\nzoo.save, zoo.load, zoo.compose('bahdanau-reversal')"
    )
    lines = run_as_windows(SCRIPT, tmp_path, imports=imports).splitlines()
    reason = "permission denied; the existing file is unchanged"
    assert lines == [
        f"{tmp_path}/m.safetensors could not be written: {reason}",
        "['m.safetensors', 'shards'] 4",
    ]
