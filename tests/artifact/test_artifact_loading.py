"""Loading: straight to dtype and device, no copy, hostile headers bounded."""

from __future__ import annotations

import io
import json
import os
import pickle
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from artifact_kit import REGISTRY, TIED, Tied, all_tensors, assert_same_bits, rewrite
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from zoo.artifact import check_hashes, load, named_tensors, read_header, save
from zoo.artifact.checkpoint import open_tensors
from zoo.errors import ArtifactError, ZooError
from zoo.interfaces import Model
from zoo.spec.composition import compose


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A whole, good file of the tied model."""
    return save(compose(TIED, registry=REGISTRY), tmp_path / "model.safetensors")


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float64, "float16"])
def test_dtype_casts_floats_and_nothing_else(file: Path, dtype: Any) -> None:
    model = load(file, dtype=dtype, registry=REGISTRY)
    wanted = compose(TIED, dtype=dtype, registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(wanted))
    assert model.seen.dtype == torch.int64
    assert model.read.weight is model.speak.weight


def test_a_dtype_that_is_none_is_refused(file: Path) -> None:
    with pytest.raises(ZooError, match="dtype 'int8'.*float32"):
        load(file, dtype="int8", registry=REGISTRY)


def test_weights_are_the_file_s_own_pages_and_training_leaves_the_file_alone(file: Path) -> None:
    before = file.read_bytes()
    model = load(file, registry=REGISTRY)
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[0].split("-") for line in maps if str(file) in line]
    at = model.read.weight.data_ptr()
    assert any(int(low, 16) <= at < int(high, 16) for low, high in ranges)
    with torch.no_grad():
        model.read.weight.fill_(7)
    assert file.read_bytes() == before
    assert_same_bits(
        all_tensors(load(file, registry=REGISTRY)), all_tensors(load(file, registry=REGISTRY))
    )


def test_a_model_outlives_its_file(file: Path) -> None:
    model = load(file, registry=REGISTRY)
    file.unlink()
    assert_same_bits(all_tensors(model), all_tensors(compose(TIED, registry=REGISTRY)))


def test_saving_over_the_file_a_model_came_from_keeps_its_weights(file: Path) -> None:
    model = load(file, registry=REGISTRY)
    save(model, file)
    save(compose(TIED, seed=1, registry=REGISTRY), file)
    assert_same_bits(all_tensors(model), all_tensors(compose(TIED, registry=REGISTRY)))


def test_the_file_is_an_ordinary_safetensors_file(file: Path) -> None:
    model = compose(TIED, registry=REGISTRY)
    held = {name: tensor.detach() for name, tensor in named_tensors(model).items()}
    assert_same_bits(load_file(file), held)


def test_weights_that_another_library_wrote_without_alignment_load(file: Path) -> None:
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = data[8:end].rstrip() + b" " * 3
    header += b" " * ((1 - len(header)) % 8)
    file.write_bytes(len(header).to_bytes(8, "little") + header + data[end:])
    model = load(file, verify=True, registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(compose(TIED, registry=REGISTRY)))


class Initialised(Tied):
    """Fills its weights in every way, and computes one buffer."""

    name: ClassVar[str] = "kit-initialised"
    filled: ClassVar[list[float]] = []

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(3))
        nn.init.constant_(self.a, 2.0)
        self.b = nn.Parameter(torch.full((3,), 5.0))
        with torch.no_grad():
            self.b.mul_(2)
        table = torch.empty(2)
        nn.init.constant_(table, 3.0)
        self.register_buffer("computed", table.mul_(2), persistent=False)
        if self.b.device.type == "cpu":
            self.filled.append(float(self.b.detach()[0]))


def test_constructors_compute_their_buffers_and_fill_no_weights(tmp_path: Path) -> None:
    registry = REGISTRY.with_components([Initialised], plugin="kit")
    model = compose({**TIED, "model": "kit-initialised"}, registry=registry)
    file = save(model, tmp_path / "m")
    Initialised.filled.clear()
    again = load(file, registry=registry)
    assert_same_bits(all_tensors(again), all_tensors(model))
    assert again.computed.tolist() == [6.0, 6.0]
    assert Initialised.filled == [5.0]


def with_header(file: Path, header: bytes) -> None:
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    file.write_bytes(len(header).to_bytes(8, "little") + header + data[end:])


def header_of(file: Path) -> dict[str, Any]:
    data = file.read_bytes()
    table: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return table


def renamed(file: Path, name: str) -> None:
    rewrite(file, lambda t: t.update({name: t.pop("seen")}))


def many(file: Path, count: int) -> None:
    entry = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    with_header(file, json.dumps({f"t{i}": entry for i in range(count)}).encode())


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "200,000 tensors": (lambda f: many(f, 200_000), "lists more than 100,000 tensors"),
    "millions of lists": (lambda f: with_header(f, b"[" + b"[]," * 9_000_000), "lists more than"),
    "one tensor twice": (
        lambda f: with_header(
            f, json.dumps(header_of(f)).replace('{"', '{"seen": 1, "', 1).encode()
        ),
        "says something twice",
    ),
    "escape in a name": (lambda f: renamed(f, "\x1b[2J"), "cannot be printed"),
    "half a character": (lambda f: with_header(f, b'{"a\\ud800": 1}'), "is no JSON"),
    "endless name": (lambda f: renamed(f, "n" * 2_000), "cannot be printed"),
    "path as a name": (lambda f: renamed(f, "../../etc/passwd"), "surplus: ../../etc/passwd [3]"),
    "utf-16": (lambda f: with_header(f, json.dumps(header_of(f)).encode("utf-16")), "is no JSON"),
    "header beyond 100 MB": (
        lambda f: (os.truncate(f, 8), os.truncate(f, 300_000_000), _length(f, 200_000_000)),
        "more than 100,000,000",
    ),
    "huge shape": (
        lambda f: with_header(
            f, b'{"a": {"dtype": "U8", "shape": [0, 99999999999999999999], "data_offsets": [0, 0]}}'
        ),
        "has no proper shape",
    ),
    "other dtype": (
        lambda f: with_header(f, b'{"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}'),
        "has an unknown dtype",
    ),
    "metadata of numbers": (lambda f: with_header(f, b'{"__metadata__": {"zoo": 2}}'), "not text"),
}


def _length(file: Path, length: int) -> None:
    with open(file, "rb+") as out:
        out.write(length.to_bytes(8, "little"))


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_header_is_refused_in_bounded_time(file: Path, attack: str) -> None:
    damage, sentence = HOSTILE[attack]
    damage(file)
    started = time.process_time()
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert time.process_time() - started < 3
    assert sentence in str(caught.value)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)


def zipped(file: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
    file.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    "disguise",
    [
        *(lambda f, p=p: f.write_bytes(pickle.dumps({"a": 1}, protocol=p)) for p in (2, 3, 4, 5)),
        lambda f: torch.save({"a": torch.ones(2)}, f),
        lambda f: torch.save({"a": 1}, f, _use_new_zipfile_serialization=False),
        zipped,
    ],
)
def test_a_pickle_in_disguise_is_called_one(file: Path, disguise: Callable[[Path], object]) -> None:
    disguise(file)
    with pytest.raises(ArtifactError, match=r"is a pickle, as torch\.save writes, which can run"):
        load(file, registry=REGISTRY)


@pytest.mark.parametrize("length", [0x0280, 0x0380, 0x0480, 0x0580])
def test_a_header_as_long_as_a_pickle_begins_is_no_pickle(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.safetensors"
    text = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(length)
    path.write_bytes(length.to_bytes(8, "little") + text + torch.ones(1).numpy().tobytes())
    with safe_open(path, framework="pt") as theirs:
        assert open_tensors([path]).read("a") == theirs.get_tensor("a") == 1.0


def test_a_foreign_file_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors")
    with pytest.raises(ArtifactError, match="no spec, so it is no model of the zoo; 'zoo import'"):
        load(tmp_path / "a.safetensors", registry=REGISTRY)


def test_what_is_no_file_does_not_hold_anyone_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ArtifactError, match="it is no regular file"):
            load(path, registry=REGISTRY)


def test_a_flipped_byte_is_found_by_verify_alone(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 128
    file.write_bytes(data)
    load(file, registry=REGISTRY)
    for check in (lambda: load(file, verify=True, registry=REGISTRY), lambda: check_hashes(file)):
        with pytest.raises(ArtifactError, match=r"(?s)sha256 does not match.*read\.weight"):
            check()


def test_a_changed_word_of_the_header_is_found_without_verify(file: Path) -> None:
    with_header(file, json.dumps(header_of(file)).replace('\\"dim\\": 4', '\\"dim\\": 5').encode())
    with pytest.raises(ArtifactError, match="was changed after it was written"):
        load(file, registry=REGISTRY)


def test_a_file_without_hashes_is_not_called_verified(file: Path) -> None:
    rewrite(file, zoo="1", **dict.fromkeys(("hashes", "digest", "probe", "places")))
    assert read_header(file).hashes is None
    assert not check_hashes(file)
    assert_same_bits(
        all_tensors(load(file, registry=REGISTRY)), all_tensors(compose(TIED, registry=REGISTRY))
    )
    with pytest.raises(ArtifactError, match="is of format 1, which has no hashes to verify"):
        load(file, verify=True, registry=REGISTRY)


@pytest.mark.parametrize("word", ["digest", "hashes"])
def test_a_file_of_the_second_format_cannot_do_without(file: Path, word: str) -> None:
    rewrite(file, **{word: None})
    with pytest.raises(ArtifactError, match=word):
        load(file, registry=REGISTRY)


@pytest.mark.parametrize(("rank", "writes"), [("0", True), ("", True), ("1", False), ("7", False)])
def test_only_the_first_of_several_processes_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, writes: bool
) -> None:
    monkeypatch.setenv("RANK", rank)
    model: Model = compose(TIED, registry=REGISTRY)
    save(model, tmp_path / "m.safetensors")
    save(model, tmp_path / "shards", shard_bytes=100)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.safetensors", "shards"] * writes


def test_the_rank_of_a_process_group_counts_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert save(compose(TIED, registry=REGISTRY), tmp_path / "m.safetensors").exists()
    finally:
        torch.distributed.destroy_process_group()


def test_a_model_without_weights_is_not_saved(tmp_path: Path) -> None:
    model = compose(TIED, registry=REGISTRY).to("meta")
    with pytest.raises(ArtifactError, match="on the meta device"):
        save(model, tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []
