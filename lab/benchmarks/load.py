"""Cost of loading one gigabyte: `zoo.load` against `load_file` of `safetensors`.

Each load runs in a new process, the loaders in turn; the minimum of the runs is shown. Imports and
plugin discovery are not measured. Both loaders map the file: "ready" is the time of the call,
"used" includes summing every weight. "peak" is the memory that loading adds to the process,
including mapped pages. `load_file` returns tensors, `zoo.load` a model. "load_file, model" builds
the spec on the meta device and assigns the tensors of `load_file`, without further checks.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SPECS = {
    "few tensors": (
        "bahdanau-2015",
        [
            "model.source={vocab: 180000, dim: 1000}",
            "model.target={type: token, vocab: 30000, dim: 1000}",
        ],
    ),
    "many tensors": (
        "transformer-big",
        ["model.source={vocab: 75000, dim: 1024}"],
    ),
}
LOAD = """
import json, sys, time
import torch, zoo
from safetensors.torch import load_file
from zoo.artifact import named_tensors
from zoo.registry.component_registry import default_registry
torch.set_num_threads(1)
default_registry()
float(torch.ones(4096).sum())
def memory(row):
    # Not getrusage: a process inherits the peak of its parent.
    with open("/proc/self/status") as status:
        rows = dict(line.split(":", 1) for line in status)
    return int(rows[row].split()[0]) * 1024
def build(path):
    from zoo.artifact import read_header
    from zoo.spec.composition import build_on_meta
    return build_on_meta(zoo.load_spec(read_header(path).spec)).part
before, clock, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
WORK
ready = time.perf_counter() - clock, time.process_time() - cpu
tensors = named_tensors(loaded) if isinstance(loaded, torch.nn.Module) else loaded
with torch.no_grad():
    sum(float(tensor.sum()) for tensor in tensors.values())
used = time.perf_counter() - clock, time.process_time() - cpu
peak = memory("VmHWM") - before
print(json.dumps({"ready": ready, "used": used, "peak": peak}))
"""
LOADERS = {
    "load_file": "loaded = load_file(sys.argv[1])",
    "load_file, model": (
        "loaded = build(sys.argv[1])\n"
        "loaded.load_state_dict(load_file(sys.argv[1]), assign=True, strict=False)"
    ),
    "zoo.load": "loaded = zoo.load(sys.argv[1])",
    "zoo.load, verified": "loaded = zoo.load(sys.argv[1], verify=True)",
    "zoo.load, bfloat16": "loaded = zoo.load(sys.argv[1], dtype='bfloat16')",
}


def measure(file: Path, loader: str) -> dict:
    code = LOAD.replace("WORK", LOADERS[loader])
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tensors", choices=["few", "many"], help="measure only this model")
    parser.add_argument(
        "--cold", action="store_true", help="read from the disk, not from the page cache"
    )
    options = parser.parse_args()
    from zoo.artifact import read_header, save
    from zoo.spec.composition import compose

    for label, (spec, overrides) in SPECS.items():
        if not label.startswith(options.tensors or ""):
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = save(compose(spec, overrides=overrides), Path(folder) / "m.safetensors")
            size, count = file.stat().st_size, len(read_header(file).tensors)
            print(f"{label}: {spec}, {count} tensors, {size / 1e9:.2f} GB")
            report(file, size, options.runs, options.cold)


def report(file: Path, size: int, runs: int, cold: bool) -> None:
    results: dict[str, list[dict]] = {loader: [] for loader in LOADERS}
    for _ in range(runs):
        for loader, rows in results.items():
            if cold:
                _drop_page_cache(file)
            rows.append(measure(file, loader))
    columns = ("ready s", "used s", "x", "used cpu s", "x", "peak / file")
    print(f"  {'':<20}" + "".join(f"{column:>12}" for column in columns))
    base = _best(results["load_file"])
    for loader, rows in results.items():
        ready, used, cpu, peak = _best(rows)
        cells = (ready, used, used / base[1], cpu, cpu / base[2], peak / size)
        print(f"  {loader:<20}" + "".join(f"{cell:>12.3f}" for cell in cells))


def _drop_page_cache(file: Path) -> None:
    """Remove the file from the page cache."""
    fd = os.open(file, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def _best(rows: list[dict]) -> tuple[float, float, float, float]:
    return (
        min(row["ready"][0] for row in rows),
        min(row["used"][0] for row in rows),
        min(row["used"][1] for row in rows),
        min(row["peak"] for row in rows),
    )


if __name__ == "__main__":
    main()
