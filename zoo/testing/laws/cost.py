"""The law of bounded cost, of all kinds."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from zoo.interfaces import KINDS
from zoo.interfaces.signature import Parameter, parameters
from zoo.registry.work_limit import WorkLimit
from zoo.spec.meta import skip_dynamo_import
from zoo.testing.configuration import Configuration, small_params
from zoo.testing.law import Law, NotApplicable

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


HUGE = 10**10
_MAX_OPERATIONS = 20_000
_FORMS: tuple[Any, ...] = (HUGE, [HUGE], [HUGE, HUGE], {"a": HUGE})


def bounded_cost_law(laws: Sequence[Law]) -> Law:
    """Return the law of bounded cost of a kind; `laws` are those that run its components."""

    def bounded_cost(config: Configuration) -> None:
        """If any integer parameter is 10**10, the component raises an error, or is built and runs
        without work or memory in proportion to it."""
        if not supports_limits():
            raise NotApplicable("limits of processes need Linux")
        config.build()  # raises if a library is not installed
        variants = list(huge_params(config.cls, config.params))
        tasks = [
            partial(_cost_problem, replace(config, params=params, overrides={}), laws)
            for _, params in variants
        ]
        for (path, _), problem in zip(variants, run_with_limits(tasks), strict=True):
            assert not problem, f"{path}={HUGE}: {problem}"

    return Law("bounded-cost", bounded_cost, per_class=True)


def huge_params(cls: type, base: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield, for each integer in the parameters of a part, its path and the parameters with 10**10
    in its place. Parts in slots that are not components are included."""
    for parameter in parameters(cls):
        name = parameter.name
        if parameter.from_parent:
            continue
        if parameter.slot is None:
            for index, value in enumerate(_huge_values(parameter, base.get(name))):
                yield (f"{name} ({index + 1})" if index else name), {**base, name: value}
        elif parameter.slot.target not in KINDS.values():
            slot = parameter.slot
            inner = slot.parts(base.get(name)) or [small_params(slot.target)]
            for path, params in huge_params(slot.target, inner[0]):
                yield f"{name}.{path}", {**base, name: slot.value(params)}


def _huge_values(parameter: Parameter, base: Any) -> Iterator[Any]:
    """Yield the value with each of its integers replaced, or valid values with a huge integer."""
    if '"integer"' not in str(parameter.json_schema()).replace("'", '"'):
        return
    given = parameter.default if base is None else base
    if isinstance(given, (list, tuple)):
        for index, item in enumerate(given):
            if type(item) is int:
                yield [*given[:index], HUGE, *given[index + 1 :]]
    else:
        valid = [form for form in _FORMS if not parameter.validate(form)]
        yield from valid or [HUGE]


def _cost_problem(config: Configuration, laws: Sequence[Law]) -> str:
    """Run the first law that applies, on the meta device and on the CPU, within limits."""
    messages = []
    # Models are checked on the meta device before they are built.
    for device in ("cpu",) if config.cls.kind == "model" else ("meta", "cpu"):
        limit = WorkLimit(max_operations=_MAX_OPERATIONS)
        try:
            with skip_dynamo_import(), torch.device(device), limit:
                _run_first(config, laws)
        except Exception as error:  # a rejected value, or a law that needs the values of tensors
            messages.append(f"{type(error).__name__}: {error}")
        if limit.operations >= limit.max_operations:
            return f"needs more than {limit.max_operations:,} operations"
    return "takes memory in proportion to it" if "MemoryError" in str(messages) else ""


def _run_first(config: Configuration, laws: Sequence[Law]) -> None:
    for law in laws:
        try:
            law.run(config)
        except NotApplicable:
            continue
        return
