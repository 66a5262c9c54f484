"""Encoded examples in files: the same as in memory, written once, valid only for their data."""

import json
import os
import pickle
import threading

import numpy as np
import pytest
from data_kit import (
    SEQ2SEQ,
    DigitLines,
    Digits,
    compose,
    parallel_columns,
    registered,
    text_batches,
)

from zoo.data import token_cache
from zoo.data.batches import open_batches
from zoo.errors import DataError, ZooError
from zoo.spec.training import Batching


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the cache folder, which is used from the first chunk on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(token_cache, "MAX_IN_MEMORY", 1)
    return tmp_path / "cache" / "zoo" / "data"


def _write(folder, count=30, seed=0):
    for key, texts in parallel_columns(count, seed).items():
        (folder / key).write_text("\n".join(texts) + "\n")
    return registered(DigitLines, source=str(folder / "source"), target=str(folder / "target"))


def _open(dataset, **options):
    model = compose(SEQ2SEQ["name"])
    schema = model.batch_schema()
    model.spec = {**model.spec, "preprocessing": {"source": {}, "target": {}}}
    preprocessors = {key: Digits(schema=schema[key]) for key in schema}
    return open_batches(dataset, model, preprocessors, Batching(items=7), seed=0, **options)


def _contents(batches):
    return [
        (update.examples, {key: t.tolist() for key, t in update.batches[0].items()})
        for update in batches.epoch(0)
    ]


def test_files_give_the_batches_of_memory_and_are_written_once(cache, tmp_path, monkeypatch):
    dataset = _write(tmp_path)
    written = _contents(_open(dataset))
    (folder,) = cache.iterdir()
    names = {"rows", "meta.json", *(f"{k}.{n}" for k in ("source", "target") for n in _PARTS)}
    assert {path.name for path in folder.iterdir()} == names
    calls = []
    monkeypatch.setattr(Digits, "encode_many", lambda self, values: calls.append(values))
    assert _contents(_open(dataset)) == written
    assert calls == []
    monkeypatch.undo()
    assert _contents(_open(dataset)) == written


_PARTS = ("tokens", "offsets")


def test_changed_files_options_and_damaged_folders_are_encoded_again(cache, tmp_path):
    dataset = _write(tmp_path)
    first = _contents(_open(dataset))
    (folder,) = cache.iterdir()
    (folder / "target.tokens").write_bytes(b"")
    assert _contents(_open(dataset)) == first
    assert list(cache.iterdir()) == [folder]
    assert _contents(_open(_write(tmp_path, seed=1))) != first
    assert len(list(cache.iterdir())) == 2
    _open(dataset, bad_data="skip")
    assert len(list(cache.iterdir())) == 3


def test_a_file_with_the_size_and_time_of_the_old_one_is_encoded_again(cache, tmp_path):
    dataset = _write(tmp_path, count=200)
    first = _contents(_open(dataset))
    path = tmp_path / "source"
    stat, old = path.stat(), path.read_text()
    lines = old.splitlines()
    lines[150] = " ".join("w9" if len(word) == 2 else "w19" for word in lines[150].split())
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert path.stat().st_mtime_ns == stat.st_mtime_ns
    assert _contents(_open(dataset)) != first


def test_another_version_encodes_again(cache, tmp_path, monkeypatch):
    dataset = _write(tmp_path)
    _open(dataset)
    monkeypatch.setattr(token_cache, "version", lambda: "999")
    _open(dataset)
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr(Digits, "version", 2)
    _open(dataset)
    assert len(list(cache.iterdir())) == 3


def test_an_error_leaves_no_valid_folder(cache, tmp_path):
    dataset = _write(tmp_path, count=1500)
    lines = (tmp_path / "source").read_text().splitlines()
    lines[1400] = "wrong"
    (tmp_path / "source").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match="source:1401: 'wrong' is not a text"):
        _open(dataset)
    (folder,) = cache.iterdir()
    assert list(folder.iterdir()) == []
    for _ in range(2):
        batches = _open(dataset, bad_data="skip")
        assert batches.skipped == {"'wrong' is not a text of numbered words": 1}


def test_threads_that_need_one_folder_write_it_once(cache, tmp_path, monkeypatch):
    dataset = _write(tmp_path, count=1500)
    writes, found = [], []
    write = token_cache.write_chunks
    monkeypatch.setattr(token_cache, "write_chunks", lambda *args: writes.append(1) or write(*args))
    threads = [
        threading.Thread(target=lambda: found.append(_contents(_open(dataset)))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(writes) == 1
    assert found[0] == found[1] == found[2]


def test_data_without_files_uses_a_temporary_folder_that_is_removed(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    columns = parallel_columns(40)
    batches = text_batches(columns, Batching(items=7))
    (folder,) = tmp_path.glob(".zoo-data.*.part")
    assert len(list(folder.iterdir())) == 5
    monkeypatch.setattr(token_cache, "MAX_IN_MEMORY", 10**6)
    assert _contents(batches) == _contents(text_batches(columns, Batching(items=7)))
    copied = pickle.loads(pickle.dumps(batches._source))
    np.testing.assert_equal(copied.lengths, batches._source.lengths)
    del batches, copied
    assert not folder.exists()
    assert not cache.exists()


@pytest.mark.skipif(os.geteuid() == 0 and not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_reported(cache, tmp_path, monkeypatch):
    dataset = _write(tmp_path)

    def fill(folder, chunks):
        for _ in chunks:
            with open("/dev/full", "wb") as file:
                file.write(b"0")
        return {}

    monkeypatch.setattr(token_cache, "write_chunks", fill)
    with pytest.raises(ZooError, match=r"cannot be written to .*: the disk is full .*XDG_CACHE"):
        _open(dataset)


def test_the_description_is_json(cache, tmp_path):
    _open(_write(tmp_path))
    (folder,) = cache.iterdir()
    meta = json.loads((folder / "meta.json").read_text())["description"]
    assert meta["dtypes"] == {"source": "uint8", "target": "uint8"}
    assert meta["skipped"] == {}
