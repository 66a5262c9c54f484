"""Text in, text out: tokenizers inside the artifact, any sampler, streaming, bad input."""

import json

import pytest
import torch
from tokenizers import Tokenizer as Library, models, pre_tokenizers
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.generation.pipeline import stream
from zoo.generation.tokenizer import Tokenizer, attach_tokenizers, read_tokenizer

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "the", "cat", "sat", "on", "a", "mat"]


@pytest.fixture
def tokenizer(tmp_path):
    library = Library(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    library.add_special_tokens(["<pad>", "<s>", "</s>"])
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    return path


def _model(kind, path):
    if kind == "seq2seq":
        model = {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": 10, "dim": 6},
            "encoder": {"type": "gru", "hidden": 4},
            "decoder": {"type": "plain-rnn", "hidden": 5},
        }
    else:
        model = {
            "type": "language-model",
            "embedding": {"type": "token", "vocab": 10, "dim": 6},
            "decoder": {"type": "plain-rnn", "hidden": 5, "init": "zeros"},
        }
    composed = zoo.compose({"zoo": 1, "name": "speaks", "model": model, "sampler": "greedy"})
    text = read_tokenizer(path)
    attach_tokenizers(composed, {"source": text, "target": text})
    return composed


@pytest.mark.parametrize("kind", ["seq2seq", "language-model"])
def test_a_reloaded_model_says_the_same_with_the_tokenizer_it_carries(kind, tokenizer, tmp_path):
    model = _model(kind, tokenizer)
    texts = ["the cat sat", "a mat on the mat"]
    said = zoo.generate(model, texts, max_length=6)
    again = zoo.load(zoo.save(model, tmp_path / "m.safetensors"))
    assert again.tokenizer == model.tokenizer
    assert zoo.generate(again, texts, max_length=6) == said
    for text, (best,) in zip(texts, said, strict=True):
        (alone,) = zoo.generate(model, [text], max_length=6)
        assert alone[0].tokens == best.tokens  # a batch answers as its items alone
        assert best.text == Tokenizer(model.tokenizer["target"]).text(best.tokens)
        pieces = list(stream(model, text, max_length=6))
        assert "".join(pieces).split() == best.text.split()


def test_ids_are_taken_where_there_is_no_tokenizer(tokenizer):
    model = _model("seq2seq", tokenizer)
    (said,) = zoo.generate(model, ["the cat"], max_length=5)
    model.tokenizer = None
    (plain,) = zoo.generate(model, [[4, 5]], max_length=5)
    assert plain[0].tokens == said[0].tokens
    assert plain[0].text is None


def test_any_sampler_and_filter_can_be_named_and_draws_are_seeded(tokenizer):
    model = _model("language-model", tokenizer)
    beam = zoo.generate(model, ["the"], sampler={"type": "beam", "width": 3, "n_best": 3})
    assert len(beam[0]) == 3
    assert beam[0][0].score >= beam[0][1].score >= beam[0][2].score
    draw = {"sampler": {"type": "top-p", "p": 0.9}, "max_length": 12}
    first = zoo.generate(model, ["the"] * 3, seed=1, **draw)
    assert zoo.generate(model, ["the"] * 3, seed=1, **draw) == first
    assert zoo.generate(model, ["the"] * 3, seed=2, **draw) != first
    once = zoo.generate(model, ["the"], filters=[{"type": "no-repeat-ngram", "n": 1}], max_length=9)
    assert len(set(once[0][0].tokens)) == len(once[0][0].tokens)


def test_a_model_without_padding_answers_a_batch_as_its_items_alone():
    gpt = zoo.compose("gpt2-tiny")
    rows = [[0, 5, 0], [7], [3, 0, 0, 0, 9]]
    together = zoo.generate(gpt, rows, max_length=6)
    for row, (best,) in zip(rows, together, strict=True):
        assert zoo.generate(gpt, [row], max_length=6)[0][0].tokens == best.tokens


def test_a_start_symbol_is_put_before_a_prompt_once_and_only_where_there_is_one():
    gpt = zoo.compose("gpt2-tiny")
    plain = zoo.compose("gpt2-tiny", overrides=["model.bos=null"])
    plain.load_state_dict(gpt.state_dict())

    def said(model, row):
        return zoo.generate(model, [row], max_length=6)[0][0].tokens

    assert said(gpt, [5, 9]) == said(gpt, [30, 5, 9]) == said(plain, [30, 5, 9])
    with pytest.raises(zoo.ZooError, match="text 1 is empty"):
        said(plain, [])


def test_sources_of_unequal_length_without_padding_are_refused():
    model = zoo.compose({
        "zoo": 1, "name": "s", "sampler": "greedy",
        "model": {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": 10, "dim": 6, "padding": None},
            "target": {"type": "token", "vocab": 10, "dim": 6},
            "encoder": {"type": "gru", "hidden": 4},
            "decoder": {"type": "plain-rnn", "hidden": 5},
        },
    })  # fmt: skip
    assert len(zoo.generate(model, [[4, 5], [0, 3]], max_length=2)) == 2
    with pytest.raises(zoo.ZooError, match="knows no padding, so texts must be of one length"):
        zoo.generate(model, [[4, 5], [0]])


@pytest.mark.parametrize(
    ("inputs", "options", "reason"),
    [
        ([], {}, "no text was given"),
        ([[]], {}, "text 1 is empty"),
        ([[4, 10]], {}, "token 10, outside the vocabulary of 10"),
        ([[-1]], {}, "token -1, outside the vocabulary"),
        ([[4]], {"sampler": "gredy"}, "did you mean 'greedy'"),
        ([[4]], {"sampler": {"type": "top-p", "p": 0.0}}, "should be greater than 0"),
        ([[4]], {"sampler": {"type": "temperature", "temperature": -1.0}}, "greater than 0"),
        ([[4]], {"sampler": {"type": "beam", "width": 11}}, "wide|vocabulary"),
        ([[4]], {"max_length": 0}, "max_length is 0"),
    ],
)
def test_bad_input_is_a_clear_error(tokenizer, inputs, options, reason):
    model = _model("seq2seq", tokenizer)
    with pytest.raises(zoo.ZooError, match=reason):
        zoo.generate(model, inputs, **options)


def test_a_model_that_does_not_speak_says_so_before_it_asks_for_a_sampler():
    with pytest.raises(zoo.ZooError, match="model 'sentence-encoder' does not generate"):
        zoo.generate(zoo.compose("minilm-tiny"), ["hello"])


def test_nan_logits_and_a_full_context_are_clear_errors(tokenizer):
    model = _model("seq2seq", tokenizer)
    with torch.no_grad():
        model.decoder.out.bias.fill_(float("nan"))
    with pytest.raises(zoo.ZooError, match="NaN"):
        zoo.generate(model, [[4]])
    gpt = zoo.compose("gpt2-tiny")
    with pytest.raises(zoo.ZooError, match="the context holds 32"):
        zoo.generate(gpt, [[4] * 30], max_length=8)
    with pytest.raises(zoo.ZooError, match="does not generate"):
        zoo.generate(zoo.compose("vit-tiny"), [[4]], sampler="greedy")


def test_what_is_no_tokenizer_or_too_large_a_one_is_refused(tokenizer, tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(zoo.ZooError, match=r"\.json is no tokenizer of the tokenizers library"):
        read_tokenizer(tmp_path / "bad.json")
    with pytest.raises(zoo.ZooError, match="cannot be read"):
        read_tokenizer(tmp_path / "none.json")
    small = zoo.compose("bahdanau-reversal", overrides=["model.source.vocab=5"])
    with pytest.raises(zoo.ZooError, match="has 10 symbols, but the model only 5"):
        attach_tokenizers(small, {"source": read_tokenizer(tokenizer)})


def test_the_verb_speaks_from_arguments_files_and_standard_input(tokenizer, tmp_path):
    def run(*arguments, code=0, **options):
        done = CliRunner().invoke(app, [str(a) for a in arguments], **options)
        assert done.exit_code == code, done.output
        return done.output

    spec = tmp_path / "s.yaml"
    spec.write_text(
        "zoo: 1\nname: s\nsampler: greedy\nmodel:\n  type: seq2seq\n"
        "  source: {type: token, vocab: 10, dim: 4}\n  encoder: {type: gru, hidden: 3}\n"
        "  decoder: {type: plain-rnn, hidden: 5}\n"
    )
    file = tmp_path / "m.safetensors"
    run("compose", spec, "-o", file, "--tokenizer", tokenizer)
    assert "tokenizer" in run("info", file, "--json")
    short = ("--max-length", "5")
    said = run("generate", file, "the cat", *short)
    (tmp_path / "in.txt").write_text("the cat\n")
    assert run("generate", file, "--file", tmp_path / "in.txt", *short) == said
    assert run("generate", file, "-", *short, input="the cat\n") == said
    assert run("generate", file, "--ids", "4 5", *short) == said
    streamed = run("generate", file, "the cat", "--stream", *short)
    assert streamed.split() == said.split()
    (row,) = json.loads(
        run("generate", file, "the cat", "--sampler", "beam", "--set", "width=2",
            "--set", "n_best=2", "--json", *short)
    )  # fmt: skip
    assert row["input"] == "the cat"
    assert len(row["answers"]) == 2
    assert set(row["answers"][0]) == {"tokens", "score", "text"}
