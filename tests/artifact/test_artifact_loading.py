"""Loading: dtype, device, mapping without a copy, and limits for hostile headers."""

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
    """A valid file of the tied model."""
    return save(compose(TIED, registry=REGISTRY), tmp_path / "model.safetensors")


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float64, "float16"])
def test_dtype_converts_floats_only(file: Path, dtype: Any) -> None:
    model = load(file, dtype=dtype, registry=REGISTRY)
    expected = compose(TIED, dtype=dtype, registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(expected))
    assert model.seen.dtype == torch.int64
    assert model.read.weight is model.speak.weight


def test_unsupported_dtype_raises(file: Path) -> None:
    with pytest.raises(ZooError, match=r"int8.*float32"):
        load(file, dtype="int8", registry=REGISTRY)


def test_weights_are_mapped_and_updates_do_not_change_the_file(file: Path) -> None:
    before = file.read_bytes()
    model = load(file, registry=REGISTRY)
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[0].split("-") for line in maps if str(file) in line]
    address = model.read.weight.data_ptr()
    assert any(int(low, 16) <= address < int(high, 16) for low, high in ranges)
    with torch.no_grad():
        model.read.weight.fill_(7)
    assert file.read_bytes() == before
    assert_same_bits(
        all_tensors(load(file, registry=REGISTRY)), all_tensors(load(file, registry=REGISTRY))
    )


def test_model_stays_usable_after_its_file_is_removed(file: Path) -> None:
    model = load(file, registry=REGISTRY)
    file.unlink()
    assert_same_bits(all_tensors(model), all_tensors(compose(TIED, registry=REGISTRY)))


def test_saving_over_the_loaded_file_keeps_the_weights(file: Path) -> None:
    model = load(file, registry=REGISTRY)
    save(model, file)
    save(compose(TIED, seed=1, registry=REGISTRY), file)
    assert_same_bits(all_tensors(model), all_tensors(compose(TIED, registry=REGISTRY)))


def test_safetensors_library_reads_the_file(file: Path) -> None:
    model = compose(TIED, registry=REGISTRY)
    expected = {name: tensor.detach() for name, tensor in named_tensors(model).items()}
    assert_same_bits(load_file(file), expected)


def test_unaligned_weights_are_copied(file: Path) -> None:
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = data[8:end].rstrip() + b" " * 3
    header += b" " * ((1 - len(header)) % 8)
    file.write_bytes(len(header).to_bytes(8, "little") + header + data[end:])
    model = load(file, verify=True, registry=REGISTRY)
    assert_same_bits(all_tensors(model), all_tensors(compose(TIED, registry=REGISTRY)))


class Initialised(Tied):
    """Initialises its weights in several ways, and computes one buffer."""

    name: ClassVar[str] = "kit-initialised"
    values: ClassVar[list[float]] = []

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
            self.values.append(float(self.b.detach()[0]))


def test_loading_computes_buffers_and_skips_initialisation(tmp_path: Path) -> None:
    registry = REGISTRY.with_components([Initialised], plugin="kit")
    model = compose({**TIED, "model": "kit-initialised"}, registry=registry)
    file = save(model, tmp_path / "m")
    Initialised.values.clear()
    again = load(file, registry=registry)
    assert_same_bits(all_tensors(again), all_tensors(model))
    assert again.computed.tolist() == [6.0, 6.0]
    assert Initialised.values == [5.0]  # not multiplied by 2


def replace_header(file: Path, header: bytes) -> None:
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    file.write_bytes(len(header).to_bytes(8, "little") + header + data[end:])


def parse_header(file: Path) -> dict[str, Any]:
    data = file.read_bytes()
    table: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return table


def rename_tensor(file: Path, name: str) -> None:
    rewrite(file, lambda t: t.update({name: t.pop("seen")}))


def write_many_tensors(file: Path, count: int) -> None:
    entry = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    replace_header(file, json.dumps({f"t{i}": entry for i in range(count)}).encode())


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "200,000 tensors": (lambda f: write_many_tensors(f, 200_000), "more than 100,000 tensors"),
    "millions of lists": (
        lambda f: replace_header(f, b"[" + b"[]," * 9_000_000),
        "more than 100,000 tensors",
    ),
    "one tensor twice": (
        lambda f: replace_header(
            f, json.dumps(parse_header(f)).replace('{"', '{"seen": 1, "', 1).encode()
        ),
        "the key 'seen' is repeated",
    ),
    "escape in a name": (lambda f: rename_tensor(f, "\x1b[2J"), "is not printable"),
    "unpaired surrogate": (lambda f: replace_header(f, b'{"a\\ud800": 1}'), "is not JSON"),
    "long name": (lambda f: rename_tensor(f, "n" * 2_000), "longer than 1,000"),
    "path as a name": (
        lambda f: rename_tensor(f, "../../etc/passwd"),
        "unexpected: ../../etc/passwd [3]",
    ),
    "utf-16": (
        lambda f: replace_header(f, json.dumps(parse_header(f)).encode("utf-16")),
        "is not JSON",
    ),
    "header beyond 100 MB": (
        lambda f: (os.truncate(f, 8), os.truncate(f, 300_000_000), _write_length(f, 200_000_000)),
        "at most 100,000,000",
    ),
    "huge shape": (
        lambda f: replace_header(
            f, b'{"a": {"dtype": "U8", "shape": [0, 99999999999999999999], "data_offsets": [0, 0]}}'
        ),
        "a has an invalid shape",
    ),
    "other dtype": (
        lambda f: replace_header(
            f, b'{"a": {"dtype": "F4", "shape": [1], "data_offsets": [0, 1]}}'
        ),
        "unsupported dtype: 'F4'",
    ),
    "metadata of numbers": (
        lambda f: replace_header(f, b'{"__metadata__": {"zoo": 2}}'),
        "metadata must map names to strings",
    ),
}


