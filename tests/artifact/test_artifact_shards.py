"""Models in several files: the standard names and index, swapped and refused as one."""

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


def held(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tied model in two shards."""
    return save(model_of(), tmp_path / "model", shard_bytes=180)


def test_shards_have_the_standard_names_and_come_back_bit_for_bit(folder: Path) -> None:
    assert held(folder) == [*NAMES, INDEX]
    for path in (folder, folder / INDEX):
        model = load(path, verify=True, registry=REGISTRY)
        assert_same_bits(all_tensors(model), all_tensors(model_of()))
        assert model.spec == model_of().spec
    header = read_header(folder)
    assert [name for name, _ in header.files] == NAMES
    assert header.bytes == sum((folder / name).stat().st_size for name in NAMES)


def test_other_libraries_read_the_shards_by_their_index(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    for name, shard in index["weight_map"].items():
        assert name in load_file(folder / shard)
        with safe_open(folder / shard, framework="pt") as opened:
            assert opened.metadata()["format"] == "pt"
    assert index["metadata"]["total_size"] == 11 * 4 * 4 + 3 * 8
    assert index["weight_map"] == {"seen": NAMES[0], "read.weight": NAMES[1]}


def test_the_identity_is_the_same_in_one_file_and_in_many(folder: Path, tmp_path: Path) -> None:
    single = save(model_of(), tmp_path / "one.safetensors")
    assert read_header(single).identity == read_header(folder).identity
    other = save(model_of(seed=1), tmp_path / "two.safetensors")
    assert read_header(other).identity != read_header(folder).identity


def test_each_shard_can_be_checked_alone(folder: Path) -> None:
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


def test_a_model_that_fits_one_shard_is_one_file(tmp_path: Path) -> None:
    folder = save(model_of(), tmp_path / "model", shard_bytes="2GB")
    assert held(folder) == ["model.safetensors"]
    assert_same_bits(all_tensors(load(folder, registry=REGISTRY)), all_tensors(model_of()))


@pytest.mark.parametrize("sizes", [(180, 180), (180, None), (None, 180), (180, 10), (180, 10**6)])
def test_a_save_replaces_what_the_directory_held_whatever_its_form(
    tmp_path: Path, sizes: tuple[int | None, int | None]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "README.md").write_text("mine")
    for seed, size in enumerate(sizes):
        save(model_of(seed), folder if size else folder / "model.safetensors", shard_bytes=size)
    assert_same_bits(all_tensors(load(folder, registry=REGISTRY)), all_tensors(model_of(1)))
    single = sizes[1] in (None, 10**6)
    assert held(folder) == sorted(
        ["README.md", *(["model.safetensors"] if single else [*NAMES, INDEX])]
    )


def test_a_failure_before_the_index_is_swapped_leaves_the_old_shards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    replace = os.replace

    def broken(source: Any, target: Any) -> None:
        if str(target).endswith(".json"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(ArtifactError, match=r"the disk is full.*what was there is unchanged"):
        save(model_of(1), folder, shard_bytes=180)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_disk_without_links_still_holds_the_new_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refused)
    save(model_of(1), folder, shard_bytes=180)
    assert_same_bits(all_tensors(load(folder, registry=REGISTRY)), all_tensors(model_of(1)))
    assert len(held(folder)) == 3
    monkeypatch.undo()
    save(model_of(0), folder, shard_bytes=180)
    assert held(folder) == [*NAMES, INDEX]


def test_a_load_while_shards_are_swapped_gives_one_of_the_two_whole(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists, saved = os.path.exists, []

    def swapping(path: Any) -> bool:
        if str(path).endswith(NAMES[1]) and not saved:
            saved.append(1)
            save(model_of(1), folder, shard_bytes=180)
        return exists(path)

    monkeypatch.setattr(os.path, "exists", swapping)
    model = load(folder, registry=REGISTRY)
    assert saved
    assert_same_bits(all_tensors(model), all_tensors(model_of(1)))


def reindexed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index)
    (folder / INDEX).write_text(json.dumps(index))


def crossed(folder: Path) -> None:
    """One shard from a save of another model."""
    other = save(model_of(1), folder.parent / "other", shard_bytes=180)
    shutil.copy(other / NAMES[1], folder / NAMES[1])


def foreign(folder: Path) -> None:
    save_file({"seen": torch.arange(3)}, folder / NAMES[0], {"format": "pt"})


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing shard": (lambda f: (f / NAMES[1]).unlink(), f"not there: {NAMES[1]}"),
    "no index": (lambda f: (f / INDEX).unlink(), "is a directory without model.safetensors"),
    "index no json": (lambda f: (f / INDEX).write_text("{"), "is no readable index"),
    "index a list": (lambda f: (f / INDEX).write_text("[]"), "has no weight_map"),
    "index empty": (lambda f: reindexed(f, lambda i: i["weight_map"].clear()), "no weight_map"),
    "index says twice": (
        lambda f: (f / INDEX).write_text('{"weight_map": {"a": "b", "a": "c"}}'),
        "says something twice",
    ),
    "index deep": (lambda f: (f / INDEX).write_text("[" * 10**5), "is no readable index"),
    "above": (
        lambda f: reindexed(f, lambda i: i["weight_map"].update(seen="../x.safetensors")),
        "'../x.safetensors', which is no file of its own directory",
    ),
    "absolute": (
        lambda f: reindexed(f, lambda i: i["weight_map"].update(seen="/etc/x.safetensors")),
        "no file of its own directory",
    ),
    "hidden": (
        lambda f: reindexed(f, lambda i: i["weight_map"].update(seen=".x.safetensors")),
        "no file of its own directory",
    ),
    "no name": (
        lambda f: reindexed(f, lambda i: i["weight_map"].update(seen=3)),
        "no file of its own directory",
    ),
    "elsewhere": (
        lambda f: reindexed(f, lambda i: i["weight_map"].update(seen=NAMES[1])),
        f"seen is not in {NAMES[1]}",
    ),
    "shard not listed": (
        lambda f: reindexed(f, lambda i: i["weight_map"].pop("seen")),
        "not the parts of one model",
    ),
    "tensor not listed": (
        lambda f: rewrite(f / NAMES[0], lambda t: t.update(extra=torch.ones(2))),
        f"extra in {NAMES[0]} is not listed",
    ),
    "invented": (
        lambda f: reindexed(f, lambda i: i["weight_map"].update(extra=NAMES[0])),
        f"extra is not in {NAMES[0]}",
    ),
    "another model's index": (
        lambda f: reindexed(f, lambda i: i["metadata"].update(model="0" * 64)),
        "do not belong together",
    ),
    "another model's shard": (crossed, "do not belong together"),
    "foreign shard": (foreign, "holds no spec"),
    "shard forged": (
        lambda f: rewrite(f / NAMES[0], lambda t: t.update(seen=torch.zeros(3).long())),
        "do not belong together",
    ),
    "shard flipped": (
        lambda f: (f / NAMES[1]).write_bytes((f / NAMES[1]).read_bytes()[:-1] + b"\7"),
        "sha256 does not match",
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_shards_that_are_not_one_whole_model_are_refused(folder: Path, fault: str) -> None:
    damage, sentence = BAD[fault]
    damage(folder)
    with pytest.raises(ArtifactError) as caught:
        load(folder, verify=True, registry=REGISTRY)
    assert str(folder) in str(caught.value)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_shard_alone_is_no_model(folder: Path, name: str) -> None:
    with pytest.raises(ArtifactError, match=r"is shard ./2 of a model; name the directory"):
        load(folder / name, registry=REGISTRY)


@pytest.mark.parametrize("size", ["", "0", "two", "-1", "2XB", 0, -5])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: Any) -> None:
    with pytest.raises(ArtifactError, match="should read like 2000000000 or '2GB'"):
        save(model_of(), tmp_path / "m", shard_bytes=size)
    assert held(tmp_path) == []


@pytest.mark.parametrize("size", [180, "180", "180B", "0.18kB", "0.18 KB", "0.00018MB"])
def test_sizes_are_read_as_people_write_them(tmp_path: Path, size: Any) -> None:
    assert held(save(model_of(), tmp_path / "m", shard_bytes=size)) == [*NAMES, INDEX]


def test_shards_do_not_go_into_a_file_or_over_a_stranger_s_model(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="shards need a directory"):
        save(model_of(), tmp_path / "m.safetensors", shard_bytes=180)
    save_file({"a": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ArtifactError, match="a model that is not the zoo's"):
        save(model_of(), tmp_path, shard_bytes=180)
    assert held(tmp_path) == ["model.safetensors"]


def test_a_stranger_s_shards_beside_a_saved_file_are_left_alone(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / NAMES[0])
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": NAMES[0]}}))
    save(model_of(), tmp_path / "model.safetensors")
    assert held(tmp_path) == sorted(["model.safetensors", NAMES[0], INDEX])


def test_tensors_without_a_model_are_written_as_one_and_checked(tmp_path: Path) -> None:
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
    with pytest.raises(ArtifactError, match="its spec does not hold here"):
        write({"zoo": 1}, None, tensors, tmp_path / "x", **options)
    assert held(tmp_path) == ["m.safetensors", "shards"]


def test_the_caller_s_tensors_are_not_copied_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zoo.artifact.saving as saving

    seen: list[int] = []
    monkeypatch.setattr(
        saving, "record_probe", lambda model: seen.append(model.read.weight.data_ptr())
    )
    model = model_of()
    tensors = {"read.weight": model.read.weight.detach(), "seen": model.seen}
    write(model.spec, None, tensors, tmp_path / "m", registry=REGISTRY)
    assert seen == [model.read.weight.data_ptr()]


def test_a_file_put_together_by_hand_loads_too(tmp_path: Path) -> None:
    """Else the forgeries of the kit would prove little."""
    file = save(model_of(), tmp_path / "one.safetensors")
    with safe_open(file, framework="pt") as opened:
        words = opened.metadata()
    write_file(file, words, load_file(file))
    assert_same_bits(
        all_tensors(load(file, verify=True, registry=REGISTRY)), all_tensors(model_of())
    )
