"""`zoo check` of a spec with 70 billion parameters: how long, and how much memory."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
zoo: 1
name: seventy-billion
model:
  type: seq2seq
  source: {type: token, vocab: 128000, dim: 16384}
  encoder: {type: lstm, hidden: 16384, layers: 15}
  decoder:
    type: luong-rnn
    hidden: 16384
    layers: 15
    init: copy
    attention: {scorer: general, align: soft, heads: 32}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spec.yaml"
        path.write_text(SPEC)
        command = [sys.executable, "-m", "zoo", "check", str(path), "--json"]
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        report = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
    print(f"exit status     {os.waitstatus_to_exitcode(status)}")
    print(f"parameters      {report['parameters']:,}")
    print(f"seconds         {seconds:.2f}")
    print(f"peak memory     {usage.ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