def _write_length(file: Path, length: int) -> None:
    with open(file, "rb+") as out:
        out.write(length.to_bytes(8, "little"))


@pytest.mark.parametrize("attack", HOSTILE)
def test_hostile_header_raises_within_limits(file: Path, attack: str) -> None:
    damage, message = HOSTILE[attack]
    damage(file)
    started = time.process_time()
    with pytest.raises(ArtifactError) as caught:
        load(file, registry=REGISTRY)
    assert time.process_time() - started < 3
    assert message in str(caught.value)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)


def write_zip(file: Path) -> None:
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
        write_zip,
    ],
)
def test_renamed_pickle_is_detected(file: Path, disguise: Callable[[Path], object]) -> None:
    disguise(file)
    with pytest.raises(ArtifactError, match=r"is a pickle \(torch\.save\)"):
        load(file, registry=REGISTRY)


@pytest.mark.parametrize("length", [0x0280, 0x0380, 0x0480, 0x0580])
def test_header_length_with_the_first_bytes_of_a_pickle_is_valid(
    tmp_path: Path, length: int
) -> None:
    path = tmp_path / "a.safetensors"
    text = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(length)
    path.write_bytes(length.to_bytes(8, "little") + text + torch.ones(1).numpy().tobytes())
    with safe_open(path, framework="pt") as library:
        assert open_tensors([path]).read("a") == library.get_tensor("a") == 1.0


def test_file_of_another_library_names_zoo_import(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors")
    with pytest.raises(ArtifactError, match=r"contains no spec.*'zoo import'"):
        load(tmp_path / "a.safetensors", registry=REGISTRY)


def test_pipes_and_devices_raise_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ArtifactError, match="it is not a regular file"):
            load(path, registry=REGISTRY)


def test_changed_weights_are_detected_by_verify_only(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 128
    file.write_bytes(data)
    load(file, registry=REGISTRY)
    for check in (lambda: load(file, verify=True, registry=REGISTRY), lambda: check_hashes(file)):
        with pytest.raises(ArtifactError, match=r"(?s)sha256 does not match.*read\.weight"):
            check()


def test_changed_header_is_detected_without_verify(file: Path) -> None:
    replace_header(
        file, json.dumps(parse_header(file)).replace('\\"dim\\": 4', '\\"dim\\": 5').encode()
    )
    with pytest.raises(ArtifactError, match="does not match its digest"):
        load(file, registry=REGISTRY)


def test_format_1_cannot_be_verified(file: Path) -> None:
    rewrite(file, zoo="1", **dict.fromkeys(("hashes", "digest", "probe", "places")))
    assert read_header(file).hashes is None
    assert not check_hashes(file)
    assert_same_bits(
        all_tensors(load(file, registry=REGISTRY)), all_tensors(compose(TIED, registry=REGISTRY))
    )
    with pytest.raises(ArtifactError, match="format 1, which has no hashes"):
        load(file, verify=True, registry=REGISTRY)


@pytest.mark.parametrize("key", ["digest", "hashes"])
def test_format_2_requires_digest_and_hashes(file: Path, key: str) -> None:
    rewrite(file, **{key: None})
    with pytest.raises(ArtifactError, match=key):
        load(file, registry=REGISTRY)


@pytest.mark.parametrize(("rank", "writes"), [("0", True), ("", True), ("1", False), ("7", False)])
def test_only_rank_0_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, writes: bool
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "8")
    model: Model = compose(TIED, registry=REGISTRY)
    save(model, tmp_path / "m.safetensors")
    save(model, tmp_path / "shards", shard_bytes=100)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.safetensors", "shards"] * writes


@pytest.mark.parametrize("world", [None, "", "1", "two"])
def test_a_rank_without_a_group_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str | None
) -> None:
    monkeypatch.setenv("RANK", "1")
    if world is not None:
        monkeypatch.setenv("WORLD_SIZE", world)
    assert save(compose(TIED, registry=REGISTRY), tmp_path / "m.safetensors").exists()


def test_rank_of_the_process_group_overrides_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert save(compose(TIED, registry=REGISTRY), tmp_path / "m.safetensors").exists()
    finally:
        torch.distributed.destroy_process_group()


def test_model_on_the_meta_device_is_not_saved(tmp_path: Path) -> None:
    model = compose(TIED, registry=REGISTRY).to("meta")
    with pytest.raises(ArtifactError, match="on the meta device"):
        save(model, tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []
