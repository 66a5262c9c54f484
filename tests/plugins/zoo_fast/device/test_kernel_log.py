"""Log records of kernels that are compiled, here for a GPU that this machine does not have."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from kits.thread_kit import run_in_threads

from zoo_fast.device.kernel_log import log_compiled_kernels

PROGRAM = """
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from zoo.cli.verbosity import configure_output, set_verbosity
from zoo_fast.device.column_sums_triton import sum_blocks
from zoo_fast.device.kernel_log import log_compiled_kernels

knobs.compilation.listener = lambda src, cache_hit, **more: print(src.name, cache_hit)
log_compiled_kernels()
log_compiled_kernels()

@triton.jit
def another(x_ptr):
    triton.language.store(x_ptr, 0.0)

def compile(function, **types):
    constants = {name: 16 for name, kind in types.items() if kind == "constexpr"}
    source = ASTSource(function, types, constants)
    triton.compile(source, target=GPUTarget("cuda", 90, 32))

configure_output()
set_verbosity(verbose=True, quiet=False)
sums = {"x_ptr": "*fp32", "partial_ptr": "*fp32", "N": "i32", "C": "i32"}
for _ in range(2):
    compile(sum_blocks, **sums, ROWS="constexpr", COLUMNS="constexpr")
compile(another, x_ptr="*fp32")
"""


def test_a_kernel_is_logged_when_it_is_compiled_but_not_when_it_is_found(tmp_path):
    pytest.importorskip("triton")
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    env["TRITON_CACHE_DIR"] = str(tmp_path / "cache")

    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    # The listener that was there before gets all kernels.
    assert done.stdout == "sum_blocks False\nsum_blocks True\nanother False\n"
    (record,) = done.stderr.splitlines()
    assert record.startswith("info: compiled the kernel sum_blocks in ")
    assert record.endswith(" s, once for this machine")


@pytest.fixture
def count_records():
    """A function that returns how many records a compiled kernel has."""
    knobs = pytest.importorskip("triton.knobs")
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("zoo.fast")
    level = logger.level

    def count():
        records.clear()
        source = SimpleNamespace(name="sums", fn=log_compiled_kernels)  # of this package
        if knobs.compilation.listener is not None:
            knobs.compilation.listener(
                src=source, times=SimpleNamespace(total=0), cache_hit=False, metadata={}
            )
        return len(records)

    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    with knobs.compilation.scope():
        knobs.compilation.listener = None
        yield count
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_listener_that_ended_with_its_scope_is_installed_again(count_records):
    from triton import knobs

    with knobs.compilation.scope():
        log_compiled_kernels()
        assert count_records() == 1
    assert count_records() == 0
    for _ in range(2):
        log_compiled_kernels()
        assert count_records() == 1


def test_threads_install_one_listener(count_records):
    from triton import knobs

    for _ in range(20):
        knobs.compilation.listener = None
        run_in_threads([log_compiled_kernels] * 4, times=2)
        assert count_records() == 1
