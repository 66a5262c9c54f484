"""A Hugging Face folder comes in by an importer, and goes out so that their library reads it."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
import transformers as hf
from plugin_kit import Site
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers

import zoo

LLAMA = """
from zoo.plugin import Importer, hookimpl

MAP = {
    "zoo": 1,
    "rename": {
        "embedding.table.weight": "model.embed_tokens.weight",
        "decoder.output.map.weight": "lm_head.weight",
        "decoder.final_norm.weight": "model.norm.weight",
        "decoder.blocks.{n}.attention.{p:query|key|value|out}.weight":
            "model.layers.{n}.self_attn.{p:q|k|v|o}_proj.weight",
        "decoder.blocks.{n}.feed_forward.{p}.weight":
            "model.layers.{n}.mlp.{p:gate|up|down}_proj.weight",
        "decoder.blocks.{n}.{p:attention|feed_forward}_norm.weight":
            "model.layers.{n}.{p:input|post_attention}_layernorm.weight",
    },
    "drop": [{"name": "lm_head.weight", "export": "omit"}],
}


class Llama(Importer):
    name = "llama"

    def matches(self, config):
        return config.get("model_type") == "llama"

    def spec(self, config):
        heads = config["num_attention_heads"]
        return {
            "zoo": 1,
            "name": "llama",
            "model": {
                "type": "language-model",
                "embedding": {"type": "token", "vocab": config["vocab_size"],
                              "dim": config["hidden_size"]},
                "decoder": {
                    "type": "transformer",
                    "layers": config["num_hidden_layers"],
                    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": heads,
                                  "kv_heads": config["num_key_value_heads"], "bias": False},
                    "feed_forward": {"hidden": config["intermediate_size"], "activation": "silu",
                                     "gated": True, "bias": False},
                    "norm": {"kind": "rms", "place": "pre", "eps": config["rms_norm_eps"]},
                    "position": "rotary",
                    "output": {"tied": config["tie_word_embeddings"]},
                },
            },
            "sampler": "greedy",
        }

    def map(self, config):
        return MAP

    def config(self, spec, original):
        model = spec["model"]
        decoder = model["decoder"]
        attention = decoder["attention"]
        return {
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": model["embedding"]["vocab"],
            "hidden_size": model["embedding"]["dim"],
            "num_hidden_layers": decoder["layers"],
            "num_attention_heads": attention["heads"],
            "num_key_value_heads": attention["kv_heads"] or attention["heads"],
            "intermediate_size": decoder["feed_forward"]["hidden"],
            "rms_norm_eps": decoder["norm"]["eps"],
            "tie_word_embeddings": decoder["output"]["tied"],
        }


@hookimpl
def zoo_importers():
    return [Llama()]
