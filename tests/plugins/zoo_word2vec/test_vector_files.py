"""Vector files: round trips, exchange with gensim, and corrupt files."""

import numpy as np
import pytest
from gensim.models import KeyedVectors

from zoo import ZooError
from zoo_word2vec import Vectors


@pytest.mark.parametrize("file_format", ["word2vec", "word2vec-binary", "glove"])
def test_every_format_is_lossless(vectors, file_format, tmp_path):
    vectors.write(tmp_path / "v", file_format)
    again = Vectors.read(tmp_path / "v")
    assert list(again.words) == list(vectors.words)
    assert np.array_equal(again.matrix, vectors.matrix)


@pytest.mark.filterwarnings(
    "ignore:unclosed file:ResourceWarning"
)  # gensim, for files without a header
@pytest.mark.parametrize("file_format", ["word2vec", "word2vec-binary", "glove"])
def test_gensim_reads_our_files(vectors, file_format, tmp_path):
    vectors.write(tmp_path / "v", file_format)
    theirs = KeyedVectors.load_word2vec_format(
        tmp_path / "v", binary=file_format.endswith("binary"), no_header=file_format == "glove"
    )
    assert theirs.index_to_key == list(vectors.words)
    assert np.array_equal(theirs.vectors, vectors.matrix)


@pytest.mark.parametrize("binary", [False, True])
def test_files_of_gensim_are_read(vectors, binary, tmp_path):
    theirs = KeyedVectors(5)
    theirs.add_vectors(vectors.words, vectors.matrix)
    theirs.save_word2vec_format(tmp_path / "v", binary=binary)
    ours = Vectors.read(tmp_path / "v")
    assert list(ours.words) == theirs.index_to_key
    np.testing.assert_allclose(ours.matrix, theirs.vectors, rtol=1e-6)


def test_words_with_spaces_and_repeated_words(tmp_path):
    (tmp_path / "v").write_text("at home 1 2\nat 3 4\nat 5 6\n", encoding="utf-8")
    (tmp_path / "w").write_text("at 1 2\nat home 3 4\nat 5 6\n", encoding="utf-8")
    read = Vectors.read(tmp_path / "w")
    assert list(read.words) == ["at", "at home"]
    assert read["at"].tolist() == [1, 2]
    with pytest.raises(ZooError, match="line 1 is not a word and 3 numbers"):
        Vectors.read(tmp_path / "v")


@pytest.mark.parametrize("header", [b"", b"2 2\n"])
def test_a_byte_order_mark_is_skipped(header, tmp_path):
    (tmp_path / "v").write_bytes(b"\xef\xbb\xbf" + header + b"at 1 2\nhome 3 4\n")
    assert list(Vectors.read(tmp_path / "v").words) == ["at", "home"]


CORRUPT = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n", "line 1 is empty"),
    "no numbers": (b"word\n", "line 1 has a word and no numbers"),
    "letters": (b"a 1 2\nb 1 x\n", "line 2 is not a word and 2 numbers"),
    "huge": (b"a 1e39\n", "line 1 is not a word and 1 finite numbers"),
    "narrow": (b"2 2\na 1 2 3\nb 1 2 3\n", "size 2, but line 2 has 3"),
    "wide": (b"2 4\na 1 2 3\nb 1 2 3\n", "size 4, but line 2 has 3"),
    "digits": (b"1" * 5000 + b" 2\na 1 2\n", "number of more than 18 digits"),
    "short": (b"2 3\na 1 2 3\nb 1 2\n", "line 3 is not a word and 3"),
    "nan": (b"a 1 nan\n", "line 1 is not a word and 2 finite numbers"),
    "count": (b"3 2\na 1 2\nb 1 2\n", "3 words, but the file has 2"),
    "too many": (b"999999999 300\nab", "999,999,999 words of size 300, more than 16 bytes"),
    "no words": (b"0 5\n", "0 words of size 5"),
    "not utf-8": (b"a 1 2\n\xff\xfe 1 2\n", "line 2 is not UTF-8"),
    "truncated": (b"1 2\na \x00\x00\x80?\x00\x00", "ends in the vector of word 1 of 1"),
    "truncated word": (b"1 2\nabcdefgh\x00", "ends in word 1"),
    "long word": (b"1 2\n\x00" + b"a" * 20_000, "word 1 has more than 10,000 bytes"),
    "longer": (b"1 1\na \x00\x00\x80?b \x00", "continues after the 1 words"),
    "much longer": (b"1 1\na \x00\x00\x80?\n\n\nb", "continues after the 1 words"),
    "empty word": (b"1 1\n \x00\x00\x80?", "word 1 is empty"),
    "infinite": (b"1 1\na \x00\x00\x80\x7f", "numbers that are not finite"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_file_is_rejected(name, tmp_path):
    content, problem = CORRUPT[name]
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ZooError, match=r"is not a valid vector file: .*" + problem):
        Vectors.read(tmp_path / "v")


def test_random_damage_is_read_or_rejected(vectors, tmp_path):
    rng = np.random.default_rng(0)
    for file_format in ("word2vec", "word2vec-binary", "glove"):
        vectors.write(tmp_path / "v", file_format)
        content = (tmp_path / "v").read_bytes()
        for _ in range(200):
            broken = bytearray(content[: rng.integers(1, len(content) + 1)])
            broken[rng.integers(len(broken))] = rng.integers(256)
            (tmp_path / "w").write_bytes(broken)
            try:
                read = Vectors.read(tmp_path / "w")
            except ZooError:
                continue
            assert np.isfinite(read.matrix).all()
