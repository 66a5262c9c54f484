"""Import of folders by a third-party importer, and export for its library."""

import re

import pytest
import torch
import transformers as hf
from llama_kit import TOKENS, assert_same_logits, import_error, llama_registry, save_llama
from plugin_kit import Site
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers

import zoo
from zoo.artifact import read_header


@pytest.fixture
def registry(tmp_path, monkeypatch):
    return llama_registry(tmp_path / "site", monkeypatch)


@pytest.mark.parametrize("tied", [False, True])
def test_import_and_export_of_a_folder(tmp_path, registry, tied):
    theirs = save_llama(tmp_path / "llama", tied=tied)
    out = tmp_path / "model.safetensors"
    zoo.import_model(tmp_path / "llama", out, registry=registry)
    assert_same_logits(out, theirs)
    folder = zoo.export_model(out, tmp_path / "back", registry=registry)
    exported = hf.LlamaForCausalLM.from_pretrained(folder).eval()
    torch.testing.assert_close(exported(TOKENS).logits, theirs(TOKENS).logits, atol=0, rtol=0)
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("llama", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_stored_copy_of_a_tied_output_is_dropped(tmp_path, registry):
    theirs = save_llama(tmp_path / "llama", tied=True)
    file = tmp_path / "llama" / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, file)
    zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors", registry=registry)
    assert_same_logits(tmp_path / "model.safetensors", theirs)


def test_the_tokenizer_is_imported_and_exported(tmp_path, registry):
    save_llama(tmp_path / "llama")
    words = {f"w{i}": i for i in range(31)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w3"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "llama" / "tokenizer.json"))
    out = tmp_path / "model.safetensors"
    zoo.import_model(tmp_path / "llama", out, registry=registry)
    model = zoo.load(out)
    assert zoo.generate(model, ["w5 w6"], max_length=3) == [
        [best] for (best,) in zoo.generate(model, [[5, 6]], max_length=3)
    ]
    folder = zoo.export_model(out, tmp_path / "back", registry=registry)
    assert hf.AutoTokenizer.from_pretrained(folder)("w5 w6")["input_ids"] == [5, 6]


def test_the_provenance_names_source_importer_and_config(tmp_path, registry):
    save_llama(tmp_path / "llama")
    out = zoo.import_model(tmp_path / "llama", tmp_path / "m.safetensors", registry=registry)
    provenance = read_header(out).provenance
    assert (provenance["imported"], provenance["importer"]) == ("llama", "llama")
    assert provenance["config"]["hidden_size"] == 16


def test_an_unknown_model_type_is_not_taken_for_a_typo(tmp_path, registry):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").write_text('{"model_type": "lama"}')
    message = import_error(tmp_path, registry, "x")
    assert "no importer supports model_type 'lama'" in message
    assert "did you mean" not in message


def test_an_exception_in_an_importer_names_it(tmp_path, registry):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").write_text('{"model_type": "llama"}')
    save_file({"w": torch.zeros(1)}, tmp_path / "x" / "model.safetensors")
    message = import_error(tmp_path, registry, "x")
    assert re.search("importer 'llama'.*KeyError: 'num_attention_heads'", message)


def test_an_export_without_an_importer_raises(tmp_path, registry):
    model = zoo.compose("bahdanau-reversal")
    path = zoo.save(model, tmp_path / "m.safetensors")
    with pytest.raises(zoo.ZooError, match=r"--to .*--map .*available: .*llama"):
        zoo.export_model(path, tmp_path / "out", registry=registry)
    with pytest.raises(zoo.ZooError, match=r"'lama'.*'llama'"):
        zoo.export_model(path, tmp_path / "out", to="lama", registry=registry)


def test_an_export_into_a_nonempty_folder_raises(tmp_path, registry):
    save_llama(tmp_path / "llama")
    path = zoo.import_model(tmp_path / "llama", tmp_path / "m.safetensors", registry=registry)
    with pytest.raises(zoo.ZooError, match=r"llama .*empty folder"):
        zoo.export_model(path, tmp_path / "llama", registry=registry)


INVALID = """
from zoo.plugin import hookimpl

@hookimpl
def zoo_importers():
    return {result}
"""


@pytest.mark.parametrize(
    ("result", "facts"),
    [("3", ("zoo_importers", "3", "importers")), ("[3]", ("3", "Importer"))],
)
def test_an_invalid_result_of_the_hook_is_recorded(tmp_path, monkeypatch, result, facts):
    site = Site(tmp_path / "site", monkeypatch)
    site.add("zoo-bad", INVALID.format(result=result))
    (plugin,) = [p for p in site.registry().plugins if p.distribution == "zoo-bad"]
    (error,) = plugin.errors
    assert all(fact in error for fact in facts)
