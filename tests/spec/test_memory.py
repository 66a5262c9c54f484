"""Models that are larger than the memory are rejected before anything is allocated."""

import sys
from pathlib import Path

import pytest
import torch
from training_kit import make_spec, write_files

import zoo
import zoo.plugin
from zoo.spec.memory import (
    VARIABLE,
    available_bytes,
    check_training_memory,
    host_bytes,
    model_bytes,
    tensor_bytes,
)

CPU = torch.device("cpu")
SPEC = "bahdanau-reversal"


@pytest.fixture
def model():
    return zoo.compose(SPEC)


def test_compose_names_both_sizes(model, monkeypatch):
    needed = model_bytes(model)
    monkeypatch.setenv(VARIABLE, str(needed))
    zoo.compose(SPEC)
    zoo.compose(SPEC, dtype="bfloat16")
    monkeypatch.setenv(VARIABLE, str(needed - 1))
    with pytest.raises(zoo.ZooError, match=rf"'{SPEC}' needs .* kB of memory .* but .* kB are"):
        zoo.compose(SPEC)


def test_load_counts_the_requested_dtype(model, monkeypatch, tmp_path):
    path = zoo.save(model, tmp_path / "model.safetensors")
    needed = model_bytes(model)
    monkeypatch.setenv(VARIABLE, str(needed))
    zoo.load(path)
    with pytest.raises(zoo.ZooError, match=rf"{path.name} needs .* of memory .* are available"):
        zoo.load(path, dtype="float64")
    monkeypatch.setenv(VARIABLE, str(needed - 1))
    with pytest.raises(zoo.ZooError, match=rf"{path.name} needs .* of memory .* are available"):
        zoo.load(path)
    zoo.load(path, dtype="bfloat16")


@pytest.mark.parametrize(
    ("optimiser", "average", "copies"),
    [("sgd", None, 2), ("adam", None, 4), ("adam", {"ema": 0.9}, 5)],
)
def test_train_counts_gradients_optimiser_and_average(
    optimiser, average, copies, monkeypatch, tmp_path
):
    options = {} if average is None else {"average": average}
    spec = make_spec(
        write_files(tmp_path), optimiser={"type": optimiser, "lr": 0.01}, steps=1, **options
    )
    weights = model_bytes(zoo.compose(spec))
    small = 2_000  # the counters of the optimiser, and buffers
    monkeypatch.setenv(VARIABLE, str(copies * weights - small))
    with pytest.raises(zoo.ZooError, match=r"training 'tiny-reversal' \(weights .* are available"):
        zoo.train(spec, output=tmp_path / "run", device="cpu")
    monkeypatch.setenv(VARIABLE, str(copies * weights + small))
    zoo.train(spec, output=tmp_path / "other", device="cpu")


def test_an_optimiser_that_needs_values_is_not_counted(monkeypatch):
    model = torch.nn.Linear(2, 2, device="meta")

    def build():
        raise RuntimeError(f"no value: {model.weight.sum().item()}")

    monkeypatch.setenv(VARIABLE, "0")
    with pytest.raises(zoo.ZooError, match="gradients 24 B, optimiser 0 B"):
        check_training_memory("x", model, build, CPU)


def test_an_invalid_variable_raises(monkeypatch):
    monkeypatch.setenv(VARIABLE, "8GB")
    with pytest.raises(zoo.ZooError, match="ZOO_MEMORY is '8GB'; expected a number of bytes"):
        available_bytes(CPU)


@pytest.fixture
def few_gigabytes():
    """Limits the address space of the process."""
    resource = pytest.importorskip("resource")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * 10**9, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_limit_of_the_process_is_respected(few_gigabytes):
    zoo.compose(SPEC)
    with pytest.raises(zoo.ZooError, match=r"'llama-7b' needs 27.0 GB of memory on device 'cpu'"):
        zoo.compose("llama-7b")


MEMINFO = "MemTotal: 64 kB\nMemAvailable: 32 kB\nSwapFree: 4 kB\n"
V2 = {"memory.max": "20480", "memory.current": "12288", "memory.stat": "inactive_file 4096\n"}
V1 = {
    "memory.limit_in_bytes": "16384",
    "memory.usage_in_bytes": "8192",
    "memory.stat": "total_active_file 1024\n",
}


def _write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_memory_of_a_machine_and_of_containers(tmp_path):
    assert host_bytes(tmp_path) is None
    _write(tmp_path, {"proc/meminfo": MEMINFO})
    assert host_bytes(tmp_path) == (32 + 4) * 1024
    _write(tmp_path, {"proc/self/cgroup": "0::/job/step\n"})
    _write(tmp_path / "sys/fs/cgroup/job", V2)
    _write(tmp_path / "sys/fs/cgroup/job/step", {"memory.max": "max", "memory.current": "1"})
    assert host_bytes(tmp_path) == (20 - 12 + 4 + 4) * 1024
    _write(tmp_path, {"proc/self/cgroup": "4:memory:/outside\n1:cpu:/\n0::/\n"})
    _write(tmp_path / "sys/fs/cgroup/memory", V1)
    assert host_bytes(tmp_path) == (16 - 8 + 1 + 4) * 1024
    _write(tmp_path / "sys/fs/cgroup/memory", {"memory.limit_in_bytes": "9223372036854771712"})
    assert host_bytes(tmp_path) == (32 + 4) * 1024  # as without a limit


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"proc/self/cgroup": "\nno colons\n1:\n0::/a\u2028b\n0::/\0\n0::/\n"}, 8192),
        ({"proc/meminfo": "MemTotal: 0 kB\nMemAvailable: 32 kB\n"}, 8192),
        ({"sys/fs/cgroup/memory.max": "9" * 5000}, 32768),
        ({"sys/fs/cgroup/memory.max": "many"}, 32768),
        ({"sys/fs/cgroup/memory.current": "9" * 5000}, 32768),
        ({"proc/meminfo": f"MemAvailable: {'9' * 5000} kB\n"}, None),
    ],
    ids=["groups", "no total", "long limit", "no number", "long usage", "long total"],
)
def test_malformed_files_of_the_system_are_passed_over(tmp_path, files, free):
    _write(tmp_path, {"proc/meminfo": "MemTotal: 64 kB\nMemAvailable: 32 kB\n"})
    _write(tmp_path, {"proc/self/cgroup": "0::/\n"})
    _write(tmp_path / "sys/fs/cgroup", {"memory.max": "16384", "memory.current": "8192"})
    _write(tmp_path, files)
    assert host_bytes(tmp_path) == free


def test_sparse_tensors_count_as_dense_ones():
    assert tensor_bytes([torch.eye(3).to_sparse(), torch.ones(2, dtype=torch.int8)]) == 38


@pytest.mark.gpu
def test_memory_of_a_gpu(monkeypatch):
    before, _ = torch.cuda.mem_get_info()
    available = available_bytes(torch.device("cuda"))
    after, _ = torch.cuda.mem_get_info()  # other processes use the device too
    assert available >= min(before, after)
