"""Small hostile arrays and folders of other libraries take little time and memory."""

import io
import struct
import zipfile

import pytest
from cost_kit import assert_cheap
from hf_model_kit import hf_model

from zoo.exchange.array_file import read_arrays
from zoo.exchange.import_plan import plan_import
from zoo.testing.limits import supports_limits

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")


def _npz(files, method=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return content.getvalue()


def _npy(shape, dtype="<f4"):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def _bomb(num_bytes):
    """Return a .npz file with an array of zeros, compressed to 1/1000 of its size."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w", force_zip64=True) as file,
    ):
        file.write(_npy((num_bytes // 4,)))
        for _ in range(num_bytes // 1_000_000):
            file.write(bytes(1_000_000))
    return content.getvalue()


def _many_entries(count):
    """Return an archive whose directory lists one file many times."""
    single = _npz([("a.npy", b"")])
    start = single.index(b"PK\x01\x02")
    end = single.index(b"PK\x05\x06")
    entry = single[start:end]
    tail = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(entry) * count, start, 0
    )
    return single[:start] + entry * count + tail


@pytest.fixture(scope="module")
def bomb():
    return _bomb(400_000_000)


def _arrays():
    return {
        "many entries": _many_entries(300_000),
        "huge shape": _npz([("a.npy", _npy((10**12,)))]),
        "shape that overflows": _npz([("a.npy", _npy((2**62, 2**62)))]),
        "shape of many digits": _npz([("a.npy", _npy(f"({'9' * 5_000},)"))]),
        "deep header": _npz([("a.npy", _npy("(" * 3_000))]),
        "long item": _npz([("a.npy", _npy((1,), "<U2000000000"))]),
        "objects": _npz([("a.npy", _npy((1,), "|O") + b"\x80\x04N.")]),
        "text": _npz([("a.npy", _npy((1,), "<U2") + bytes(8))]),
        "not an array": _npz([("a.npy", b"text")]),
        "hostile name": _npz([("\x1b[2J\n.npy", _npy((0,)))]),
        "one array": _npy((10**12,)),
        "lzma": _npz([("a.npy", _npy((1,)) + bytes(4))], zipfile.ZIP_LZMA),
        "cut": _npz([("a.npy", _npy((1,)) + bytes(4))])[:60],
    }


def test_hostile_arrays_are_rejected_in_little_time_and_memory(tmp_path, bomb):
    cases = {}
    for label, content in {"bomb": bomb, **_arrays()}.items():
        assert len(content) < 20_000_000
        file = tmp_path / f"{label}.npz"
        file.write_bytes(content)
        cases[label] = (read_arrays, file)
    assert_cheap(cases, rejected=True)


JSON = {
    "objects": ("[", "{},", "0]"),
    "objects of one key": ("[", '{"":0},', "0]"),
    "lists": ("[", "[],", "0]"),
    "keys": ("{", '"{}":1,', '"a":0}'),
    "strings": ("[", '"ab",', "0]"),
    "numbers": ("[", "0.1,", "0]"),
    "levels": ("", "[", ""),
    "string without an end": ('"', '\\"', ""),
    "vocabulary": ('{"model":{"type":"WordLevel","unk_token":"a","vocab":{', '"{}":1,', '"a":0}}}'),
    "added tokens": ('{"added_tokens":[', '{"content":"{}","id":1},', "0]}"),
}
FILES = {
    "config.json": 9_900_000,
    "model.safetensors.index.json": 9_900_000,
    "generation_config.json": 990_000,
    "tokenizer.json": 19_900_000,
    "tokenizer_config.json": 19_900_000,
}


def _json(label, size):
    start, repeated, end = JSON[label]
    if "{}" in repeated[1:]:
        parts, length = [], 0
        while length < size:
            parts.append(repeated.replace("{}", str(len(parts))))
            length += len(parts[-1])
        return start + "".join(parts) + end
    return start + repeated * (size // len(repeated)) + end


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith("tokenizer") else ())
        for name in FILES
    ],
)
def test_hostile_json_of_a_folder_takes_little_time_and_memory(tmp_path, name):
    hf_model("gpt2").save_pretrained(tmp_path / "saved")
    cases = {}
    for label in JSON:
        folder = tmp_path / label
        folder.mkdir()
        for file in (tmp_path / "saved").iterdir():
            (folder / file.name).symlink_to(file)
        (folder / name).unlink(missing_ok=True)
        if name.endswith("index.json"):
            (folder / "model.safetensors").unlink()
        (folder / name).write_text(_json(label, FILES[name]))
        cases[label] = (plan_import, folder)
    # The tokenizers library takes several seconds for a vocabulary of 1.5 million words.
    assert_cheap(cases, cpu_seconds=15 if name.startswith("tokenizer") else 5)


@pytest.mark.parametrize("suffix", [".pt", ".bin", ".npz", ".npy", ".safetensors"])
def test_pickles_and_archives_are_rejected_without_being_read(tmp_path, suffix, bomb):
    file = tmp_path / f"weights{suffix}"
    file.write_bytes(bomb)
    options = {"spec": "rnn-lm", "map": {"zoo": 1}}
    assert_cheap({suffix: (lambda: plan_import(file, **options),)}, rejected=True)
