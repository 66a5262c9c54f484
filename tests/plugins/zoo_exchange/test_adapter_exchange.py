"""Adapters of peft: imported and exported with equal outputs, and trained with equal losses."""

import json

import peft
import pytest
import torch
import torch.nn.functional as F
import transformers

import zoo
from zoo import export_adapter, import_adapter

BERT = transformers.BertConfig(
    vocab_size=31,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=18,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.3,
)
GPT2 = transformers.GPT2Config(
    vocab_size=31, n_positions=24, n_embd=8, n_layer=2, n_head=2, bos_token_id=2, eos_token_id=2
)
LLAMA = transformers.LlamaConfig(
    vocab_size=31,
    hidden_size=16,
    intermediate_size=12,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
    tie_word_embeddings=False,
    initializer_range=0.3,
)
MODELS = {
    "bert": (transformers.BertForMaskedLM, BERT),
    "gpt2": (transformers.GPT2LMHeadModel, GPT2),
    "llama": (transformers.LlamaForCausalLM, LLAMA),
}
TOKENS = torch.randint(3, 31, (2, 6), generator=torch.Generator().manual_seed(0))


def _lora(*modules, **options):
    return peft.LoraConfig(r=2, lora_alpha=4, target_modules=list(modules), **options)


CONFIGS = {
    "lora": ("bert", _lora("query", "value")),
    "rank-stabilised": ("bert", _lora("query", "dense", use_rslora=True)),
    "dora": ("bert", _lora("query", "dense", use_dora=True)),
    "table": ("bert", _lora("word_embeddings")),
    "whole-modules": ("bert", _lora("query", modules_to_save=["transform.dense"])),
    "whole-norms": ("bert", _lora("query", modules_to_save=["LayerNorm"])),
    "whole-tied-table": ("gpt2", _lora("c_proj", fan_in_fan_out=True, modules_to_save=["wte"])),
    "whole-joined": ("gpt2", _lora("c_proj", fan_in_fan_out=True, modules_to_save=["c_attn"])),
    "whole-head": ("llama", _lora("q_proj", modules_to_save=["lm_head", "embed_tokens"])),
    "patterns": (
        "bert",
        _lora(
            "query",
            "value",
            "word_embeddings",
            "intermediate.dense",
            rank_pattern={"layer.0.attention.self.query": 3, "value": 1, "word_embeddings": 4},
            alpha_pattern={r"layer\.1\..*\.(query|value)": 7, "intermediate.dense": 1.5},
        ),
    ),
    "patterns-dora": (
        "llama",
        _lora(
            *("q_proj", "up_proj"),
            rank_pattern={"up_proj": 3},
            alpha_pattern={r"^model\.layers\.[0-9]+\.mlp\.up_proj": 9},
            use_rslora=True,
            use_dora=True,
        ),
    ),
    "joined-patterns": (
        "gpt2",
        _lora("c_attn", "c_proj", fan_in_fan_out=True, rank_pattern={"h.1.attn.c_attn": 3}),
    ),
    "ia3": (
        "bert",
        peft.IA3Config(
            target_modules=["key", "value", "output.dense"], feedforward_modules=["output.dense"]
        ),
    ),
    "joined": ("gpt2", _lora("c_attn", "c_proj", "wte", fan_in_fan_out=True)),
    "joined-dora": ("gpt2", _lora("c_attn", fan_in_fan_out=True, use_dora=True)),
    "joined-ia3": (
        "gpt2",
        peft.IA3Config(
            target_modules=["c_attn", "mlp.c_proj"],
            feedforward_modules=["mlp.c_proj"],
            fan_in_fan_out=True,
        ),
    ),
    "rotary": ("llama", _lora("q_proj", "k_proj", "v_proj", "o_proj", "up_proj")),
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A folder with a model of each library: NAME in transformers, NAME.safetensors in the zoo."""
    folder = tmp_path_factory.mktemp("bases")
    for name, (cls, config) in MODELS.items():
        torch.manual_seed(0)
        cls(config).save_pretrained(folder / name)
        zoo.import_model(folder / name, folder / f"{name}.safetensors")
    return folder


def _original(bases, name):
    return MODELS[name][0].from_pretrained(bases / name).eval()


def _logits(model, name):
    if name == "bert":
        return model({"source": TOKENS, "target": TOKENS}).logits
    return model({"target": torch.cat([TOKENS, TOKENS[:, :1]], dim=1)}).logits


@pytest.mark.parametrize("case", CONFIGS)
def test_imported_and_exported_adapters_have_the_outputs_of_peft(case, bases, tmp_path):
    name, config = CONFIGS[case]
    torch.manual_seed(1)
    theirs = peft.get_peft_model(_original(bases, name), config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter += 0.3 * torch.randn(parameter.shape)
    expected = theirs(input_ids=TOKENS).logits.detach()
    theirs.save_pretrained(tmp_path / "peft")
    base, file = bases / f"{name}.safetensors", tmp_path / "adapter.safetensors"
    import_adapter(tmp_path / "peft", file, base=base)
    ours = zoo.load(file)
    torch.testing.assert_close(_logits(ours, name), expected, rtol=0, atol=1e-5)
    plain = _original(bases, name)(input_ids=TOKENS).logits
    assert (plain - expected).abs().max() > 1e-3
    with zoo.without_adapters(ours):
        torch.testing.assert_close(_logits(ours, name), plain, rtol=0, atol=1e-5)
    added = zoo.adapt(zoo.load(base), file)
    torch.testing.assert_close(_logits(added, name), expected, rtol=0, atol=1e-5)

    export_adapter(file, tmp_path / "exported")
    back = peft.PeftModel.from_pretrained(_original(bases, name), tmp_path / "exported").eval()
    torch.testing.assert_close(back(input_ids=TOKENS).logits, expected, rtol=0, atol=1e-5)


def test_a_bias_that_no_layer_has_is_imported_with_a_warning(tmp_path):
    """The output layer of GPT-J has a bias, which is not that of a linear layer here."""
    sizes = {"vocab_size": 31, "n_positions": 24, "n_embd": 8, "n_layer": 1, "n_head": 2}
    config = transformers.GPTJConfig(**sizes, rotary_dim=4, bos_token_id=2, eos_token_id=2)
    original = transformers.GPTJForCausalLM(config).eval()
    original.save_pretrained(tmp_path / "base")
    zoo.import_model(tmp_path / "base", tmp_path / "base.safetensors")
    theirs = peft.get_peft_model(original, _lora("q_proj", modules_to_save=["lm_head"])).eval()
    with torch.no_grad():
        for parameter in theirs.base_model.model.lm_head.parameters():
            parameter += 0.3
    theirs.save_pretrained(tmp_path / "peft")
    file = tmp_path / "a.safetensors"
    with pytest.warns(zoo.ZooWarning, match=r"output\.bias: switching the adapter off"):
        import_adapter(tmp_path / "peft", file, base=tmp_path / "base.safetensors")
    expected = theirs(input_ids=TOKENS).logits
    torch.testing.assert_close(_logits(zoo.load(file), "gptj"), expected, rtol=0, atol=1e-5)


T5 = transformers.T5Config(
    vocab_size=31,
    d_model=8,
    d_kv=4,
    d_ff=12,
    num_layers=1,
    num_heads=2,
    decoder_start_token_id=0,
    dropout_rate=0.0,
)
TASKS = {
    "CAUSAL_LM": (transformers.GPT2LMHeadModel, GPT2, peft.AutoPeftModelForCausalLM),
    "SEQ_CLS": (
        transformers.BertForSequenceClassification,
        BERT,
        peft.AutoPeftModelForSequenceClassification,
    ),
    "TOKEN_CLS": (
        transformers.BertForTokenClassification,
        BERT,
        peft.AutoPeftModelForTokenClassification,
    ),
    "FEATURE_EXTRACTION": (
        transformers.BertModel,
        BERT,
        peft.AutoPeftModelForFeatureExtraction,
    ),
    "SEQ_2_SEQ_LM": (transformers.T5ForConditionalGeneration, T5, peft.AutoPeftModelForSeq2SeqLM),
    None: (transformers.BertForMaskedLM, BERT, peft.AutoPeftModel),
}


@pytest.mark.parametrize("task", TASKS)
def test_peft_loads_an_exported_folder_with_its_base(task, tmp_path, monkeypatch):
    cls, config, auto = TASKS[task]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.manual_seed(0)
    original = cls(config).eval()
    original.save_pretrained("base")
    zoo.import_model("base", "base.safetensors")
    model = zoo.load("base.safetensors")
    zoo.adapt(model, {"type": "lora", "rank": 2, "targets": ["*.query"]})
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    zoo.save_adapter(model, "a.safetensors")
    export_adapter("a.safetensors", "out")
    assert json.loads((tmp_path / "out/adapter_config.json").read_text()).get("task_type") == task
    found = auto.from_pretrained("out").eval()
    inputs = {"input_ids": TOKENS}
    if task == "SEQ_2_SEQ_LM":
        inputs["labels"] = TOKENS
    expected = peft.PeftModel.from_pretrained(original, "out").eval()(**inputs)
    key = "last_hidden_state" if task == "FEATURE_EXTRACTION" else "logits"
    torch.testing.assert_close(found(**inputs)[key], expected[key])


def _batches(count):
    generator = torch.Generator().manual_seed(2)
    for _ in range(count):
        tokens = torch.randint(3, 31, (4, 6), generator=generator)
        yield tokens, (tokens * 7) % 28 + 3


@pytest.mark.parametrize("kind", ["lora", "dora"])
def test_fifty_steps_have_the_losses_of_peft(kind, bases, tmp_path):
    base = bases / "bert.safetensors"
    ours = zoo.load(base)
    zoo.adapt(ours, {"type": kind, "rank": 2, "alpha": 4, "targets": ["*.{query,value,up}"]})
    zoo.save_adapter(ours, tmp_path / "start.safetensors")
    export_adapter(tmp_path / "start.safetensors", tmp_path / "start")
    theirs = peft.PeftModel.from_pretrained(
        _original(bases, "bert"), tmp_path / "start", is_trainable=True
    )
    losses = []
    for model, run in (
        (ours, lambda tokens: ours({"source": tokens, "target": tokens}).logits),
        (theirs, lambda tokens: theirs(input_ids=tokens).logits),
    ):
        trained = [p for p in model.train().parameters() if p.requires_grad]
        optimiser = torch.optim.AdamW(trained, lr=0.02)
        values = []
        for tokens, targets in _batches(50):
            loss = F.cross_entropy(run(tokens).flatten(0, 1), targets.flatten())
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            values.append(loss.item())
        losses.append(values)
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    assert losses[0][-1] < losses[0][0] - 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lora_bias": True}, "lora_bias is True, which is not supported"),
        ({"rank_pattern": {"query": 4}}, "query has the rank 2, but the config 4"),
        ({"rank_pattern": [4]}, r"rank_pattern is \[4\]; expected an object"),
        ({"alpha_pattern": {"key": 4}}, "alpha_pattern has 'key', which matches no module"),
        ({"alpha_pattern": {"(a+)+": 4}}, r"the pattern '\(a\+\)\+', which is not supported"),
        ({"alpha_pattern": {"query": "x"}}, "query is 'x'; expected a number"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa'"),
        ({"new_option": 3}, "key 'new_option' is not supported"),
        ({"peft_type": "VERA"}, "peft_type 'VERA' is not supported"),
    ],
)
def test_unsupported_options_are_rejected_by_name(change, message, bases, tmp_path):
    peft.get_peft_model(_original(bases, "bert"), _lora("query")).save_pretrained(tmp_path)
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(zoo.ZooError, match=message):
        import_adapter(tmp_path, tmp_path / "a.safetensors", base=bases / "bert.safetensors")


HARMLESS = {
    "target_parameters": [],
    "enable_lora": None,
    "merge_weights": False,
    "trainable_token_indices": [],
    "init_lora_weights": "orthogonal",
    "layer_replication": None,
}


def test_options_that_do_not_change_the_outputs_are_accepted(bases, tmp_path):
    theirs = peft.get_peft_model(_original(bases, "bert"), _lora("query", init_lora_weights=False))
    theirs.eval().save_pretrained(tmp_path)
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **HARMLESS}))
    base = bases / "bert.safetensors"
    ours = zoo.load(import_adapter(tmp_path, tmp_path / "a.safetensors", base=base)).eval()
    torch.testing.assert_close(
        _logits(ours, "bert"), theirs(input_ids=TOKENS).logits, atol=1e-5, rtol=0
    )


JOINED = {
    "lora": {"type": "lora", "rank": 2, "targets": ["*.{query,value}"]},
    "rank-stabilised": {
        "type": "lora",
        "rank": 2,
        "targets": ["*.{query,key,value,down}"],
        "rank_stabilised": True,
        "ranks": {"*.key": 3},
        "alphas": {"*.value": 5.0},
    },
    "dora": {"type": "dora", "rank": 2, "targets": ["*.{query,key,value}"]},
    "ia3": {"type": "ia3", "targets": ["*.{key,value}"], "inputs": ["*.down"]},
}


@pytest.mark.parametrize("case", JOINED)
def test_adapters_of_parts_of_a_joined_weight_are_one_adapter_in_peft(case, bases, tmp_path):
    """Of the sum of the ranks: the parts have no factor in common."""
    model = zoo.load(bases / "gpt2.safetensors")
    zoo.adapt(model, JOINED[case])
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.adapters.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    zoo.save_adapter(model, tmp_path / "a.safetensors")
    export_adapter(tmp_path / "a.safetensors", tmp_path / "out")
    theirs = peft.PeftModel.from_pretrained(_original(bases, "gpt2"), tmp_path / "out").eval()
    found = theirs(input_ids=TOKENS).logits
    torch.testing.assert_close(found, _logits(model, "gpt2"), rtol=0, atol=1e-5)
    import_adapter(tmp_path / "out", tmp_path / "b.safetensors", base=bases / "gpt2.safetensors")
    again = _logits(zoo.load(tmp_path / "b.safetensors"), "gpt2")
    torch.testing.assert_close(again, found, rtol=0, atol=1e-5)


def test_magnitudes_of_a_part_of_a_joined_weight_are_not_exported(bases, tmp_path):
    model = zoo.load(bases / "gpt2.safetensors")
    zoo.adapt(model, {"type": "dora", "rank": 2, "targets": ["*.{query,value}"]})
    zoo.save_adapter(model, tmp_path / "a.safetensors")
    with pytest.raises(zoo.ZooError, match=r"\.key has no adapter; train adapters of all of them"):
        export_adapter(tmp_path / "a.safetensors", tmp_path / "out")


def test_adapters_without_a_counterpart_are_not_exported(bases, tmp_path):
    model = zoo.load(bases / "bert.safetensors")
    zoo.adapt(model, {"type": "prefix", "targets": ["*.attention"]})
    zoo.save_adapter(model, tmp_path / "a.safetensors")
    with pytest.raises(zoo.ZooError, match="adapter 'prefix' has no counterpart in peft"):
        export_adapter(tmp_path / "a.safetensors", tmp_path / "out")


def test_an_adapter_of_another_model_is_rejected(bases, tmp_path):
    peft.get_peft_model(_original(bases, "bert"), _lora("query")).save_pretrained(tmp_path)
    with pytest.raises(zoo.ZooError, match="the base has no module of"):
        import_adapter(tmp_path, tmp_path / "a.safetensors", base=bases / "gpt2.safetensors")
