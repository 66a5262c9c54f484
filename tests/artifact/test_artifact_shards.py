"""Models in several files: standard names and index, replaced and validated as one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from artifact_kit import REGISTRY, TIED, all_tensors, assert_same_bits, rewrite, write_file
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from zoo.artifact import check_hashes, load, read_header, save, write
from zoo.errors import ArtifactError
from zoo.interfaces import Model
from zoo.spec.composition import compose

NAMES = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"


def model_of(seed: int = 0) -> Model:
    return compose(TIED, seed=seed, registry=REGISTRY)


def list_names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tied model in two shards."""
    return save(model_of(), tmp_path / "model", shard_bytes=180)


def test_shards_have_standard_names_and_are_bit_identical(folder: Path) -> None:
    assert list_names(folder) == [*NAMES, INDEX]
    for path in (folder, folder / INDEX):
        model = load(path, verify=True, registry=REGISTRY)
        assert_same_bits(all_tensors(model), all_tensors(model_of()))
        assert model.spec == model_of().spec
    header = read_header(folder)
    assert [name for name, _ in header.files] == NAMES
    assert header.bytes == sum((folder / name).stat().st_size for name in NAMES)


def test_safetensors_library_reads_the_shards(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    for name, shard in index["weight_map"].items():
        assert name in load_file(folder / shard)
        with safe_open(folder / shard, framework="pt") as opened:
            assert opened.metadata()["format"] == "pt"
    assert index["metadata"]["total_size"] == 11 * 4 * 4 + 3 * 8
    assert index["weight_map"] == {"seen": NAMES[0], "read.weight": NAMES[1]}


def test_identity_does_not_depend_on_sharding(folder: Path, tmp_path: Path) -> None:
    single = save(model_of(), tmp_path / "one.safetensors")
    assert read_header(single).identity == read_header(folder).identity
    other = save(model_of(seed=1), tmp_path / "two.safetensors")
    assert read_header(other).identity != read_header(folder).identity


def test_each_shard_can_be_checked_separately(folder: Path) -> None:
    for name in NAMES:
        assert check_hashes(folder / name)
    assert check_hashes(folder)
    (folder / NAMES[0]).unlink()
    assert check_hashes(folder / NAMES[1])
    data = bytearray((folder / NAMES[1]).read_bytes())
    data[-1] ^= 1
    (folder / NAMES[1]).write_bytes(data)
    with pytest.raises(ArtifactError, match=r"sha256 does not match.*\n.*read.weight"):
        check_hashes(folder / NAMES[1])


def test_model_that_fits_one_shard_is_one_file(tmp_path: Path) -> None:
    folder = save(model_of(), tmp_path / "model", shard_bytes="2GB")
    assert list_names(folder) == ["model.safetensors"]
    assert_same_bits(all_tensors(load(folder, registry=REGISTRY)), all_tensors(model_of()))


@pytest.mark.parametrize("sizes", [(180, 180), (180, None), (None, 180), (180, 10), (180, 10**6)])
def test_saving_replaces_the_model_of_the_directory(
    tmp_path: Path, sizes: tuple[int | None, int | None]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "README.md").write_text("mine")
    for seed, size in enumerate(sizes):
        save(model_of(seed), folder if size else folder / "model.safetensors", shard_bytes=size)
    assert_same_bits(all_tensors(load(folder, registry=REGISTRY)), all_tensors(model_of(1)))
    single = sizes[1] in (None, 10**6)
    assert list_names(folder) == sorted(
        ["README.md", *(["model.safetensors"] if single else [*NAMES, INDEX])]
    )


def test_failure_before_the_index_is_replaced_keeps_the_old_shards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    replace = os.replace

    def broken(source: Any, target: Any) -> None:
        if str(target).endswith(".json"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(ArtifactError, match=r"the disk is full.*unchanged"):
        save(model_of(1), folder, shard_bytes=180)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_file_system_without_links_has_the_new_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError("links are not supported")

    monkeypatch.setattr(os, "link", refused)
    save(model_of(1), folder, shard_bytes=180)
    assert_same_bits(all_tensors(load(folder, registry=REGISTRY)), all_tensors(model_of(1)))
    assert len(list_names(folder)) == 3
    monkeypatch.undo()
    save(model_of(0), folder, shard_bytes=180)
    assert list_names(folder) == [*NAMES, INDEX]


def test_load_while_shards_are_replaced_gives_one_of_the_two_models(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists, saved = os.path.exists, []

    def replacing(path: Any) -> bool:
        if str(path).endswith(NAMES[1]) and not saved:
            saved.append(1)
            save(model_of(1), folder, shard_bytes=180)
        return exists(path)

    monkeypatch.setattr(os.path, "exists", replacing)
    model = load(folder, registry=REGISTRY)
    assert saved
    assert_same_bits(all_tensors(model), all_tensors(model_of(1)))


def edit_index(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index)
    (folder / INDEX).write_text(json.dumps(index))


def copy_other_shard(folder: Path) -> None:
    """Replace one shard with that of another model."""
    other = save(model_of(1), folder.parent / "other", shard_bytes=180)
    shutil.copy(other / NAMES[1], folder / NAMES[1])


def write_plain_shard(folder: Path) -> None:
    save_file({"seen": torch.arange(3)}, folder / NAMES[0], {"format": "pt"})


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing shard": (lambda f: (f / NAMES[1]).unlink(), f"do not exist: {NAMES[1]}"),
    "no index": (lambda f: (f / INDEX).unlink(), "is a directory without a model"),
    "index not json": (lambda f: (f / INDEX).write_text("{"), "is not a valid index"),
    "index a list": (lambda f: (f / INDEX).write_text("[]"), "has no weight_map"),
    "index empty": (lambda f: edit_index(f, lambda i: i["weight_map"].clear()), "no weight_map"),
    "index repeats a key": (
        lambda f: (f / INDEX).write_text('{"weight_map": {"a": "b", "a": "c"}}'),
        "the key 'a' is repeated",
    ),
    "index deep": (lambda f: (f / INDEX).write_text("[" * 10**5), "is not a valid index"),
    "above": (
        lambda f: edit_index(f, lambda i: i["weight_map"].update(seen="../x.safetensors")),
        "'../x.safetensors', which is not a safetensors file next to it",
    ),
    "absolute": (
        lambda f: edit_index(f, lambda i: i["weight_map"].update(seen="/etc/x.safetensors")),
        "which is not a safetensors file next to it",
    ),
    "hidden": (
        lambda f: edit_index(f, lambda i: i["weight_map"].update(seen=".x.safetensors")),
        "which is not a safetensors file next to it",
    ),
    "no name": (
        lambda f: edit_index(f, lambda i: i["weight_map"].update(seen=3)),
        "which is not a safetensors file next to it",
    ),
    "elsewhere": (
        lambda f: edit_index(f, lambda i: i["weight_map"].update(seen=NAMES[1])),
        f"seen is not in {NAMES[1]}",
    ),
    "shard not listed": (
        lambda f: edit_index(f, lambda i: i["weight_map"].pop("seen")),
        "are not the complete shards of one artifact",
    ),
    "tensor not listed": (
        lambda f: rewrite(f / NAMES[0], lambda t: t.update(extra=torch.ones(2))),
        f"extra in {NAMES[0]} is not listed",
    ),
    "invented": (
        lambda f: edit_index(f, lambda i: i["weight_map"].update(extra=NAMES[0])),
        f"extra is not in {NAMES[0]}",
    ),
    "another model's index": (
        lambda f: edit_index(f, lambda i: i["metadata"].update(model="0" * 64)),
        "belong to different models",
    ),
    "another model's shard": (copy_other_shard, "belong to different models"),
    "foreign shard": (write_plain_shard, "contains no spec"),
    "shard forged": (
        lambda f: rewrite(f / NAMES[0], lambda t: t.update(seen=torch.zeros(3).long())),
        "belong to different models",
    ),
    "shard flipped": (
        lambda f: (f / NAMES[1]).write_bytes((f / NAMES[1]).read_bytes()[:-1] + b"\7"),
        "sha256 does not match",
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_invalid_shards_raise(folder: Path, fault: str) -> None:
    damage, message = BAD[fault]
    damage(folder)
    with pytest.raises(ArtifactError) as caught:
        load(folder, verify=True, registry=REGISTRY)
    assert str(folder) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_shard_is_not_a_model(folder: Path, name: str) -> None:
    with pytest.raises(ArtifactError, match=r"is shard ./2 of a model"):
        load(folder / name, registry=REGISTRY)


@pytest.mark.parametrize("size", ["", "0", "two", "-1", "2XB", 0, -5])
def test_invalid_size_raises(tmp_path: Path, size: Any) -> None:
    with pytest.raises(ArtifactError, match="such as 2000000000 or '2GB'"):
        save(model_of(), tmp_path / "m", shard_bytes=size)
    assert list_names(tmp_path) == []


@pytest.mark.parametrize("size", [180, "180", "180B", "0.18kB", "0.18 KB", "0.00018MB"])
def test_sizes_have_units(tmp_path: Path, size: Any) -> None:
    assert list_names(save(model_of(), tmp_path / "m", shard_bytes=size)) == [*NAMES, INDEX]


def test_shards_replace_neither_files_nor_models_of_other_libraries(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="shards are saved to a directory"):
        save(model_of(), tmp_path / "m.safetensors", shard_bytes=180)
    save_file({"a": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ArtifactError, match="a model of another library"):
        save(model_of(), tmp_path, shard_bytes=180)
    assert list_names(tmp_path) == ["model.safetensors"]


def test_shards_of_another_library_next_to_a_saved_file_stay(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / NAMES[0])
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": NAMES[0]}}))
    save(model_of(), tmp_path / "model.safetensors")
    assert list_names(tmp_path) == sorted(["model.safetensors", NAMES[0], INDEX])


def test_write_checks_and_writes_tensors(tmp_path: Path) -> None:
    model = model_of(3)
    tensors = {n: t.detach() for n, t in all_tensors(model).items() if n in ("read.weight", "seen")}
    options: dict[str, Any] = {"provenance": {"source": "elsewhere"}, "registry": REGISTRY}
    for path, size in ((tmp_path / "m.safetensors", None), (tmp_path / "shards", 180)):
        write(
            model.spec,
            model.providers,
            iter(tensors.items()),
            path,
            tokenizer={"source": "{}"},
            shard_bytes=size,
            **options,
        )
        again = load(path, verify=True, registry=REGISTRY)
        assert_same_bits(all_tensors(again), all_tensors(model))
        assert again.tokenizer == {"source": "{}"}
        assert read_header(path).provenance["source"] == "elsewhere"
        assert "outputs" in (read_header(path).probe or {})
    with pytest.raises(ArtifactError, match=r"missing: seen \[3\]"):
        write(model.spec, None, {"read.weight": tensors["read.weight"]}, tmp_path / "x", **options)
    with pytest.raises(ArtifactError, match="the spec is not valid with the installed components"):
        write({"zoo": 1}, None, tensors, tmp_path / "x", **options)
    assert list_names(tmp_path) == ["m.safetensors", "shards"]


def test_write_does_not_copy_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zoo.artifact.saving as saving

    seen: list[int] = []

    def record(model: Any) -> dict[str, Any]:
        seen.append(model.read.weight.data_ptr())
        return {"skipped": "not run"}

    monkeypatch.setattr(saving, "record_probe", record)
    model = model_of()
    tensors = {"read.weight": model.read.weight.detach(), "seen": model.seen}
    write(model.spec, None, tensors, tmp_path / "m", registry=REGISTRY)
    assert seen == [model.read.weight.data_ptr()]


def test_files_of_the_test_kit_are_valid(tmp_path: Path) -> None:
    """Otherwise the tests with rewritten files prove little."""
    file = save(model_of(), tmp_path / "one.safetensors")
    with safe_open(file, framework="pt") as opened:
        metadata = opened.metadata()
    write_file(file, metadata, load_file(file))
    assert_same_bits(
        all_tensors(load(file, verify=True, registry=REGISTRY)), all_tensors(model_of())
    )
