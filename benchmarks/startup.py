"""What it costs to start: imports against torch's, and the command line before any work.

Each command runs in a fresh process, the commands in turn, so that a busy moment of the machine
falls on all alike; the smallest of the runs counts.
"""

import subprocess
import sys
import time

RUNS = 9
EVERY_NAME = "import zoo; [getattr(zoo, name) for name in zoo.__all__]"
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "import zoo": ["-c", "import zoo"],
    "import torch, zoo": ["-c", "import torch, zoo"],
    "import every public name": ["-c", EVERY_NAME],
    "zoo --help": ["-m", "zoo", "--help"],
    "zoo --version": ["-m", "zoo", "--version"],
}


def main() -> None:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(RUNS):
        for name, arguments in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            best[name] = min(best[name], time.perf_counter() - started)
    torch = best["import torch"]
    print(f"{'command':<26}{'seconds':>9}{'x torch':>9}")
    for name, seconds in best.items():
        print(f"{name:<26}{seconds:>9.3f}{seconds / torch:>9.2f}")


if __name__ == "__main__":
    main()
