"""Cost of saving one gigabyte: `zoo.save` and `write_tensors` against `safetensors`' `save_file`.

Each save runs in a new process; the minimum of the runs is shown. "peak" is the memory that saving
adds to the process, relative to the file size. "files" is the number of different files that five
saves of the same small tensors give. "generated" tensors are computed one at a time, as in an
export, where `save_file` needs all of them at once.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PREPARE = """
import hashlib, json, sys, time
import torch, zoo
from safetensors.torch import save_file
from zoo.artifact import named_tensors
from zoo.artifact.checkpoint import write_tensors
from zoo.interfaces.tensors import TensorMeta
torch.set_num_threads(1)
def memory(row):
    with open("/proc/self/status") as status:
        rows = dict(line.split(":", 1) for line in status)
    return int(rows[row].split()[0]) * 1024
def generated(count, size):
    return ((f"t{n}", torch.full((size,), float(n))) for n in range(count))
metadata = {key: key * 9 for key in ("format", "zoo", "spec", "lock", "provenance", "probe")}
small = dict(generated(4, 10))
path, count, size = sys.argv[1], 100, 2_500_000
def save(tensors):
    metas = {f"t{n}": TensorMeta((len(t),), torch.float32) for n, t in enumerate(tensors.values())}
    write_tensors(path, metas, tensors.items())
"""
MODEL = """
overrides = ["model.source={vocab: 180000, dim: 1000}",
             "model.target={type: token, vocab: 30000, dim: 1000}"]
model = zoo.compose("bahdanau-2015", overrides=overrides)
tensors = {name: t.detach() for name, t in named_tensors(model).items()}
"""
GENERATED = """
metas = {f"t{n}": TensorMeta((size,), torch.float32) for n in range(count)}
"""
CASES = {
    "model: save_file": (MODEL, "save_file(tensors, path, metadata)"),
    "model: zoo.save (with sha256)": (MODEL, "zoo.save(model, path, probe=False)"),
    "generated: save_file": (GENERATED, "save_file(dict(generated(count, size)), path)"),
    "generated: write_tensors": (GENERATED, "write_tensors(path, metas, generated(count, size))"),
}
MEASURE = """
open("/proc/self/clear_refs", "w").write("5")  # resets the peak
before, clock = memory("VmRSS"), time.perf_counter()
SAVE
seconds = time.perf_counter() - clock
print(json.dumps({"seconds": seconds, "peak": memory("VmHWM") - before}))
"""
FILES = """
hashes = set()
for _ in range(5):
    SAVE
    hashes.add(hashlib.sha256(open(path, "rb").read()).hexdigest())
print(json.dumps(len(hashes)))
"""
WRITERS = {"save_file": "save_file(small, path, metadata)", "write_tensors": "save(small)"}


def run(code: str, folder: str) -> dict | int:
    done = subprocess.run(
        [sys.executable, "-c", PREPARE + code, str(Path(folder) / "m.safetensors")],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':<32}{'seconds':>10}{'peak / file':>14}")
        for label, (prepare, save) in CASES.items():
            code = prepare + MEASURE.replace("SAVE", save)
            rows = [run(code, folder) for _ in range(options.runs)]
            size = (Path(folder) / "m.safetensors").stat().st_size
            seconds, peak = (min(row[key] for row in rows) for key in ("seconds", "peak"))
            print(f"{label:<32}{seconds:>10.2f}{peak / size:>14.3f}")
        for label, save in WRITERS.items():
            print(f"{label}: {run(FILES.replace('SAVE', save), folder)} files from 5 saves")


if __name__ == "__main__":
    main()
