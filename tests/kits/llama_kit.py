"""A small Llama of transformers, and a third-party plugin that imports it."""

from dataclasses import replace

import pytest
import torch
import transformers as hf
from plugin_kit import Site

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


TOKENS = torch.tensor([[1, 5, 9, 30, 4, 7, 2]])


def llama_registry(folder, monkeypatch):
    """Return the registry with the third-party importer instead of the plugin huggingface."""
    site = Site(folder, monkeypatch)
    site.add("zoo-llama", LLAMA)
    registry = site.registry()
    assert not [plugin.errors for plugin in registry.plugins if plugin.errors]
    others = [plugin for plugin in registry.plugins if plugin.name != "huggingface"]
    return replace(registry, plugins=others)


def save_llama(folder, *, tied=False, **options):
    """Save a random Llama with transformers; return it."""
    config = hf.LlamaConfig(
        vocab_size=31, hidden_size=16, intermediate_size=12, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=tied,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder, **options)
    return model


def assert_same_logits(path, model):
    ours = zoo.load(path).eval()({"target": TOKENS}).logits
    torch.testing.assert_close(ours, model(input_ids=TOKENS).logits[:, :-1], atol=1e-5, rtol=0)


def import_error(tmp_path, registry, source="llama"):
    """Return the message of a failing import, with the folder written as T."""
    with pytest.raises(zoo.ZooError) as caught:
        zoo.import_model(tmp_path / source, tmp_path / "o.safetensors", registry=registry)
    assert not (tmp_path / "o.safetensors").exists()
    return str(caught.value).replace(str(tmp_path), "T")
