"""Small hostile arrays and folders of other libraries take little time and memory."""

import pytest
from cost_kit import assert_cheap
from hf_model_kit import hf_model
from hostile_files_kit import many_entries, npy, npz, npz_bomb

from zoo.testing.laws.cost import supports_limits
from zoo_exchange.array_file import read_arrays
from zoo_exchange.import_plan import plan_import

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")


ARRAYS = {
    "text": npz([("a.npy", npy((1,), "<U2", bytes(8)))]),
    "hostile name": npz([("\x1b[2J\n.npy", npy((0,)))]),
    "one array": npy((10**12,)),
    "many": many_entries(20_000),
}
"""Those that other readers accept; `tests/test_hostile_files.py` has the rest."""


def test_hostile_arrays_are_rejected_in_little_time_and_memory(tmp_path):
    cases = {}
    for label, content in ARRAYS.items():
        (tmp_path / label).write_bytes(content)
        cases[label] = (read_arrays, tmp_path / label)
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
def test_pickles_and_archives_are_rejected_without_being_read(tmp_path, suffix):
    file = tmp_path / f"weights{suffix}"
    file.write_bytes(npz_bomb(50_000_000))
    options = {"spec": "rnn-lm", "map": {"zoo": 1}}
    assert_cheap({suffix: (lambda: plan_import(file, **options),)}, rejected=True)
