"""Functions run in a child process with limits on CPU time and memory."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

CPU_SECONDS = 5
MAX_MEMORY = 500_000_000

Task = Callable[[], str]
"""Returns a problem, or an empty string."""


def supports_limits() -> bool:
    """Return whether this system can run functions with limits: Linux."""
    return sys.platform == "linux"


def run_with_limits(tasks: Sequence[Task], *, cpu_seconds: int = CPU_SECONDS) -> list[str]:
    """Run each task in a child process and return its problem, an empty string if there is none.

    A task that takes more than `cpu_seconds` of CPU time or `MAX_MEMORY` bytes more than this
    process has a problem. The limits are those of the operating system, so that they also hold
    inside of libraries.
    """
    problems: list[str] = []
    while len(problems) < len(tasks):
        read_end, write_end = os.pipe()
        with warnings.catch_warnings():
            # The child uses a single thread.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(read_end)
            _run_in_child(tasks[len(problems) :], write_end, cpu_seconds)
        os.close(write_end)
        with open(read_end, encoding="utf-8") as pipe:
            problems += [json.loads(line) for line in pipe if line.endswith("\n")]
        status = os.waitpid(child, 0)[1]
        if len(problems) < len(tasks):
            problems.append(_describe(os.waitstatus_to_exitcode(status), cpu_seconds))
    return problems


def _run_in_child(tasks: Sequence[Task], write_end: int, cpu_seconds: int) -> Any:
    """Run the tasks, write the problem of each as a line of JSON, and exit."""
    try:
        import torch

        torch.set_num_threads(1)  # threads of the parent do not exist here
        for task in tasks:
            start = _set_limits(cpu_seconds)
            problem = task()
            grown = _memory("VmHWM") - start
            if not problem and grown > MAX_MEMORY:
                problem = f"takes {grown / 1e6:,.0f} MB of memory"
            os.write(write_end, (json.dumps(problem) + "\n").encode())
    finally:
        os._exit(0)


def _set_limits(cpu_seconds: int) -> int:
    """Set the limits of the next task and return the memory in use."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + cpu_seconds, hard))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    # Libraries that are imported take addresses, but not memory.
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + 2 * MAX_MEMORY, hard))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets VmHWM, the peak
    return _memory("VmRSS")


def _memory(key: str) -> int:
    with open("/proc/self/status", encoding="utf-8") as file:
        line = next(line for line in file if line.startswith(key))
    return 1024 * int(line.split()[1])


def _describe(exit_code: int, cpu_seconds: int) -> str:
    if exit_code == -signal.SIGXCPU:
        return f"takes more than {cpu_seconds} s of CPU time"
    return f"ends the process with exit code {exit_code}"
