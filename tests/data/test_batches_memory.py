"""Batches of a file that is larger than the memory of the process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KITS = Path(__file__).parents[1] / "kits"
MEGABYTES = 150
SCRIPT = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from data_kit import LANGUAGE_MODEL, byte_batches, compose
from zoo.spec.training import Batching

compose(LANGUAGE_MODEL["name"])  # imports libraries
used = int(
    next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1]
) * 1024
limit = used + 100 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
batches = byte_batches(sys.argv[2], Batching(items=4, block=1024))
total = batches.updates(0)
for start in (0, total // 2, total - 2):
    for _, update in zip(range(2), batches.epoch(0, start=start)):
        assert update.batches[0]["target"].shape == (4, 1025)
print(total)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA limits mappings on Linux only")
def test_a_file_larger_than_memory(tmp_path):
    line = bytes(range(65, 90)) * 160 + b"\n"
    count = MEGABYTES * 2**20 // len(line)
    with open(tmp_path / "text", "wb") as file:
        for _ in range(count):
            file.write(line)
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(KITS), str(tmp_path / "text")],
        capture_output=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": str(tmp_path),
            "OMP_NUM_THREADS": "1",
        },
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert abs(int(result.stdout) - count * (len(line) + 1) / 4096) < 3
