"""The cache: damaged entries are made again, leftovers removed, unwritable folders named."""

import gzip
import os
import pickle
import subprocess
import sys

import pytest

from zoo import ZooWarning
from zoo.data import cache, files, token_cache
from zoo.data.cache import cache_folder, entry_name, read_entry, write_entry
from zoo.plugin import FileBytes

NAME = entry_name("a")
CONTENT = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return the folder of the cache, which is used for content of more than 10 bytes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(files, "MAX_IN_MEMORY", 10)
    monkeypatch.setattr(token_cache, "MAX_IN_MEMORY", 10)
    return cache_folder()


def _write(target):
    (target / "a").write_bytes(b"first")
    (target / "b").write_bytes(b"second")
    return {"count": 2}


def _alter(path, change):
    """Change a file, but not its size and the time of its content."""
    state = path.stat()
    content = change(path.read_bytes())
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


DAMAGES = {
    "altered": ("a", lambda content: b"FIRST"),
    "one bit": ("b", lambda content: bytes([content[0] ^ 1]) + content[1:]),
    "empty": ("a", lambda content: b""),
    "longer": ("b", lambda content: content + b"0"),
    "description": ("meta.json", lambda content: content.replace(b'"count": 2', b'"count": 3')),
    "description that is not JSON": ("meta.json", lambda content: content[:-1]),
    "description of bytes": ("meta.json", lambda content: b"\xff"),
    "description that is a list": ("meta.json", lambda content: b"[]"),
    "description without files": ("meta.json", lambda content: b"{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_written_again(folder, damage):
    write_entry(NAME, _write)
    assert read_entry(NAME).description == {"count": 2}
    name, change = DAMAGES[damage]
    _alter(folder / NAME / name, change)
    assert read_entry(NAME) is None
    assert write_entry(NAME, _write).description == {"count": 2}
    assert read_entry(NAME).description == {"count": 2}
    assert (folder / NAME / "a").read_bytes() == b"first"


def test_a_missing_file_and_a_folder_instead_of_a_file_are_damage(folder):
    write_entry(NAME, _write)
    (folder / NAME / "a").unlink()
    assert read_entry(NAME) is None
    (folder / NAME / "meta.json").unlink()
    (folder / NAME / "meta.json").mkdir()
    assert read_entry(NAME) is None


@pytest.mark.parametrize("name", ["a", "meta.json"])
def test_a_folder_instead_of_a_file_is_replaced(folder, name):
    write_entry(NAME, _write)
    (folder / NAME / name).unlink()
    (folder / NAME / name / "inner").mkdir(parents=True)
    assert write_entry(NAME, _write).description == {"count": 2}
    assert (folder / NAME / "a").read_bytes() == b"first"
    assert read_entry(NAME).description == {"count": 2}


def test_a_damaged_decompressed_file_is_not_read(folder, tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT))
    FileBytes(path)
    (content,) = folder.rglob("content")
    _alter(content, lambda old: old[::-1])
    assert FileBytes(path).read() == CONTENT


def test_a_source_of_the_same_size_and_time_is_decompressed_again(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT, mtime=0))
    FileBytes(path)
    size = path.stat().st_size
    _alter(path, lambda old: gzip.compress(CONTENT[::-1], mtime=0))
    assert path.stat().st_size == size
    assert FileBytes(path).read() == CONTENT[::-1]


KILLED = """
import os, signal, sys
from pathlib import Path
from zoo.data.cache import write_entry

def write(folder):
    (folder / "a").write_bytes(bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)

write_entry(sys.argv[1] or None, write)
"""


@pytest.mark.parametrize("name", [entry_name("b"), ""], ids=["cache", "temporary folder"])
def test_what_a_killed_process_leaves_is_removed_by_the_next(folder, tmp_path, name):
    process = subprocess.run([sys.executable, "-c", KILLED, name], check=False)
    assert process.returncode == -9
    left = {path for path in tmp_path.rglob("*.part") if path.is_dir()}
    assert len(left) == 1
    entry = write_entry(NAME if name else None, _write)
    assert all(path.stat().st_size < 1000 for path in tmp_path.rglob("a"))
    assert not left & set(tmp_path.rglob("*.part"))
    entry.close()
    assert sorted(path.name for path in folder.glob("*")) == ([NAME] if name else [])


def test_what_a_running_process_writes_stays(folder):
    def write(target):
        write_entry(NAME, _write)
        return _write(target)

    other = write_entry(entry_name("b"), write)
    assert read_entry(NAME)
    assert read_entry(entry_name("b"))
    assert other.description == {"count": 2}


def test_an_unwritable_cache_is_named_and_not_needed(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT))
    with pytest.warns(
        ZooWarning, match=r"cache folder .*file cannot be written: not a dir.*XDG_CA"
    ):
        file = FileBytes(path)
    copied = pickle.loads(pickle.dumps(file))
    assert file.read() == copied.read() == CONTENT
    (temporary,) = tmp_path.glob(".zoo-data.*.part")
    del file
    assert not temporary.exists()


def test_a_user_without_a_cache_needs_none(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "user_cache", lambda: None)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT))
    with pytest.warns(ZooWarning, match="no cache directory; set XDG_CACHE_HOME"):
        assert FileBytes(path).read() == CONTENT
