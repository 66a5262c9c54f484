"""Parsing of safetensors headers: `zoo.artifact` against `safe_open` of `safetensors`.

Prints the time and memory for a header of 76 MB that lists 1.3 million tensors, and whether each
accepts headers with repeated keys and names that are not printable. The last rows are headers of
12 MB that took seconds, minutes or gigabytes in earlier versions.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ENTRY = '"%s":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
HEADERS = {
    "1.3 million tensors": "{" + ",".join(ENTRY % f"t{n}" for n in range(1_300_000)) + "}",
    "repeated tensor": "{" + ENTRY % "a" + "," + ENTRY % "a" + "}",
    "repeated metadata": '{"__metadata__":{"a":"1","a":"2"},' + ENTRY % "a" + "}",
    "escape sequence in a name": "{" + ENTRY % "\\u001b[2J" + "}",
    "12 MB of lists": "[" + "[]," * 4_000_000 + "0]",
    "6 million levels": "[" * 6_000_000,
    "one of 900,000 keys repeated": "{" + "".join(f'"{n}":0,' for n in range(900_000)) + '"0":0}',
    "string without an end": '"' + '\\"' * 6_000_000,
}
OPEN = """
import json, sys, time
from pathlib import Path
from safetensors import SafetensorError, safe_open
from zoo.artifact.mapped_file import MappedFile
from zoo.errors import ArtifactError
def memory(row):
    with open("/proc/self/status") as status:
        rows = dict(line.split(":", 1) for line in status)
    return int(rows[row].split()[0]) * 1024
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before, clock, result = memory("VmRSS"), time.perf_counter(), "accepted"
try:
    opened = OPENER
except (ArtifactError, SafetensorError):
    result = "rejected"
seconds = time.perf_counter() - clock
print(json.dumps([result, seconds, (memory("VmHWM") - before) / 1e6]))
"""
OPENERS = {
    "safe_open": 'safe_open(sys.argv[1], framework="pt").keys()',
    "zoo": "MappedFile(Path(sys.argv[1]))",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.safetensors"
        for label, text in HEADERS.items():
            header = text.encode() + b" " * (-len(text) % 8)
            file.write_bytes(len(header).to_bytes(8, "little") + header)
            for name, opener in OPENERS.items():
                command = [sys.executable, "-c", OPEN.replace("OPENER", opener), str(file)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                result, seconds, peak = json.loads(done.stdout)
                print(f"{label:<28}{name:<12}{result:<10}{seconds:>8.2f} s{peak:>8.0f} MB")


if __name__ == "__main__":
    main()
