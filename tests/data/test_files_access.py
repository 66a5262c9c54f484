"""Random access to files, compressed files and the paths of specs."""

import bz2
import gzip
import lzma
import pickle
from pathlib import Path

import pytest

from zoo import DataError
from zoo.data import bounds, files
from zoo.data.cache import cache_folder
from zoo.plugin import FileBytes, expand_path

CONTENT = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_variables_and_the_home_folder_are_expanded(monkeypatch):
    monkeypatch.setenv("ZOO_TEST", "/data")
    monkeypatch.setenv("HOME", "/home/me")
    assert expand_path("$ZOO_TEST/a.en") == Path("/data/a.en")
    assert expand_path("${ZOO_TEST}/a.en") == Path("/data/a.en")
    assert expand_path("~/a.en") == Path("/home/me/a.en")
    assert expand_path("a$.en") == Path("a$.en")


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(DataError, match=r"\$ZOO_UNSET/a.en: .*variable ZOO_UNSET is not set"):
        expand_path("$ZOO_UNSET/a.en")


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "hf_token", "GITHUBTOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"),
        *("WANDB_API_KEY", "MYSQL_PWD", "DATABASE_URL", "GH_PAT", "NETRC_CREDENTIALS"),
    ],
)
def test_a_secret_is_not_part_of_a_path_or_a_message(monkeypatch, name):
    monkeypatch.setenv(name, "hf_abcdef")
    for path in (f"${name}/x", f"data/${{{name}}}.gz"):
        with pytest.raises(DataError, match=f"variable {name} is not used in paths") as error:
            FileBytes(path)
        assert "abcdef" not in str(error.value)


@pytest.mark.parametrize("name", ["PWD", "TOKENIZERS", "KEYBOARD", "AUTHORS", "CURL_DIR", "DATA"])
def test_other_names_are_no_secrets(monkeypatch, name):
    monkeypatch.setenv(name, "/data")
    assert expand_path(f"${name}/a") == Path("/data/a")


def test_the_suffix_of_a_compression_is_removed():
    paths = ("a.npy.xz", "a.NPY", "a.tsv.gz", "a")
    assert [FileBytes.suffix_of(Path(path)) for path in paths] == [".npy", ".npy", ".tsv", ""]


@pytest.mark.parametrize("limit", [10, 10**6], ids=["cached", "in memory"])
@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_bytes_are_those_of_the_decompressed_file(tmp_path, monkeypatch, suffix, compress, limit):
    monkeypatch.setattr(files, "MAX_IN_MEMORY", limit)
    path = tmp_path / f"a{suffix}"
    path.write_bytes(compress(CONTENT))
    for _ in range(2):
        file = FileBytes(path)
        for each in (file, pickle.loads(pickle.dumps(file))):
            assert len(each) == len(CONTENT)
            assert each.read(300, 700) == CONTENT[300:700]
            assert each.read(10_000) == CONTENT[10_000:]
            assert b"".join(each.chunks()) == CONTENT
    cached = list(cache_folder().rglob("content")) if cache_folder().exists() else []
    assert len(cached) == (1 if suffix and limit == 10 else 0)


def test_a_changed_file_is_decompressed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_IN_MEMORY", 10)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT))
    FileBytes(path)
    path.write_bytes(gzip.compress(CONTENT[::-1]))
    assert FileBytes(path).read() == CONTENT[::-1]


@pytest.mark.parametrize("length", [20, 3])
@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_a_truncated_file_raises_with_its_name(tmp_path, suffix, compress, length):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(compress(CONTENT)[:length])
    with pytest.raises(DataError, match=rf"a\{suffix}: cannot be read"):
        FileBytes(path)


def test_what_is_not_a_file_raises_with_its_name(tmp_path):
    with pytest.raises(DataError, match=r"missing\.txt: no such file"):
        FileBytes(tmp_path / "missing.txt")
    with pytest.raises(DataError, match=f"{tmp_path}: it is a directory"):
        FileBytes(tmp_path)


def test_a_file_that_becomes_shorter_raises(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(CONTENT)
    file = FileBytes(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="shorter"):
        file.read(0, 10)


def test_descriptors_are_closed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(CONTENT)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        FileBytes(path).read(0, 1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_content_much_larger_than_its_file_is_rejected(tmp_path, monkeypatch, suffix, compress):
    monkeypatch.setattr(files, "MAX_IN_MEMORY", 10)
    monkeypatch.setattr(bounds, "MAX_BYTES", 1000)
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(compress(bytes(1_000_000)))
    with pytest.raises(DataError, match=r"bomb\..*more than .* bytes after decompression"):
        FileBytes(path)
    assert not list((tmp_path / "cache").rglob("content"))
    path.write_bytes(compress(bytes(1000)))
    assert len(FileBytes(path)) == 1000


def test_a_misspelt_name_of_a_file_is_suggested(tmp_path):
    (tmp_path / "stories.txt").write_text("a", encoding="utf-8")
    with pytest.raises(DataError, match=r"no such file; did you mean 'stories\.txt'\?"):
        FileBytes(tmp_path / "storis.txt")
    with pytest.raises(DataError, match=r"none: no such file$"):
        FileBytes(tmp_path / "none")
