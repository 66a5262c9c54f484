"""Sharded checkpoints are imported tensor by tensor: memory is that of one shard at most."""

import json
import subprocess
import sys

import pytest
import torch
from hf_model_kit import hf_model
from safetensors.torch import save_file

import zoo
from zoo.artifact import read_header
from zoo_exchange import import_plan

SHARDS, LAYERS_PER_SHARD = 6, 2
DIM, FF, VOCAB = 1024, 2816, 4000

# The peak of a child process, above that of an import of a small model of the same architecture.
CODE = """
import sys, zoo

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024

small, large, out = sys.argv[1:]
zoo.import_model(small, out)
before = peak()
zoo.import_model(large, out)
print(peak() - before)
"""


def write_llama(folder, layers_per_shard, dim, ff, vocab):
    """Write a Llama in bfloat16, in shards; return the size of the largest."""
    folder.mkdir()
    layers = SHARDS * layers_per_shard
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": vocab,
        "hidden_size": dim, "intermediate_size": ff, "num_hidden_layers": layers,
        "num_attention_heads": 16, "num_key_value_heads": 4, "tie_word_embeddings": True,
        "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    weight_map = {}
    for number in range(SHARDS):
        tensors = {}
        for layer in range(number * layers_per_shard, (number + 1) * layers_per_shard):
            start = f"model.layers.{layer}"
            shapes = {
                "self_attn.q_proj": (dim, dim), "self_attn.k_proj": (dim // 4, dim),
                "self_attn.v_proj": (dim // 4, dim), "self_attn.o_proj": (dim, dim),
                "mlp.gate_proj": (ff, dim), "mlp.up_proj": (ff, dim), "mlp.down_proj": (dim, ff),
                "input_layernorm": (dim,), "post_attention_layernorm": (dim,),
            }  # fmt: skip
            for name, shape in shapes.items():
                tensors[f"{start}.{name}.weight"] = torch.ones(shape, dtype=torch.bfloat16)
        if number == 0:
            tensors["model.embed_tokens.weight"] = torch.ones(vocab, dim, dtype=torch.bfloat16)
            tensors["model.norm.weight"] = torch.ones(dim, dtype=torch.bfloat16)
        name = f"model-{number + 1:05}-of-{SHARDS:05}.safetensors"
        save_file(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    index = {"weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return max(file.stat().st_size for file in folder.glob("*.safetensors"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.slow
def test_the_peak_is_at_most_that_of_the_largest_shard(tmp_path):
    write_llama(tmp_path / "small", 1, 64, 64, 100)
    largest = write_llama(tmp_path / "large", LAYERS_PER_SHARD, DIM, FF, VOCAB)
    done = subprocess.run(
        [sys.executable, "-c", CODE, tmp_path / "small", tmp_path / "large", tmp_path / "out"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) <= 1.1 * largest
    header = read_header(tmp_path / "out")
    assert header.bytes > 5 * largest
    assert header.probe == {"skipped": "written in a stream, without running the model"}


def test_a_stream_writes_the_same_model(tmp_path, monkeypatch):
    hf_model("gpt2").save_pretrained(tmp_path / "theirs", max_shard_size="3KB")
    plain = zoo.import_model(tmp_path / "theirs", tmp_path / "plain.safetensors")
    monkeypatch.setattr(import_plan, "MAX_IN_MEMORY", 0)
    streamed = zoo.import_model(tmp_path / "theirs", tmp_path / "streamed.safetensors")
    assert zoo.verify(streamed)
    expected, actual = (zoo.load(file, verify=True).state_dict() for file in (plain, streamed))
    assert expected.keys() == actual.keys()
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
    assert read_header(plain).hashes == read_header(streamed).hashes


def test_fp8_is_rejected_with_the_reason(tmp_path):
    write_llama(tmp_path / "theirs", 1, 64, 64, 100)
    file = sorted((tmp_path / "theirs").glob("*.safetensors"))[1]
    name = "model.layers.1.mlp.up_proj.weight"
    shard = {k: torch.ones(s) for k, s in shapes(file).items()}
    save_file(shard | {name: shard[name].to(torch.float8_e4m3fn)}, file)
    with pytest.raises(zoo.ZooError, match=f"'{name}' is float8_e4m3fn: fp8 weights are quantized"):
        zoo.import_model(tmp_path / "theirs", tmp_path / "model.safetensors")


def shapes(file):
    header = file.read_bytes()
    table = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
    return {name: row["shape"] for name, row in table.items() if name != "__metadata__"}
