"""The file of the index: damage, limits and the number of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zoo.cli.index import store
from zoo.cli.index.store import read_data, write_data

DATA = {"index": ["text", 1, None]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "zoo" / "index-0.json"
    assert write_data(path, DATA)
    return path


def test_data_is_restored(file: Path) -> None:
    assert read_data(file) == DATA


def test_every_damaged_byte_is_detected(file: Path) -> None:
    content = file.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        assert read_data(file) is None
    for length in range(len(content)):
        file.write_bytes(content[:length])
        assert read_data(file) is None


def test_missing_and_other_files_are_ignored(file: Path) -> None:
    assert read_data(file.parent) is None
    assert read_data(file.parent / "missing") is None
    file.write_bytes(b"\xff\xfe\n{}")
    assert read_data(file) is None


def test_a_file_that_is_too_large_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_BYTES", 10)
    assert read_data(file) is None


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    files = [tmp_path / f"index-{number}.json" for number in range(store.MAX_FILES + 3)]
    for number, file in enumerate(files):
        assert write_data(file, DATA)
        os.utime(file, (number, number))
    assert sorted(tmp_path.iterdir()) == sorted(files[3:])
