"""Folders of peft that are damaged or hostile are loaded as they are, or refused in one line."""

import json
import math
import os
import pickle

import peft
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import zoo

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
LAYER = "base_model.model.bert.encoder.layer.0.attention.self.query"
A, B = f"{LAYER}.lora_A.weight", f"{LAYER}.lora_B.weight"
TABLE = "base_model.model.bert.embeddings.word_embeddings"
WHOLE = "base_model.model.cls.predictions.transform.dense.weight"
CONFIGS = {
    "another-rank": ({"r": 4}, "query has the rank 2, but the config 4"),
    "rank-is-text": ({"r": "2"}, "r is '2'; expected a number"),
    "rank-is-a-fraction": ({"r": 2.5}, "r is 2.5; expected an integer"),
    "rank-is-true": ({"r": True}, "r is True; expected a number"),
    "rank-0": ({"r": 0}, "r is 0; expected a number above 0"),
    "huge-rank": ({"r": 10**30}, "at most 1e"),
    "alpha-nan": ({"lora_alpha": math.nan}, "NaN is not a JSON number"),
    "alpha-infinite": ({"lora_alpha": math.inf}, "Infinity is not a JSON number"),
    "alpha-0": ({"lora_alpha": 0}, "lora_alpha is 0; expected a number above 0"),
    "huge-alpha": ({"lora_alpha": 1e308}, "lora_alpha is 1e.308; at most 1e.09"),
    "alpha-without-a-float": ({"lora_alpha": 10**400}, "lora_alpha is 10000.*; at most 1e.09"),
    "alphas-without-a-float": ({"alpha_pattern": {"query": 10**400}}, "query is 1000.*at most"),
    "ranks-are-fractions": ({"rank_pattern": {"query": 2.5}}, "rank 2, but the config 2.5"),
    "nested-repetition": ({"rank_pattern": {"(a|a)+" * 20: 2}}, "which is not supported"),
    "many-wildcards": ({"rank_pattern": {".*.*.*.*z": 2}}, "which is not supported"),
    "many-patterns": (
        {"rank_pattern": {f".*.*query{i}": 2 for i in range(2000)}},
        "rank_pattern has 2,000 patterns; at most 1,000",
    ),
    "targets-are-a-slow-pattern": ({"target_modules": "(.*)*(.*)*x$"}, None),
    "dropout-1": ({"lora_dropout": 1.0}, "dropout: is 1.0, but should be less than 1"),
    "use_dora-is-text": ({"use_rslora": "no"}, "use_rslora is 'no'; expected true or false"),
    "no-magnitudes": ({"use_dora": True}, "has no lora_magnitude_vector"),
    "code": ({"auto_map": {"AutoConfig": "evil.Config"}}, "key 'auto_map' is not supported"),
    "module-of-code": ({"megatron_core": "os"}, "megatron_core is 'os', which is not supported"),
    "a-class-of-code": ({"auto_mapping": {"base_model_class": "system"}}, None),
    "biases": ({"bias": "all"}, "bias is 'all', which is not supported"),
    "type-is-a-list": ({"peft_type": ["LORA"]}, "peft_type .* is not supported"),
    "control-characters": ({"a\x1b[2Jb": 1}, r"key 'a.x1b\[2Jb' is not supported"),
}
TENSORS = {
    "inputs": ({A: torch.zeros(2, 9)}, r"A has the shape \[2, 9\], expected \[2, 8\]"),
    "outputs": ({B: torch.zeros(9, 2)}, r"B has the shape \[9, 2\], expected \[8, 2\]"),
    "ranks-differ": ({B: torch.zeros(8, 3)}, "has the rank 3, but the config 2"),
    "vector": ({A: torch.zeros(2)}, r"shape \[2\], which is not a matrix"),
    "scalar": ({A: torch.zeros(())}, r"shape \[\], which is not a matrix"),
    "three-dimensions": ({A: torch.zeros(2, 8, 1)}, "which is not a matrix"),
    "empty": ({A: torch.zeros(0, 8), B: torch.zeros(8, 0)}, "which is not a matrix"),
    "integers": ({A: torch.zeros(2, 8, dtype=torch.int64)}, "expected floating-point numbers"),
    "complex": ({A: torch.zeros(2, 8, dtype=torch.complex64)}, "expected floating-point"),
    "nan": ({A: torch.full((2, 8), math.nan)}, "not finite in float32"),
    "float64": ({A: torch.full((2, 8), 1e300, dtype=torch.float64)}, "not finite in float32"),
    "bfloat16": ({A: torch.ones(2, 8, dtype=torch.bfloat16)}, None),
    "missing": ({B: None}, "has the tensors lora_A.weight; expected"),
    "additional": ({f"{LAYER}.lora_C": torch.zeros(1)}, "lora_C; expected lora_A.weight"),
    "path": ({"../../etc/passwd.lora_A.weight": torch.zeros(2, 8)}, "the base has no module of"),
    "dots": ({"...": torch.zeros(1)}, "the base has no module of"),
    "long-name": ({"a." * 50_000 + "x": torch.zeros(1)}, "is not printable or is longer"),
    "many": ({f"m{i}.lora_A.weight": torch.zeros(1) for i in range(5000)}, "has no module of"),
    "resized-table": ({f"{TABLE}.weight": torch.zeros(40, 8)}, r"shape \[40, 8\], expected"),
    "whole-nan": ({WHOLE: torch.full((8, 8), math.nan)}, "not finite"),
    "whole-shape": ({WHOLE: torch.zeros(64)}, r"shape \[64\], expected \[8, 8\]"),
}


