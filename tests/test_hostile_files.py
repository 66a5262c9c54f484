"""Every reader of files takes little time and memory for small hostile files."""

import gzip
import json
import tarfile

import hostile_files_kit as kit
import numpy as np
import pytest
from cost_kit import assert_cheap

import zoo
from zoo.data import archive, bounds, files
from zoo.data.text_lines import TextLines
from zoo.plugin import FileBytes, read_audio, read_image
from zoo.testing.laws.cost import supports_limits
from zoo_datasets.array_rows import open_arrays, open_idx, read_npz
from zoo_datasets.arrays import Arrays
from zoo_datasets.delta_audio import DeltaAudio
from zoo_datasets.graph_files import read_graph_arrays
from zoo_exchange import array_file
from zoo_exchange.array_file import read_arrays
from zoo_preprocessing.audio import Audio
from zoo_preprocessing.split_text import EXAMPLE_PIECES, SplitText

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")

BOMB = 50_000_000


@pytest.fixture(autouse=True)
def small_bounds(tmp_path, monkeypatch):
    """Lower the bounds, so that files which exceed them are made and read in little time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(bounds, "MAX_BYTES", 20_000_000)
    monkeypatch.setattr(files, "MAX_IN_MEMORY", 1_000_000)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 1_000)
    monkeypatch.setattr(array_file, "MAX_SMALL_BYTES", 20_000_000)


def _check(tmp_path, files, *readers):
    """Assert that each reader rejects each file, in little time and memory."""
    cases = {}
    for name, content in files.items():
        assert len(content) < 20_000_000
        (tmp_path / name).write_bytes(content)
        for reader in readers:
            cases[f"{reader.__name__} {name}"] = (reader, tmp_path / name)
    assert_cheap(cases, rejected=True)


def _read(path):
    FileBytes(path).read()


def _read_lines(path):
    list(TextLines(path))


def _read_member(path):
    FileBytes(path / "a.txt").read()


def _read_delta(path):
    index = path.with_suffix(".tsv")
    index.write_text("label\tsamples\na\t1\n")
    DeltaAudio(file=str(path), index=str(index), rate=8000, target="label").open()


def _read_rows(path):
    dataset = Arrays(file=str(path), fields={"array": {"dims": ["S"]}})
    list(range(len(dataset.open())))


def _read_and_resample(path):
    Audio(rate=16_000, resample=True, schema=Audio.example_schema()).encode(read_audio(path))


@pytest.mark.parametrize("suffix", kit.COMPRESSIONS)
def test_compressed_files(tmp_path, suffix):
    bombs = {f"a{suffix}": kit.compressed_zeros(suffix, BOMB)}
    _check(tmp_path, bombs, _read, _read_lines, _read_delta)


def test_archives(tmp_path):
    _check(
        tmp_path,
        {
            "pax.tar.gz": kit.tar_of_headers(tarfile.XHDTYPE, 10_000_000),
            "global.tar.gz": kit.tar_of_headers(tarfile.XGLTYPE, 10_000_000),
            "long-name.tar.gz": kit.tar_of_headers(tarfile.GNUTYPE_LONGNAME, 10_000_000),
            "long-link.tgz": kit.tar_of_headers(tarfile.GNUTYPE_LONGLINK, 10_000_000),
            "member.tar.gz": kit.tar_of_headers(tarfile.REGTYPE, BOMB),
            "many.tar.gz": kit.tar_of_many(2_000),
            "deep.tar.gz": kit.deep_tar(5_000),
            "cut.tar": kit.tar_header(tarfile.REGTYPE, 7 * 1024**3),
            "negative.tar": kit.negative_tar(),
            "sparse.tar": kit.tar_header(tarfile.GNUTYPE_SPARSE, 8),
        },
        _read_member,
    )


ARRAYS = {
    "huge shape": kit.npy((10**12,)),
    "shape that overflows": kit.npy((2**62, 2**62)),
    "shape of many digits": kit.npy(f"({'9' * 5_000},)"),
    "rows without values": kit.npy((10**12, 0)),
    "values without bytes": kit.npy((10**12,), "|V0"),
    "deep header": kit.npy("(" * 3_000),
    "header of operators": kit.npy("-" * 3_000 + "1"),
    "long item": kit.npy((1,), "<U2000000000"),
    "objects": kit.npy((1,), "|O", b"\x80\x04N."),
    "header without an end": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    "unknown version": b"\x93NUMPY\x09\x09" + kit.npy((1,))[8:],
    "not an array": b"text",
}


def test_array_files(tmp_path):
    files = {f"{label}.npy": content for label, content in ARRAYS.items()}
    _check(tmp_path, files, lambda path: open_arrays(str(path)), _read_rows)


def test_archives_of_arrays(tmp_path):
    files = {label: kit.npz([("a.npy", content)]) for label, content in ARRAYS.items()}
    bomb = kit.npz_bomb(BOMB)
    files |= {
        "bomb": bomb,
        "lying": kit.lying_npz(BOMB),
        "many": kit.many_entries(300_000),
        "lzma": kit.npz([("a.npy", kit.npy((1,), data=bytes(4)))], 14),
        "cut": kit.npz([("a.npy", kit.npy((1,), data=bytes(4)))])[:60],
    }
    readers = [lambda path: read_npz(str(path)), lambda path: read_graph_arrays(str(path))]
    _check(tmp_path, {f"{k}.npz": v for k, v in files.items()}, *readers, read_arrays)
    # Many zeros compress to few, which compress again.
    _check(tmp_path, {"bomb.npz.gz": gzip.compress(kit.npz_bomb(BOMB))}, *readers)


def test_idx_files(tmp_path):
    files = {"rows": kit.idx(2**31, 0, 5), "values": kit.idx(2**31, 2**31, 2**31)}
    _check(tmp_path, files, lambda path: open_idx(str(path)))


def test_audio_files(tmp_path):
    rates = {f"{rate}.wav": kit.wav(rate=rate) for rate in (2**32 - 5, 999_983)}
    rates |= {"slow.wav": kit.wav(samples=200_000, rate=1)}
    _check(tmp_path, rates, _read_and_resample)
    files = {
        "long.flac": kit.flac(20_000_000),
        "lying.flac": kit.flac(1, declared=2**36 - 1),
    }
    _check(tmp_path, files, read_audio)


def test_a_wav_file_that_declares_more_than_it_has_takes_the_memory_of_what_it_has(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(kit.wav(samples=50, data_bytes=2**32 - 1))
    assert_cheap({"read": (read_audio, path)})
    assert len(read_audio(path).samples) == 50


def test_images(tmp_path):
    files = {"wide.png": kit.png(2**31 - 1, 1), "large.png": kit.png(20_000, 20_000)}
    _check(tmp_path, files, read_image, lambda path: read_image(path.read_bytes()))


def _tokenizer(**parts):
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"a": 0, "<unk>": 1}, "unk_token": "<unk>"},
    }
    return json.dumps(data | parts)


def _replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def _template(single, ids):
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"a": {"id": "a", "ids": ids, "tokens": ["a"] * len(ids)}},
    }


_A = {"Sequence": {"id": "A", "type_id": 0}}
_SPECIAL = {"SpecialToken": {"id": "a", "type_id": 0}}
_TENFOLD = _replace({"String": "a"}, "a" * 10)
TOKENIZERS = {
    "replaced": {"normalizer": _replace({"String": "a"}, "b" * 10_000_000)},
    "replaced by a pattern": {"normalizer": _replace({"Regex": "(?=a)"}, "b" * 10_000_000)},
    "tenfold nine times": {"normalizer": {"type": "Sequence", "normalizers": [_TENFOLD] * 9}},
    "prepended": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Prepend", "prepend": "aaaaaaaa"}, *[_TENFOLD] * 7],
        }
    },
    "special tokens": {"post_processor": _template([_A, _SPECIAL], [0] * 1_000_000)},
    "special token often": {"post_processor": _template([_A] + [_SPECIAL] * 200_000, [0] * 99)},
    "text many times": {"post_processor": _template([_A] * 200_000, [0])},
}


@pytest.mark.parametrize("label", TOKENIZERS)
def test_tokenizers_that_lengthen_texts(label):
    text = _tokenizer(**TOKENIZERS[label])

    def encode():
        zoo.plugin.Tokenizer(text).encode(["a" * 100] * 100)

    assert_cheap({label: (encode,)}, rejected=True)


def test_tokenizers_whose_tokens_lengthen_texts():
    vocab = {"a" * 2_000_000: 0, "<unk>": 1}
    long = _tokenizer(model={"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"})
    decoder = {"type": "Sequence", "decoders": [_TENFOLD] * 9}

    def decode(text):
        zoo.plugin.Tokenizer(text).decode([0] * 1000)

    cases = {"long": (decode, long), "decoder": (decode, _tokenizer(decoder=decoder))}
    assert_cheap(cases, rejected=True)


def _split(data):
    schema = SplitText.example_schema()
    part = SplitText(rate=1.0, schema=schema, stored=json.dumps(data))
    part.transform("source", np.zeros(4, np.int64), np.random.default_rng(0))


def test_merges_that_never_end():
    data = json.loads(EXAMPLE_PIECES)
    prefix = json.loads(EXAMPLE_PIECES)
    data["model"] |= {"vocab": {"": 1, "a": 0}, "merges": [["", "a"]]}
    prefix["model"] |= {
        "continuing_subword_prefix": "##",
        "vocab": {"##b": 0, "##": 1},
        "merges": [["##", "##b"]],
    }
    assert_cheap({"empty": (_split, data), "prefix": (_split, prefix)})


def test_token_ids_that_are_too_large():
    data = json.loads(EXAMPLE_PIECES)
    data["model"]["vocab"]["cat"] = 2**32 - 1
    assert_cheap({"large": (_split, data)}, rejected=True)


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    path = tmp_path / "a.gz"
    path.write_bytes(kit.compressed_zeros(".gz", 30_000_000))
    with pytest.raises(zoo.DataError, match="set ZOO_MAX_BYTES to raise the limit"):
        FileBytes(path)
    monkeypatch.setenv("ZOO_MAX_BYTES", "40000000")
    assert len(FileBytes(path)) == 30_000_000
    monkeypatch.setenv("ZOO_MAX_BYTES", "many")
    with pytest.raises(zoo.ZooError, match="ZOO_MAX_BYTES is 'many'; expected a number of bytes"):
        FileBytes(path)
