"""Damaged artifacts raise ArtifactError, or load unchanged."""

from __future__ import annotations

import json
import random
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from artifact_kit import REGISTRY, TIED, all_tensors, assert_same_bits

from zoo.artifact import load, read_header, save, verify
from zoo.artifact.layout import decode_header
from zoo.errors import ArtifactError, ZooWarning
from zoo.interfaces import Model
from zoo.spec.composition import compose

MAX_SECONDS = 5.0
"""Maximum CPU time for one file."""

STEPS = ["header", "hashes", "spec", "probe"]

Damage = Callable[[bytes, bytes, random.Random], bytes]


def header_end(data: bytes) -> int:
    return min(len(data), 8 + int.from_bytes(data[:8], "little"))


def flip_bits(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Flip bits in the length, the header or the weights."""
    end = header_end(data)
    low, high = rng.choice([(0, 8), (8, end), (8, end), (end, len(data)), (0, len(data))])
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        damaged[rng.randrange(low, max(high, low + 1)) % len(damaged)] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def cut_bytes(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Remove the end or a part of the file."""
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return rng.choice([data[:a], data[:a] + data[b:], data[: -rng.randrange(1, 40)]])


def splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Insert or overwrite bytes of this file, another artifact or noise."""
    source = rng.choice([data, other, rng.randbytes(64), b"\0" * 64, b'{"' * 32])
    start = rng.randrange(len(source))
    piece = source[start : start + rng.randrange(1, 200)]
    at = rng.randrange(len(data))
    return data[:at] + piece + data[rng.choice([at, at + len(piece)]) :]


def mix_files(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Combine the header of one artifact with the weights of another."""
    mixed = data[: header_end(data)] + other[header_end(other) :]
    return mixed if mixed != data else flip_bits(data, other, rng)


def edit_json(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Remove, rename, repeat, swap or change values of the JSON header."""
    is_index = data[:1] == b"{"
    end = len(data) if is_index else header_end(data)
    table = json.loads(data[:end] if is_index else data[8:end])
    for _ in range(rng.choice([1, 1, 2, 4])):
        change(table, rng)
    text: Any = json.dumps(table, ensure_ascii=rng.random() < 0.5)
    text = text.encode(errors="surrogatepass")
    if rng.random() < 0.1:
        text = text.replace(b"{", b'{"zoo": "1", ' if rng.random() < 0.5 else b'{"a": 1, ', 1)
    return text if is_index else len(text).to_bytes(8, "little") + text + data[end:]


VALUES: list[Any] = [None, True, -1, 0, 1, 2**40, 2**70, 1e300, "", "\ud800", "../x", [], {}, "1"]


def json_in(value: Any) -> Any:
    """Return the parsed list or object of a JSON text, or None."""
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else None
    except ValueError:
        return None


def change(node: Any, rng: random.Random) -> None:
    """Change one value below a node, or inside a text that is JSON."""
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = rng.choice(list(keys))
        value = node[key]
        if isinstance(value, (dict, list)) and value and rng.random() < 0.7:
            node = value
            continue
        break
    action = rng.randrange(6)
    inner = json_in(value)
    if inner and action < 4:
        change(inner, rng)
        node[key] = json.dumps(inner)
    elif action == 0:
        del node[key]
    elif action == 1 and isinstance(node, dict):
        node[str(key) + rng.choice(["x", "\n", "", "/.."])] = node.pop(key)
    elif action == 2:
        other = rng.choice(list(keys))
        node[key], node[other] = node[other], node[key]
    elif action == 3 and type(value) is int:
        node[key] = value + rng.choice([-1, 1, 8])
    elif action == 4 and isinstance(value, str) and value:
        at = rng.randrange(len(value))
        node[key] = value[:at] + rng.choice("0aZ{\\ ") + value[at + 1 :]
    else:
        node[key] = rng.choice(VALUES)


DAMAGES: tuple[Damage, ...] = (
    flip_bits,
    flip_bits,
    cut_bytes,
    splice,
    mix_files,
    edit_json,
    edit_json,
)


class Bench:
    """A valid artifact with its model, and another artifact to copy bytes from."""

    def __init__(self, folder: Path, shard_bytes: int | None) -> None:
        models: list[Model] = [compose(TIED, registry=REGISTRY, seed=seed) for seed in (0, 1)]
        for model in models:
            model.tokenizer = {"source": '{"version": "1.0", "text": "K\u00f6ln"}'}
        self.model = models[0]
        self.valid, self.other = folder / "valid", folder / "other"
        for model, target in zip(models, (self.valid, self.other), strict=True):
            target.mkdir()
            path = target if shard_bytes else target / "model.safetensors"
            save(model, path, provenance={"seed": 7}, shard_bytes=shard_bytes)
        self.files = sorted(file.name for file in self.valid.iterdir())
        self.provenance = read_header(self.valid).provenance

    def outcome(self, folder: Path, rng: random.Random) -> str:
        """Load one damaged copy. Return "rejected" or "unchanged"."""
        name = rng.choice(self.files)
        data, other = ((folder / name).read_bytes() for folder in (self.valid, self.other))
        damage = rng.choice(
            DAMAGES if name.endswith("s") else (flip_bits, cut_bytes, splice, edit_json)
        )
        damaged = data
        while damaged in (data, other):  # valid artifacts
            damaged = damage(data, other, rng)
        (folder / name).write_bytes(damaged)
        started = time.process_time()
        try:
            model = load(folder, verify=True, registry=REGISTRY)
        except ArtifactError:
            return "rejected"
        finally:
            (folder / name).unlink()  # the model maps the damaged file
            (folder / name).write_bytes(data)
            assert time.process_time() - started < MAX_SECONDS
        assert_same_bits(all_tensors(model), all_tensors(self.model))
        assert (model.spec, model.providers) == (self.model.spec, self.model.providers)
        assert model.tokenizer == self.model.tokenizer
        return "unchanged"


def forge(data: bytes, rng: random.Random) -> bytes:
    """Change the header and update its digest."""
    end = header_end(data)
    table = json.loads(data[8:end])
    for _ in range(rng.choice([1, 1, 2, 4])):
        change(table, rng)
    metadata = table.get("__metadata__")
    try:
        layout = decode_header(json.dumps(table).encode(), len(data) - end)
        metadata["digest"] = layout.digest()
    except (ValueError, KeyError, TypeError):
        pass
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data[end:]


def load_forged(folder: Path, count: int, seed: int) -> Counter[str]:
    """Load forged headers, which may be valid; other exceptions are errors."""
    bench = Bench(folder, None)
    data, file = (bench.valid / "model.safetensors").read_bytes(), folder / "forged.safetensors"
    seen: Counter[str] = Counter()
    for number in range(count):
        file.write_bytes(forge(data, random.Random(f"{seed}/{number}")))
        started = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ZooWarning)
                checks = verify(file, registry=REGISTRY).checks
                assert [c.name for c in checks] == STEPS[: len(checks)]
                load(file, registry=REGISTRY)
            seen["loaded"] += 1
        except ArtifactError:
            seen["rejected"] += 1
        assert time.process_time() - started < MAX_SECONDS
    return seen


def run(folder: Path, shard_bytes: int | None, count: int, seed: int) -> Counter[str]:
    bench = Bench(folder, shard_bytes)
    shutil.copytree(bench.valid, folder / "damaged")
    seen: Counter[str] = Counter()
    for number in range(count):
        seen[bench.outcome(folder / "damaged", random.Random(f"{seed}/{number}"))] += 1
    return seen


@pytest.mark.parametrize("shard_bytes", [None, 60], ids=["single", "shards"])
def test_damaged_artifacts_are_rejected_or_unchanged(
    tmp_path: Path, shard_bytes: int | None
) -> None:
    seen = run(tmp_path, shard_bytes, 300, seed=0)
    assert seen["rejected"] > 200, seen


def test_forged_headers_raise_no_other_exception(tmp_path: Path) -> None:
    seen = load_forged(tmp_path, 150, seed=0)
    assert min(seen["rejected"], seen["loaded"]) > 10, seen


@pytest.mark.slow
def test_5000_forged_headers_raise_no_other_exception(tmp_path: Path) -> None:
    seen = load_forged(tmp_path, 5_000, seed=1)
    print(dict(seen))
    assert min(seen["rejected"], seen["loaded"]) > 300, seen


@pytest.mark.slow
@pytest.mark.parametrize("shard_bytes", [None, 60], ids=["single", "shards"])
def test_10000_damaged_artifacts_are_rejected_or_unchanged(
    tmp_path: Path, shard_bytes: int | None
) -> None:
    seen = run(tmp_path, shard_bytes, 10_000, seed=1)
    print(dict(seen))
    assert seen["rejected"] > 9_000, seen
