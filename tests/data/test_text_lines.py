import bz2
import gzip
import lzma
import os
import pickle
import random
import re
import subprocess
import sys

import pytest

from zoo import DataError
from zoo.files import split_lines
from zoo.plugin import TextLines


@pytest.mark.parametrize("seed", range(8))
def test_lines_are_those_of_split_lines(tmp_path, seed):
    rng = random.Random(seed)
    words = ["", "a", "größer", "x y", "\x0b", "\u2028", "a\rb", "b" * rng.randint(1, 3000)]
    lines = [rng.choice(words) for _ in range(rng.choice([0, 1, 15, 16, 17, 32, 1000]))]
    text = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    found = TextLines(path)
    expected = split_lines(text)
    assert len(found) == len(expected)
    assert list(found) == expected
    copy = pickle.loads(pickle.dumps(found))
    order = list(range(len(expected)))
    rng.shuffle(order)
    assert [copy[i] for i in order] == [expected[i] for i in order]
    with pytest.raises(IndexError):
        found[len(expected)]


def test_lines_longer_than_a_chunk_are_whole(tmp_path):
    lines = ["a" * 3_000_000, "b", "c" * 1_500_000]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert list(TextLines(tmp_path / "a.txt")) == lines


def test_a_compressed_file_has_the_same_lines(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("größer\nzwei\n".encode()))
    assert list(TextLines(tmp_path / "a.txt.gz")) == ["größer", "zwei"]


def test_a_byte_order_mark_is_removed(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\n\ufefftwo".encode())
    assert list(TextLines(tmp_path / "a.txt")) == ["one", "\ufefftwo"]


def test_undecodable_bytes_raise_with_file_and_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n" * 20 + b"tw\xe9\nthree\n")
    lines = TextLines(path)
    assert lines[21] == "three"
    with pytest.raises(DataError, match=r"a.txt:21: byte 0xe9 at position 3 is not valid UTF-8"):
        lines[20]


def test_an_empty_line_raises_only_where_text_is_required(tmp_path):
    (tmp_path / "a.txt").write_text("one\n \n")
    lines = TextLines(tmp_path / "a.txt")
    assert lines[1] == " "
    with pytest.raises(DataError, match=r"a.txt:2: the line is empty"):
        lines.require(1)


_LIMITED = """
import random, resource, sys
from zoo.data.text_lines import TextLines
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 40_000_000, resource.RLIM_INFINITY))
lines = TextLines(sys.argv[1])
assert len(lines) == 1_500_000, len(lines)
rng = random.Random(0)
for index in (0, 1_499_999, *(rng.randrange(1_500_000) for _ in range(2_000))):
    assert lines[index] == f"{index:099d}", index
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_a_file_larger_than_the_memory_is_read(tmp_path):
    path = tmp_path / "large.txt"
    with path.open("w") as file:
        for start in range(0, 1_500_000, 10_000):
            file.write("".join(f"{i:099d}\n" for i in range(start, start + 10_000)))
    assert path.stat().st_size == 150_000_000  # the limit is 40 MB above the imported libraries
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(path)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("\ufeffone\ntwo\n".encode(encoding))
    with pytest.raises(DataError, match=r"a\.txt:1: the file is UTF-16; convert it to UTF-8"):
        TextLines(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PAR1\x15\x04\x15", "Parquet, not text; use the dataset hf-datasets"),
        (b"ARROW1\0\0", "Arrow, not text; use the dataset hf-datasets"),
        (gzip.compress(b"a\n", mtime=0), "compressed by gzip; its name must end in .gz"),
        (bz2.compress(b"a\n"), "compressed by bzip2; its name must end in .bz2"),
        (lzma.compress(b"a\n"), "compressed by xz; its name must end in .xz"),
        (b"\x28\xb5\x2f\xfd\x04", "compressed by Zstandard"),
        (b"PK\x03\x04\x14", "an Excel workbook (.xlsx), not text"),
        (b"SQLite format 3\0", "an SQLite database"),
    ],
)
def test_binary_files_are_rejected_with_their_format(tmp_path, content, reason):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=re.escape(reason)):
        TextLines(tmp_path / "a.csv")


@pytest.mark.parametrize("text", ["PAR1 a", "BZh a", "ARROW1 a", "PK a", "SQLite"])
def test_texts_that_begin_like_binary_files_are_read(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    assert list(TextLines(tmp_path / "a.txt")) == [text]