def _long_header(file):
    file.write_bytes((2**60).to_bytes(8, "little") + b"{")


def _pickle(file):
    file.write_bytes(pickle.dumps({"x": print}))


FILES = {
    "broken-json": (CONFIG, lambda file: file.write_text("{"), "is not valid JSON"),
    "deep-json": (CONFIG, lambda file: file.write_text("[" * 200_000), "is not valid JSON"),
    "list": (CONFIG, lambda file: file.write_text("[]"), "should contain a JSON object"),
    "endless-json": (CONFIG, lambda file: file.symlink_to("/dev/zero"), "not a regular file"),
    "pipe-of-json": (CONFIG, os.mkfifo, "not a regular file"),
    "no-weights": (WEIGHTS, lambda file: None, "no such file"),
    "pickle": (WEIGHTS, _pickle, "it is a pickle"),
    "pickle-bin": (WEIGHTS, lambda file: _pickle(file.with_suffix(".bin")), "no such file"),
    "long-header": (WEIGHTS, _long_header, "ends before the end of its header"),
    "endless-weights": (WEIGHTS, lambda file: file.symlink_to("/dev/zero"), "not a regular file"),
    "pipe-of-weights": (WEIGHTS, os.mkfifo, "not a regular file"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a valid adapter in ``good``, and its base in ``base.safetensors``."""
    folder = tmp_path_factory.mktemp("peft")
    config = transformers.BertConfig(
        **dict.fromkeys(("hidden_size", "intermediate_size"), 8),
        **dict.fromkeys(("num_hidden_layers", "num_attention_heads"), 1),
        vocab_size=31,
        max_position_embeddings=18,
    )
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(config)
    model.save_pretrained(folder / "base")
    zoo.import_model(folder / "base", folder / "base.safetensors")
    lora = peft.LoraConfig(r=2, target_modules=["query", "word_embeddings"])
    peft.get_peft_model(model, lora).save_pretrained(folder / "good")
    return folder


def _import(folder, source, tmp_path, message):
    file = tmp_path / "a.safetensors"
    if message is None:
        zoo.import_adapter(source, file, base=folder / "base.safetensors")
        assert len(zoo.load(file).spec["adapters"]) == 1
    else:
        with pytest.raises(zoo.ZooError, match=message) as caught:
            zoo.import_adapter(source, file, base=folder / "base.safetensors")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
        assert not file.exists()


def _copy(folder, target, config=None, tensors=None):
    """Write the valid folder with other keys of the config and other tensors; None removes one."""
    good = folder / "good"
    target.mkdir()
    data = {**json.loads((good / CONFIG).read_text()), **(config or {})}
    (target / CONFIG).write_text(json.dumps(data))
    merged = {**load_file(good / WEIGHTS), **(tensors or {})}
    save_file({name: t for name, t in merged.items() if t is not None}, target / WEIGHTS)
    return target


@pytest.mark.parametrize("case", CONFIGS)
def test_configs(case, folder, tmp_path):
    changed, message = CONFIGS[case]
    _import(folder, _copy(folder, tmp_path / "peft", changed), tmp_path, message)


@pytest.mark.parametrize("case", TENSORS)
def test_tensors(case, folder, tmp_path):
    changed, message = TENSORS[case]
    _import(folder, _copy(folder, tmp_path / "peft", None, changed), tmp_path, message)


@pytest.mark.parametrize("case", FILES)
def test_files(case, folder, tmp_path):
    name, write, message = FILES[case]
    source = _copy(folder, tmp_path / "peft")
    (source / name).unlink()
    write(source / name)
    _import(folder, source, tmp_path, message)


def test_a_base_that_changed_is_found_by_its_hash(folder, tmp_path):
    file = tmp_path / "a.safetensors"
    base = tmp_path / "base.safetensors"
    base.write_bytes((folder / "base.safetensors").read_bytes())
    zoo.import_adapter(folder / "good", file, base=base)
    model = zoo.load(base)
    with torch.no_grad():
        model.encoder.blocks[0].attention.query.weight[0, 0] += 1
    zoo.save(model, base)
    with pytest.raises(zoo.ArtifactError, match="belongs to another version of its base"):
        zoo.load(file)
    zoo.save(zoo.compose("bert-tiny"), base)
    with pytest.raises(zoo.ArtifactError, match="belongs to another version of its base"):
        zoo.load(file)
