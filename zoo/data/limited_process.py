"""Calls of a function in processes with limits of time and memory.

For functions whose work depends on a file of a third party, such as a chat template: Python cannot
interrupt them in its own process. A process that exceeds a limit ends, and the next call starts
another one.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from zoo.data.limited_worker import OUT_OF_MEMORY, OUT_OF_TIME
from zoo.errors import ZooError, one_line
from zoo.files import os_error_message

MAX_SECONDS = 1.0
MAX_MEMORY = 200_000_000
MAX_RESULT = 8_000_000
"""Bytes. A million bytes of arguments add a second, 16 MB of memory and 8 MB of the result."""
_START = "import sys; sys.path += sys.argv[2:]; from zoo.data.limited_worker import main; main()"
_VARIABLES = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TZ")
"""What a process gets of the environment, which can contain secrets."""


class LimitedFunction:
    """A function that runs in processes of its own.

    Processes are kept for further calls. A call takes one that no other call uses, so threads do
    not wait for each other. A forked process starts its own.

    Args:
        factory: module and name of what returns the function, such as
            "zoo.data.template_sandbox:Renderer". The module must be quick to import.
        libraries: the packages that the module needs.
        max_seconds: limit of time of a call with few arguments.
    """

    def __init__(
        self, factory: str, libraries: Sequence[str], *, max_seconds: float = MAX_SECONDS
    ) -> None:
        self.max_seconds = max_seconds
        self._factory, self._libraries = factory, libraries
        self._idle: deque[_Process] = deque()

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Return the result of the function. Arguments and result are values of JSON.

        Raises:
            ZooError: with the message of an exception of the function, or with the limit that the
                call exceeds, as in "takes longer than 1.0 seconds".
        """
        encoded = json.dumps(arguments).encode()
        limits = {
            "seconds": self.max_seconds + len(encoded) / 1_000_000,
            "memory": MAX_MEMORY + 16 * len(encoded),
            "result": MAX_RESULT + 8 * len(encoded),
        }
        process = self._idle_process() or _Process(self._factory, self._libraries)
        try:
            reply = process.exchange(json.dumps(limits).encode() + b"\n" + encoded + b"\n")
        except BaseException:  # Ctrl-C
            process.end()
            raise
        if reply is None:
            exceeded = {
                OUT_OF_TIME: f"takes longer than {limits['seconds']:.1f} seconds",
                OUT_OF_MEMORY: f"takes more than {limits['memory'] // 1_000_000:,} MB of memory",
            }
            code = process.exit_code()
            raise ZooError(exceeded.get(code, f"crashes (exit code {code})"))
        self._idle.append(process)
        if "error" in reply:
            raise ZooError(one_line(reply["error"]))
        return reply["result"]

    def _idle_process(self) -> _Process | None:
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return None
            if process.is_usable():
                return process


class _Process:
    def __init__(self, factory: str, libraries: Sequence[str]) -> None:
        specs = [find_spec(name) for name in ("zoo", *libraries)]
        folders = dict.fromkeys(str(Path(s.origin).parents[1]) for s in specs if s and s.origin)
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, factory, *folders],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # a fork would copy a buffer
                cwd=sys.prefix,
                env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
                start_new_session=True,  # without Ctrl-C
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise ZooError(f"cannot start a process: {os_error_message(error)}") from None
        self._owner = os.getpid()
        self.end = weakref.finalize(self, _end, self._popen, self._owner)
        self._requests = cast(io.RawIOBase, self._popen.stdin)
        self._replies = io.BufferedReader(cast(io.RawIOBase, self._popen.stdout), 2**16)
        if self.exchange(b"") is None:
            raise ZooError(f"cannot start a process: exit code {self.exit_code()}")

    def is_usable(self) -> bool:
        """Return whether this process started it, and it runs."""
        return self._owner == os.getpid() and self._popen.poll() is None

    def exchange(self, request: bytes) -> dict[str, Any] | None:
        """Return the reply to a request, None if the process ends without one."""
        rest = memoryview(request)
        try:
            while rest:
                rest = rest[self._requests.write(rest) or 0 :]
            line = self._replies.readline()
        except OSError:  # a broken pipe
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def exit_code(self) -> int:
        return self._popen.wait()


def _end(popen: subprocess.Popen[bytes], owner: int) -> None:
    """Kill a process; in a fork of the one that started it, do nothing."""
    if owner == os.getpid():
        popen.kill()
        popen.wait()
    else:
        popen.poll()  # without it, `popen` warns that the process runs
    for pipe in (popen.stdin, popen.stdout):
        assert pipe is not None
        pipe.close()