"""


@pytest.fixture
def registry(tmp_path, monkeypatch):
    site = Site(tmp_path / "site", monkeypatch)
    site.add("zoo-llama", LLAMA)
    found = site.registry()
    assert not [plugin.faults for plugin in found.plugins if plugin.faults]
    # Two importers for one kind would be refused; this one is the stranger's.
    others = [plugin for plugin in found.plugins if plugin.name != "huggingface"]
    return replace(found, plugins=others)


def _theirs(folder, *, tied=False, **options):
    config = hf.LlamaConfig(
        vocab_size=31, hidden_size=16, intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=tied,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder, **options)
    return model


TOKENS = torch.tensor([[1, 5, 9, 30, 4, 7, 2]])


def _same(path, model):
    ours = zoo.load(path).eval()({"target": TOKENS}).logits
    torch.testing.assert_close(ours, model(input_ids=TOKENS).logits[:, :-1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("tied", [False, True])
def test_a_folder_comes_in_and_goes_out(tmp_path, registry, tied):
    theirs = _theirs(tmp_path / "llama", tied=tied)
    out = tmp_path / "model.safetensors"
    zoo.import_model(tmp_path / "llama", out, registry=registry)
    _same(out, theirs)
    folder = zoo.export_model(out, tmp_path / "back", registry=registry)
    again = hf.LlamaForCausalLM.from_pretrained(folder).eval()
    torch.testing.assert_close(again(TOKENS).logits, theirs(TOKENS).logits, atol=0, rtol=0)
    before, after = (load_file(tmp_path / f / "model.safetensors") for f in ("llama", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_head_that_lies_in_the_file_although_tied_is_left_there(tmp_path, registry):
    theirs = _theirs(tmp_path / "llama", tied=True)
    file = tmp_path / "llama" / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, file)
    zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors", registry=registry)
    _same(tmp_path / "model.safetensors", theirs)


def test_shards_are_read_as_one(tmp_path, registry):
    theirs = _theirs(tmp_path / "llama", max_shard_size="4KB")
    assert len(list((tmp_path / "llama").glob("*.safetensors"))) > 2
    zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors", registry=registry)
    _same(tmp_path / "model.safetensors", theirs)


def test_a_tokenizer_travels_both_ways(tmp_path, registry):
    _theirs(tmp_path / "llama")
    words = {f"w{i}": i for i in range(31)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w3"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "llama" / "tokenizer.json"))
    out = tmp_path / "model.safetensors"
    zoo.import_model(tmp_path / "llama", out, registry=registry)
    model = zoo.load(out)
    assert zoo.generate(model, ["w5 w6"], max_length=3) == [
        [answer] for (answer,) in zoo.generate(model, [[5, 6]], max_length=3)
    ]
    folder = zoo.export_model(out, tmp_path / "back", registry=registry)
    assert hf.AutoTokenizer.from_pretrained(folder)("w5 w6")["input_ids"] == [5, 6]


def test_provenance_says_where_a_model_came_from(tmp_path, registry):
    from zoo.artifact import read_header

    _theirs(tmp_path / "llama")
    out = zoo.import_model(tmp_path / "llama", tmp_path / "m.safetensors", registry=registry)
    told = read_header(out).provenance
    assert (told["imported"], told["importer"]) == ("llama", "llama")
    assert told["config"]["hidden_size"] == 16


def test_code_in_a_folder_is_not_looked_at(tmp_path, registry):
    _theirs(tmp_path / "llama")
    trap = tmp_path / "llama" / "modeling_trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    file = tmp_path / "llama" / "config.json"
    config = json.loads(file.read_text()) | {"auto_map": {"AutoModel": "modeling_trap.Trap"}}
    file.write_text(json.dumps(config))
    zoo.import_model(tmp_path / "llama", tmp_path / "model.safetensors", registry=registry)
    assert not (tmp_path / "sprung").exists()


def _refused(tmp_path, registry, source="llama", **options):
    with pytest.raises(zoo.ZooError) as caught:
        zoo.import_model(
            tmp_path / source, tmp_path / "o.safetensors", registry=registry, **options
        )
    assert not (tmp_path / "o.safetensors").exists()
    return str(caught.value).replace(str(tmp_path), "T")


def test_an_unknown_kind_is_named_with_what_there_is(tmp_path, registry):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").write_text('{"model_type": "lama"}')
    assert _refused(tmp_path, registry, "x").startswith(
        "no importer takes model_type 'lama'; did you mean 'llama'? (available: "
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "T/x has no config.json to say what model it is; give --spec and --map"),
        ({"config.json": "{"}, "T/x/config.json is no JSON: "),
        ({"config.json": "[]"}, "T/x/config.json should hold a mapping"),
    ],
)
def test_a_folder_without_a_sound_config_is_refused(tmp_path, registry, files, message):
    (tmp_path / "x").mkdir()
    for name, text in files.items():
        (tmp_path / "x" / name).write_text(text)
    assert _refused(tmp_path, registry, "x").startswith(message)


def test_an_importer_that_fails_is_named(tmp_path, registry):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.json").write_text('{"model_type": "llama"}')
    save_file({"w": torch.zeros(1)}, tmp_path / "x" / "model.safetensors")
    assert _refused(tmp_path, registry, "x") == (
        "importer 'llama' failed, which is a fault of its plugin: KeyError: 'num_attention_heads'"
    )


def test_what_is_not_there_is_said(tmp_path, registry):
    assert _refused(tmp_path, registry, "x") == "there is no file or folder T/x"


def test_one_file_does_not_say_what_it_is(tmp_path, registry):
    _theirs(tmp_path / "llama")
    assert _refused(tmp_path, registry, "llama/model.safetensors") == (
        "T/llama/model.safetensors is one file, which does not say what model it is; "
        "give --spec and --map, or a folder with a config.json"
    )


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "x.ckpt", "w.npz"])
def test_a_pickle_is_refused_with_the_way_to_convert_it(tmp_path, registry, name):
    _theirs(tmp_path / "llama")
    (tmp_path / "llama" / "model.safetensors").unlink()
    (tmp_path / "llama" / name).write_bytes(b"\x80\x04")
    library = "numpy" if name.endswith("npz") else "torch"
    message = _refused(tmp_path, registry)
    assert message.startswith(f"T/llama/{name} may hold a pickle, which can run code")
    assert f'convert it once: python -c "import {library}; ' in message
    assert message.endswith("'model.safetensors')\"")


@pytest.mark.parametrize(
    "names",
    [
        ["pytorch_model.bin"],
        ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"],
    ],
    ids=len,
)
def test_the_command_that_converts_a_pickle_works(tmp_path, registry, monkeypatch, names):
    theirs = _theirs(tmp_path / "llama")
    folder = tmp_path / "llama"
    (folder / "model.safetensors").unlink()
    for i, name in enumerate(names):
        part = dict(list(theirs.state_dict().items())[i :: len(names)])
        # Stored column by column, as some are.
        torch.save({k: v.t().contiguous().t() for k, v in part.items()}, folder / name)
    command = _refused(tmp_path, registry).partition('-c "')[2].removesuffix('"')
    monkeypatch.chdir(folder)
    exec(command, {})
    zoo.import_model(folder, tmp_path / "model.safetensors", registry=registry)
    _same(tmp_path / "model.safetensors", theirs)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": "../evil.safetensors"}, "names '../evil.safetensors', which is no safetensors file"),
        ({"a": "b.bin"}, "names 'b.bin', which is no safetensors file beside it"),
        ({"a": 3}, "names 3, which is no safetensors file beside it"),
        ({"a": "b.safetensors"}, "names b.safetensors, which is not there"),
        (None, "should list under 'weight_map' which file has which tensor"),
    ],
)
def test_an_index_that_lies_is_refused(tmp_path, registry, table, message):
    _theirs(tmp_path / "llama")
    folder = tmp_path / "llama"
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    assert message in _refused(tmp_path, registry)


def test_a_tensor_in_two_shards_is_refused(tmp_path, registry):
    _theirs(tmp_path / "llama")
    folder = tmp_path / "llama"
    shutil.move(folder / "model.safetensors", folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    message = _refused(tmp_path, registry)
    assert message == ("T/llama/b.safetensors: tensor 'lm_head.weight' is in another file as well")


def test_an_export_needs_to_know_where_to(tmp_path, registry):
    model = zoo.compose("bahdanau-reversal")
    path = zoo.save(model, tmp_path / "m.safetensors")
    with pytest.raises(zoo.ZooError, match=r"^say where to: --to NAME, or --map FILE"):
        zoo.export_model(path, tmp_path / "out", registry=registry)
    with pytest.raises(zoo.ZooError, match=r"^no importer named 'lama'; did you mean 'llama'"):
        zoo.export_model(path, tmp_path / "out", to="lama", registry=registry)


def test_an_export_into_a_folder_with_something_in_it_is_refused(tmp_path, registry):
    _theirs(tmp_path / "llama")
    path = zoo.import_model(tmp_path / "llama", tmp_path / "m.safetensors", registry=registry)
    with pytest.raises(zoo.ZooError, match="llama is there already; name a new or an empty folder"):
        zoo.export_model(path, tmp_path / "llama", registry=registry)


BAD = """
from zoo.plugin import hookimpl

@hookimpl
def zoo_importers():
    return {answer}
"""


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("3", "zoo_importers returned 3, not a list of importers"),
        ("[3]", "3 is not an importer"),
    ],
)
def test_a_bad_answer_is_recorded(tmp_path, monkeypatch, answer, fault):
    site = Site(tmp_path / "site", monkeypatch)
    site.add("zoo-bad", BAD.format(answer=answer))
    (plugin,) = [p for p in site.registry().plugins if p.distribution == "zoo-bad"]
    assert plugin.faults == [fault]
