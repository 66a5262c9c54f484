"""Files of models to import: shards, configs, pickles; nothing is executed."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import torch
from llama_kit import assert_same_logits, import_error, llama_registry, save_llama

import zoo
from zoo_exchange.unreadable_files import conversion_command


@pytest.fixture
def registry(tmp_path, monkeypatch):
    return llama_registry(tmp_path / "site", monkeypatch)


def test_shards_are_imported(tmp_path, registry):
    theirs = save_llama(tmp_path / "llama", max_shard_size="4KB")
    assert len(list((tmp_path / "llama").glob("*.safetensors"))) > 2
    zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors", registry=registry)
    assert_same_logits(tmp_path / "model.safetensors", theirs)


def test_code_in_a_folder_is_not_executed(tmp_path, registry):
    save_llama(tmp_path / "llama")
    trap = tmp_path / "llama" / "modeling_trap.py"
    trap.write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")
    file = tmp_path / "llama" / "config.json"
    config = json.loads(file.read_text()) | {"auto_map": {"AutoModel": "modeling_trap.Trap"}}
    file.write_text(json.dumps(config))
    zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors", registry=registry)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "T/x .*config.json.*--spec and --map"),
        ({"config.json": "{"}, "T/x/config.json .*JSON"),
        ({"config.json": "[]"}, "T/x/config.json .*object.*list"),
    ],
)
def test_a_folder_without_a_valid_config_raises(tmp_path, registry, files, message):
    (tmp_path / "x").mkdir()
    for name, text in files.items():
        (tmp_path / "x" / name).write_text(text)
    assert re.match(message, import_error(tmp_path, registry, "x"))


def test_a_missing_source_raises(tmp_path, registry):
    assert "T/x" in import_error(tmp_path, registry, "x")


def test_a_single_file_needs_a_spec_and_a_map(tmp_path, registry):
    save_llama(tmp_path / "llama")
    message = import_error(tmp_path, registry, "llama/model.safetensors")
    assert re.match(r"T/llama/model\.safetensors .*--spec and --map.*config\.json", message)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "x.ckpt", "w.npz"])
def test_a_pickle_raises_with_the_command_that_converts_it(tmp_path, registry, name):
    save_llama(tmp_path / "llama")
    (tmp_path / "llama" / "model.safetensors").unlink()
    (tmp_path / "llama" / name).write_bytes(b"\x80\x04")
    library = "numpy" if name.endswith("npz") else "torch"
    message = import_error(tmp_path, registry)
    assert re.match(f"T/llama/{name} .*pickle", message)
    assert f"python -c 'import {library}; " in message
    assert message.endswith("/llama/model.safetensors\")'")


@pytest.mark.parametrize(
    "names",
    [
        ["pytorch_model.bin"],
        ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"],
    ],
    ids=len,
)
def test_the_command_that_converts_a_pickle_works(tmp_path, registry, names):
    folder = tmp_path / "a [folder], isn't it"
    theirs = save_llama(folder)
    (folder / "model.safetensors").unlink()
    for i, name in enumerate(names):
        part = dict(list(theirs.state_dict().items())[i :: len(names)])
        # Not contiguous, as in some files.
        torch.save({k: v.t().contiguous().t() for k, v in part.items()}, folder / name)
    torch.save({"step": 3}, folder / "optimizer.pt")  # of the training, not of the model
    command = conversion_command(folder / names[0])
    with pytest.raises(zoo.ZooError) as raised:
        zoo.import_model(folder, tmp_path / "model.safetensors", registry=registry)
    assert str(raised.value).endswith(f"convert it: {command}")
    subprocess.run(command.replace("python", sys.executable, 1), shell=True, check=True)
    zoo.import_model(folder, tmp_path / "model.safetensors", registry=registry)
    assert_same_logits(tmp_path / "model.safetensors", theirs)


def test_the_command_writes_no_empty_file(tmp_path):
    torch.save({"state_dict": {"a": torch.ones(2)}}, tmp_path / "pytorch_model.bin")
    command = conversion_command(tmp_path / "pytorch_model.bin")
    done = subprocess.run(
        command.replace("python", sys.executable, 1), shell=True, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "pytorch_model.bin contains no tensors\n")
    assert not (tmp_path / "model.safetensors").exists()


def test_files_of_llama_cpp_and_adapters_have_messages_of_their_own(tmp_path, registry):
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "model-Q4.gguf").write_bytes(b"GGUF")
    assert "model-Q4.gguf is a file of llama.cpp" in import_error(tmp_path, registry)
    (folder / "adapter_config.json").write_text("{}")
    message = import_error(tmp_path, registry)
    assert "is an adapter of peft" in message
    assert "zoo import T/llama --base MODEL" in message


@pytest.mark.parametrize("model_type", ["lama", "olmo-999"])
def test_the_nearest_importer_has_the_same_config_keys(tmp_path, model_type):
    save_llama(tmp_path / "llama")
    file = tmp_path / "llama" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_type": model_type}))
    nearest = r"nearest is 'llama', with .* keys; describe the model with --spec and --map"
    with pytest.raises(zoo.ZooError, match=f"model_type '{model_type}'; {nearest}"):
        zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"a": "../evil.safetensors"}, r"'\.\./evil\.safetensors'.*safetensors file"),
        ({"a": "b.bin"}, r"'b\.bin'.*safetensors file"),
        ({"a": 3}, "3 .*safetensors file"),
        ({"a": []}, r"\[\] .*safetensors file"),
        ({"a": "b.safetensors"}, r"b\.safetensors .*exist"),
        (None, "'weight_map'"),
    ],
)
def test_an_invalid_index_raises(tmp_path, registry, weight_map, message):
    save_llama(tmp_path / "llama")
    folder = tmp_path / "llama"
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert re.search(f"index.json.*{message}", import_error(tmp_path, registry))


def test_a_tensor_in_two_shards_raises(tmp_path, registry):
    save_llama(tmp_path / "llama")
    folder = tmp_path / "llama"
    shutil.move(folder / "model.safetensors", folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    message = import_error(tmp_path, registry)
    assert re.match(r"T/llama/b\.safetensors.*'lm_head\.weight'", message)
