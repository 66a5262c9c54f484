"""Fine-tuning of an imported model has the losses of the same training in transformers."""

import numpy as np
import pytest
import torch
import transformers as hf
from hf_model_kit import randomize
from tokenizers import Tokenizer, models, pre_tokenizers
from training_kit import read_log

import zoo

STEPS, ITEMS, SEED = 50, 4, 0
BOS, EOS = 0, 2
# With a smaller eps, updates of weights whose gradient is only rounding differ.
OPTIMISER = {"lr": 2e-3, "betas": (0.9, 0.98), "eps": 1e-5, "weight_decay": 0.05}
GPT2 = hf.GPT2Config(
    vocab_size=31, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=BOS,
    eos_token_id=EOS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)  # fmt: skip
T5 = hf.T5Config(
    vocab_size=31, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, dropout_rate=0.0,
    relative_attention_num_buckets=8, relative_attention_max_distance=20,
    decoder_start_token_id=BOS, eos_token_id=EOS,
)  # fmt: skip

BERT = hf.BertConfig(
    vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=24, max_position_embeddings=16, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0, num_labels=3,
)  # fmt: skip


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(SEED)


def _import(name, model, tmp_path):
    randomize(name, model).save_pretrained(tmp_path / "theirs")
    return zoo.import_model(tmp_path / "theirs", tmp_path / "base.safetensors")


def _train(base, tmp_path, fields, **train):
    """Return the losses of `zoo train` of a spec that extends the imported model."""
    arrays = {"type": "arrays", "file": str(tmp_path / "data.npz"), "fields": fields}
    spec = {
        "extends": str(base),
        "name": "tuned",
        "objective": "cross-entropy",
        "train": {
            "data": arrays,
            "batch": {"items": ITEMS, "shuffle": False, "buckets": 0},
            "optimiser": {"type": "adamw", **OPTIMISER, "betas": [0.9, 0.98], "decay": "all"},
            "steps": STEPS,
            "log": {"every": 1},
            **train,
        },
    }
    zoo.train(spec, output=tmp_path / "run", device="cpu")
    return [entry["loss"] for entry in read_log(tmp_path / "run") if "loss" in entry]


def _train_theirs(model, count, batch_of, parameters=None):
    """Return the losses of a loop in transformers over the same batches."""
    model.train()
    optimiser = torch.optim.AdamW(parameters or model.parameters(), **OPTIMISER)
    losses = []
    for step in range(STEPS):
        start = step * ITEMS % count
        loss = model(**batch_of(slice(start, start + ITEMS))).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    return losses


def _tokens(rows, length, seed):
    return np.random.default_rng(seed).integers(5, 31, (rows, length))


def _with_eos(tokens):
    """Return the tokens [N, T] as transformers takes them; batches of the zoo have the same."""
    return torch.from_numpy(np.pad(tokens, ((0, 0), (0, 1)), constant_values=EOS))


@pytest.mark.parametrize("freeze", [False, True], ids=["whole", "frozen"])
def test_gpt2_has_the_losses_of_transformers(tmp_path, freeze):
    model = hf.GPT2LMHeadModel(GPT2)
    base = _import("gpt2", model, tmp_path)
    target = _tokens(40, 10, seed=0)
    np.savez(tmp_path / "data.npz", target=target)
    fields = {"target": {"dims": ["T"], "dtype": "integer"}}
    frozen = {"freeze": ["embedding", "decoder.position", "decoder.blocks.0"]} if freeze else {}
    losses = _train(base, tmp_path, fields, **frozen)
    tokens = _with_eos(target)
    if freeze:
        for part in (model.transformer.wte, model.transformer.wpe, model.transformer.h[0]):
            part.requires_grad_(False)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    expected = _train_theirs(
        model, 40, lambda rows: {"input_ids": tokens[rows], "labels": tokens[rows]}, trained
    )
    assert losses == pytest.approx(expected, abs=1e-4)
    assert losses[-1] < losses[0] - 0.1


def test_t5_has_the_losses_of_transformers(tmp_path):
    model = hf.T5ForConditionalGeneration(T5)
    base = _import("t5", model, tmp_path)
    source, target = _tokens(40, 9, seed=1), _tokens(40, 7, seed=2)
    np.savez(tmp_path / "data.npz", source=source, target=target)
    fields = {
        "source": {"dims": ["S"], "dtype": "integer"},
        "target": {"dims": ["T"], "dtype": "integer"},
    }
    losses = _train(base, tmp_path, fields)
    inputs, outputs = torch.from_numpy(source), _with_eos(target)
    expected = _train_theirs(
        model, 40, lambda rows: {"input_ids": inputs[rows], "labels": outputs[rows]}
    )
    assert losses == pytest.approx(expected, abs=1e-4)
    assert losses[-1] < losses[0] - 0.1


def test_bert_as_a_classifier_of_texts_has_the_losses_of_transformers(tmp_path):
    model = hf.BertForSequenceClassification(BERT)
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(31)}, unk_token="w1"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    (tmp_path / "theirs").mkdir()
    words.save(str(tmp_path / "theirs" / "tokenizer.json"))
    base = _import("bert", model, tmp_path)
    source = _tokens(40, 9, seed=3)
    target = source[:, 0] % 3
    rows = [
        " ".join(f"w{token}" for token in tokens) + f"\tLABEL_{label}\n"
        for tokens, label in zip(source, target, strict=True)
    ]
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "".join(rows))
    table = {
        "type": "csv",
        "file": str(tmp_path / "data.tsv"),
        "fields": {"source": {"column": "text"}, "target": {"column": "label", "content": "label"}},
    }
    losses = _train(base, tmp_path, {}, data=table)
    inputs, labels = torch.from_numpy(source), torch.from_numpy(target)
    expected = _train_theirs(
        model, 40, lambda rows: {"input_ids": inputs[rows], "labels": labels[rows]}
    )
    assert losses == pytest.approx(expected, abs=1e-4)
    assert min(losses[-10:]) < losses[0] - 0.1
