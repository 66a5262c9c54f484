"""Damaged artifacts: each is refused in words, or its damage changed nothing that it says."""

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

PATIENCE = 5.0
"""Seconds of processor time that no file may take."""

STEPS = ["header", "hashes", "spec", "probe"]

Damage = Callable[[bytes, bytes, random.Random], bytes]


def header_end(data: bytes) -> int:
    return min(len(data), 8 + int.from_bytes(data[:8], "little"))


def flipped(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """Some bits, in the length, the header or the weights."""
    end = header_end(data)
    low, high = draw.choice([(0, 8), (8, end), (8, end), (end, len(data)), (0, len(data))])
    damaged = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        damaged[draw.randrange(low, max(high, low + 1)) % len(damaged)] ^= 1 << draw.randrange(8)
    return bytes(damaged)


def cut(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """The end, or a piece from within."""
    a, b = sorted(draw.randrange(len(data)) for _ in range(2))
    return draw.choice([data[:a], data[:a] + data[b:], data[: -draw.randrange(1, 40)]])


def spliced(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """A piece of it, of another artifact or of nothing, put in or laid over."""
    source = draw.choice([data, other, draw.randbytes(64), b"\0" * 64, b'{"' * 32])
    start = draw.randrange(len(source))
    piece = source[start : start + draw.randrange(1, 200)]
    at = draw.randrange(len(data))
    return data[:at] + piece + data[draw.choice([at, at + len(piece)]) :]


def crossed(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """The header of one and the weights of another, whose shard may hold just the same."""
    mixed = data[: header_end(data)] + other[header_end(other) :]
    return mixed if mixed != data else flipped(data, other, draw)


def reworded(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """Still JSON, but with something gone, renamed, doubled, swapped or changed."""
    whole = data[:1] == b"{"
    end = len(data) if whole else header_end(data)
    table = json.loads(data[:end] if whole else data[8:end])
    for _ in range(draw.choice([1, 1, 2, 4])):
        change(table, draw)
    text: Any = json.dumps(table, ensure_ascii=draw.random() < 0.5)
    text = text.encode(errors="surrogatepass")
    if draw.random() < 0.1:
        text = text.replace(b"{", b'{"zoo": "1", ' if draw.random() < 0.5 else b'{"a": 1, ', 1)
    return text if whole else len(text).to_bytes(8, "little") + text + data[end:]


ODD: list[Any] = [None, True, -1, 0, 1, 2**40, 2**70, 1e300, "", "\ud800", "../x", [], {}, "1"]


def json_in(value: Any) -> Any:
    """The list or table a text is, if it still is one."""
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in "[{" else None
    except ValueError:
        return None


def change(node: Any, draw: random.Random) -> None:
    """One change somewhere below a node, also inside texts that are JSON."""
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = draw.choice(list(keys))
        value = node[key]
        if isinstance(value, (dict, list)) and value and draw.random() < 0.7:
            node = value
            continue
        break
    what = draw.randrange(6)
    inner = json_in(value)
    if inner and what < 4:
        change(inner, draw)
        node[key] = json.dumps(inner)
    elif what == 0:
        del node[key]
    elif what == 1 and isinstance(node, dict):
        node[str(key) + draw.choice(["x", "\n", "", "/.."])] = node.pop(key)
    elif what == 2:
        other = draw.choice(list(keys))
        node[key], node[other] = node[other], node[key]
    elif what == 3 and type(value) is int:
        node[key] = value + draw.choice([-1, 1, 8])
    elif what == 4 and isinstance(value, str) and value:
        at = draw.randrange(len(value))
        node[key] = value[:at] + draw.choice("0aZ{\\ ") + value[at + 1 :]
    else:
        node[key] = draw.choice(ODD)


DAMAGES: tuple[Damage, ...] = (flipped, flipped, cut, spliced, crossed, reworded, reworded)


class Bench:
    """A whole artifact, another one to splice from, and the model the first holds."""

    def __init__(self, folder: Path, shard_bytes: int | None) -> None:
        models: list[Model] = [compose(TIED, registry=REGISTRY, seed=seed) for seed in (0, 1)]
        for model in models:
            model.tokenizer = {"source": '{"version": "1.0", "text": "K\u00f6ln"}'}
        self.model = models[0]
        names = ("whole", "other")
        self.whole, self.other = (folder / name for name in names)
        for model, place in zip(models, (self.whole, self.other), strict=True):
            place.mkdir()
            path = place if shard_bytes else place / "model.safetensors"
            save(model, path, provenance={"seed": 7}, shard_bytes=shard_bytes)
        self.files = sorted(file.name for file in self.whole.iterdir())
        self.provenance = read_header(self.whole).provenance

    def outcome(self, folder: Path, draw: random.Random) -> str:
        """What becomes of one damaged copy."""
        name = draw.choice(self.files)
        data, other = ((place / name).read_bytes() for place in (self.whole, self.other))
        damage = draw.choice(DAMAGES if name.endswith("s") else (flipped, cut, spliced, reworded))
        damaged = data
        while damaged == data:
            damaged = damage(data, other, draw)
        (folder / name).write_bytes(damaged)
        started = time.process_time()
        try:
            model = load(folder, verify=True, registry=REGISTRY)
        except ArtifactError:
            return "refused"
        finally:
            (folder / name).write_bytes(data)
            assert time.process_time() - started < PATIENCE
        assert_same_bits(all_tensors(model), all_tensors(self.model))
        assert (model.spec, model.providers) == (self.model.spec, self.model.providers)
        assert model.tokenizer == self.model.tokenizer
        return "harmless"


def forged(data: bytes, draw: random.Random) -> bytes:
    """A changed header, sealed again by somebody who knows how."""
    end = header_end(data)
    table = json.loads(data[8:end])
    for _ in range(draw.choice([1, 1, 2, 4])):
        change(table, draw)
    metadata = table.get("__metadata__")
    try:
        layout = decode_header(json.dumps(table).encode(), len(data) - end)
        metadata["digest"] = layout.digest()
    except (ValueError, KeyError, TypeError):
        pass
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data[end:]


def forgeries(folder: Path, count: int, seed: int) -> Counter[str]:
    """Forged headers may load if what they say fits; they may not end in another exception."""
    bench = Bench(folder, None)
    data, file = (bench.whole / "model.safetensors").read_bytes(), folder / "forged.safetensors"
    seen: Counter[str] = Counter()
    for number in range(count):
        file.write_bytes(forged(data, random.Random(f"{seed}/{number}")))
        started = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ZooWarning)
                checks = verify(file, registry=REGISTRY).checks
                assert [c.name for c in checks] == STEPS[: len(checks)]
                load(file, registry=REGISTRY)
            seen["loaded"] += 1
        except ArtifactError:
            seen["refused"] += 1
        assert time.process_time() - started < PATIENCE
    return seen


def run(folder: Path, shard_bytes: int | None, count: int, seed: int) -> Counter[str]:
    bench = Bench(folder, shard_bytes)
    shutil.copytree(bench.whole, folder / "damaged")
    seen: Counter[str] = Counter()
    for number in range(count):
        seen[bench.outcome(folder / "damaged", random.Random(f"{seed}/{number}"))] += 1
    return seen


@pytest.mark.parametrize("shard_bytes", [None, 60], ids=["single", "shards"])
def test_a_sample_of_damaged_artifacts_is_refused_or_unchanged(
    tmp_path: Path, shard_bytes: int | None
) -> None:
    seen = run(tmp_path, shard_bytes, 300, seed=0)
    assert seen["refused"] > 200, seen


def test_a_sample_of_forged_headers_ends_in_no_other_exception(tmp_path: Path) -> None:
    seen = forgeries(tmp_path, 150, seed=0)
    assert min(seen["refused"], seen["loaded"]) > 10, seen


@pytest.mark.slow
def test_five_thousand_forged_headers_end_in_no_other_exception(tmp_path: Path) -> None:
    seen = forgeries(tmp_path, 5_000, seed=1)
    print(dict(seen))
    assert min(seen["refused"], seen["loaded"]) > 300, seen


@pytest.mark.slow
@pytest.mark.parametrize("shard_bytes", [None, 60], ids=["single", "shards"])
def test_ten_thousand_damaged_artifacts_each_are_refused_or_unchanged(
    tmp_path: Path, shard_bytes: int | None
) -> None:
    seen = run(tmp_path, shard_bytes, 10_000, seed=1)
    print(dict(seen))
    assert seen["refused"] > 9_000, seen
