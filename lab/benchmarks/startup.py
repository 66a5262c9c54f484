"""Time of imports and of short commands, compared with ``import torch``.

Each command runs in a new process. The commands alternate, so that load on the machine affects all
of them; the smallest time of the runs is printed. The index of plugins is built before. Modules are
compiled in the first run, as in an installation, whatever ``PYTHONDONTWRITEBYTECODE`` says.

    python lab/benchmarks/startup.py [RUNS]
"""

import os
import subprocess
import sys
import time

EVERY_NAME = "import zoo; [getattr(zoo, name) for name in zoo.__all__]"
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "import zoo": ["-c", "import zoo"],
    "import torch, zoo": ["-c", "import torch, zoo"],
    "import all public names": ["-c", EVERY_NAME],
    "zoo --version": ["-m", "zoo", "--version"],
    "zoo --help": ["-m", "zoo", "--help"],
    "zoo list": ["-m", "zoo", "list"],
    "zoo show additive": ["-m", "zoo", "show", "additive"],
    "zoo plugins": ["-m", "zoo", "plugins"],
    "zoo catalogue": ["-m", "zoo", "catalogue"],
    "zoo check bahdanau-2015": ["-m", "zoo", "check", "bahdanau-2015"],
    "zoo generate": ["-m", "zoo", "generate", "tatoeba-por-eng-transformer", "Onde fica ?"],
}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-m", "zoo", "list"], check=True, stdout=subprocess.DEVNULL)
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(runs):
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
