"""Text generation: tokenizers in artifacts, samplers, streaming, invalid inputs."""

import json

import pytest
import torch
from tokenizers import Tokenizer as Library, decoders, models, pre_tokenizers
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.data.tokenizer import Tokenizer, attach_tokenizers, read_tokenizer
from zoo.generation.pipeline import _decode_pieces

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
    composed = zoo.compose({"zoo": 1, "name": "generates", "model": model, "sampler": "greedy"})
    text = read_tokenizer(path)
    attach_tokenizers(composed, {"source": text, "target": text})
    return composed


@pytest.mark.parametrize("kind", ["seq2seq", "language-model"])
def test_a_reloaded_model_generates_the_same_text(kind, tokenizer, tmp_path):
    model = _model(kind, tokenizer)
    texts = ["the cat sat", "a mat on the mat"]
    hypotheses = zoo.generate(model, texts, max_length=6)
    reloaded = zoo.load(zoo.save(model, tmp_path / "m.safetensors"))
    assert reloaded.tokenizer == model.tokenizer
    assert zoo.generate(reloaded, texts, max_length=6) == hypotheses
    for text, (best,) in zip(texts, hypotheses, strict=True):
        (single,) = zoo.generate(model, [text], max_length=6)
        assert single[0].tokens == best.tokens  # batching does not change the output
        assert best.text == Tokenizer(model.tokenizer["target"]).decode(best.tokens)
        pieces = list(zoo.stream(model, text, max_length=6))
        assert "".join(pieces).split() == best.text.split()


def test_stream_yields_an_incomplete_character_at_the_end(tmp_path):
    bytes_of_e_acute = ["<0xC3>", "<0xA9>"]  # the second one is never generated
    vocab = {"a": 0, **{byte: i for i, byte in enumerate(bytes_of_e_acute, 1)}}
    library = Library(models.BPE(vocab, [], byte_fallback=True))
    library.decoder = decoders.ByteFallback()
    tokenizer = Tokenizer(library.to_str())
    pieces = list(_decode_pieces(iter([0, 1]), tokenizer))
    assert "".join(pieces) == tokenizer.decode([0, 1]) == "a\ufffd"


def test_token_ids_without_a_tokenizer(tokenizer):
    model = _model("seq2seq", tokenizer)
    (by_text,) = zoo.generate(model, ["the cat"], max_length=5)
    model.tokenizer = None
    (by_ids,) = zoo.generate(model, [[4, 5]], max_length=5)
    assert by_ids[0].tokens == by_text[0].tokens
    assert by_ids[0].text is None
    with pytest.raises(zoo.ZooError, match=r"no tokenizer.*--tokenizer"):
        zoo.generate(model, ["the cat"])


def test_a_prompt_is_a_text_or_token_ids(tokenizer, tmp_path):
    model = _model("seq2seq", tokenizer)
    prompted = zoo.generate(model, ["the cat", "a"], max_length=5, prompt="on a")
    assert prompted == zoo.generate(model, ["the cat", "a"], max_length=5, prompt=[7, 8])
    assert prompted != zoo.generate(model, ["the cat", "a"], max_length=5)
    path = str(zoo.save(model, tmp_path / "m.safetensors"))
    for options in (["the cat", "--prompt", "on a"], ["4 5", "--prompt", "7 8", "--ids"]):
        result = CliRunner().invoke(app, ["generate", path, *options, "--max-length", "5"])
        assert result.output.split() == prompted[0][0].text.split()
    with pytest.raises(zoo.ZooError, match="the tokenizer does not know 'auf' of the prompt"):
        zoo.generate(model, ["the cat"], prompt="auf a")
    model.tokenizer = None
    with pytest.raises(zoo.ZooError, match=r"no tokenizer for targets.*--ids"):
        zoo.generate(model, [[4]], prompt="on")
    with pytest.raises(zoo.ZooError, match="prompt is empty"):
        zoo.generate(model, [[4]], prompt=[])
    with pytest.raises(zoo.ZooError, match="continues its inputs, so it does not take a prompt"):
        zoo.generate(_model("language-model", tokenizer), ["the"], prompt="on")


def test_samplers_filters_and_seeds(tokenizer):
    model = _model("language-model", tokenizer)
    beam = zoo.generate(model, ["the"], sampler={"type": "beam", "width": 3, "n_best": 3})
    assert len(beam[0]) == 3
    assert beam[0][0].score >= beam[0][1].score >= beam[0][2].score
    top_p = {"sampler": {"type": "top-p", "p": 0.9}, "max_length": 12}
    first = zoo.generate(model, ["the"] * 3, seed=1, **top_p)
    assert zoo.generate(model, ["the"] * 3, seed=1, **top_p) == first
    assert zoo.generate(model, ["the"] * 3, seed=2, **top_p) != first
    once = zoo.generate(model, ["the"], filters=[{"type": "no-repeat-ngram", "n": 1}], max_length=9)
    assert len(set(once[0][0].tokens)) == len(once[0][0].tokens)


def test_batching_a_model_without_padding_does_not_change_the_output():
    gpt = zoo.compose("gpt2-tiny")
    rows = [[0, 5, 0], [7], [3, 0, 0, 0, 9]]
    batched = zoo.generate(gpt, rows, max_length=6)
    for row, (best,) in zip(rows, batched, strict=True):
        assert zoo.generate(gpt, [row], max_length=6)[0][0].tokens == best.tokens


def test_the_start_token_is_added_once_if_the_model_has_one():
    gpt = zoo.compose("gpt2-tiny")
    plain = zoo.compose("gpt2-tiny", overrides=["model.bos=null"])
    plain.load_state_dict(gpt.state_dict())

    def generated(model, row):
        return zoo.generate(model, [row], max_length=6)[0][0].tokens

    assert generated(gpt, [5, 9]) == generated(gpt, [30, 5, 9]) == generated(plain, [30, 5, 9])
    with pytest.raises(zoo.ZooError, match="input 1: it is empty"):
        generated(plain, [])


def test_sources_of_different_lengths_without_padding_raise():
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
    with pytest.raises(zoo.ZooError, match=r"no padding token.*\[1, 2\]"):
        zoo.generate(model, [[4, 5], [0]])


@pytest.fixture
def partly_training(tokenizer):
    """A model in training mode with a frozen encoder, and the modes that its modules ran in."""
    model = _model("seq2seq", tokenizer).train()
    model.encoder.eval()
    modes = []
    for module in (model.source, model.encoder, model.decoder.out):
        module.register_forward_hook(
            lambda *_: modes.append((model.training, model.decoder.training))
        )
    return model, modes


def _training_modes(model):
    return model.training, model.encoder.training, model.decoder.training


def test_generate_runs_in_evaluation_mode_and_restores_the_modes(partly_training):
    model, modes = partly_training
    zoo.generate(model, ["the cat"], max_length=3)
    assert set(modes) == {(False, False)}
    assert _training_modes(model) == (True, False, True)
    with torch.no_grad():
        model.decoder.out.bias.fill_(float("nan"))
    with pytest.raises(zoo.ZooError, match="NaN"):
        zoo.generate(model, ["the cat"], max_length=3)
    assert _training_modes(model) == (True, False, True)


def test_stream_restores_the_modes_after_each_piece(partly_training):
    model, modes = partly_training
    pieces = zoo.stream(model, "the cat", max_length=3)
    assert _training_modes(model) == (True, False, True)
    assert len(modes) == 2  # the encoder has run, the decoder has not
    for _ in pieces:
        assert _training_modes(model) == (True, False, True)
    assert set(modes) == {(False, False)}
    assert len(modes) > 3


def test_one_text_has_its_hypotheses(tokenizer):
    model = _model("seq2seq", tokenizer)
    assert zoo.generate(model, "the cat") == zoo.generate(model, ["the cat"])[0]


def test_stream_validates_its_arguments_when_called(tokenizer):
    model = _model("seq2seq", tokenizer)
    with pytest.raises(zoo.ZooError, match=r"'beam'.*cannot stream"):
        zoo.stream(model, "the cat", sampler="beam")
    with pytest.raises(zoo.ZooError, match="max_length is 0"):
        zoo.stream(model, "the cat", max_length=0)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ([], {}, "inputs is empty"),
        (7, {}, "inputs is 7; expected a list of texts"),
        ([4, 5], {}, r"inputs is \[4, 5\]; expected .* lists of token IDs"),
        ([[4], "cat"], {}, "input 2 is 'cat'; expected a list of token IDs"),
        ([[4.5]], {}, r"input 1 is \[4.5\]; expected a list of token IDs"),
        ([[4]], {"seed": 2**64}, "seed is 18446744073709551616; expected an integer"),
        ([[]], {}, "input 1: it is empty"),
        ([[4, 10]], {}, "input 1: it contains token ID 10,.* 10 tokens"),
        ([[-1]], {}, "input 1: it contains token ID -1,"),
        ([[4]], {"sampler": "gredy"}, "did you mean 'greedy'"),
        ([[4]], {"sampler": {"type": "top-p", "p": 0.0}}, "should be greater than 0"),
        ([[4]], {"sampler": {"type": "temperature", "temperature": -1.0}}, "greater than 0"),
        ([[4]], {"sampler": {"type": "beam", "width": 11}}, "wide|vocabulary"),
        ([[4]], {"max_length": 0}, "max_length is 0"),
        ([[4]], {"max_length": 10**20}, "max_length is 10+; it must be from 1 to 10,000,000"),
    ],
)
def test_invalid_inputs_raise(tokenizer, inputs, options, message):
    model = _model("seq2seq", tokenizer)
    with pytest.raises(zoo.ZooError, match=message):
        zoo.generate(model, inputs, **options)


def test_a_model_that_does_not_generate_raises():
    with pytest.raises(zoo.ZooError, match="model 'sentence-encoder' does not support generation"):
        zoo.generate(zoo.compose("minilm-tiny"), ["hello"])


def test_nan_logits_and_a_full_context_raise(tokenizer):
    model = _model("seq2seq", tokenizer)
    with torch.no_grad():
        model.decoder.out.bias.fill_(float("nan"))
    with pytest.raises(zoo.ZooError, match="NaN"):
        zoo.generate(model, [[4]])
    gpt = zoo.compose("gpt2-tiny")
    with pytest.raises(zoo.ZooError, match=r"38 tokens.* 32 positions"):
        zoo.generate(gpt, [[4] * 30], max_length=8)
    with pytest.raises(zoo.ZooError, match="does not support generation"):
        zoo.generate(zoo.compose("vit-tiny"), [[4]], sampler="greedy")


def test_invalid_and_too_large_tokenizers_raise(tokenizer, tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(zoo.ZooError, match=r"bad\.json.*tokenizers library"):
        read_tokenizer(tmp_path / "bad.json")
    with pytest.raises(zoo.ZooError, match="cannot be read"):
        read_tokenizer(tmp_path / "none.json")
    small = zoo.compose("bahdanau-reversal", overrides=["model.source.vocab=5"])
    with pytest.raises(zoo.ZooError, match=r"source tokenizer has 10 tokens.*vocabulary has 5"):
        attach_tokenizers(small, {"source": read_tokenizer(tokenizer)})


def test_the_command_reads_arguments_files_and_standard_input(tokenizer, tmp_path):
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
    output = run("generate", file, "the cat", *short)
    (tmp_path / "in.txt").write_text("the cat\n")
    assert run("generate", file, "--file", tmp_path / "in.txt", *short) == output
    assert run("generate", file, "-", *short, input="the cat\n") == output
    (tmp_path / "in.txt").write_text("the\u2028cat\n", encoding="utf-8")  # one line
    assert len(run("generate", file, "--file", tmp_path / "in.txt", *short).splitlines()) == 1
    assert run("generate", file, "--ids", "4 5", *short) == output
    streamed = run("generate", file, "the cat", "--stream", *short)
    assert streamed.split() == output.split()
    (row,) = json.loads(
        run("generate", file, "the cat", "--sampler", "beam", "--set", "width=2",
            "--set", "n_best=2", "--json", *short)
    )  # fmt: skip
    assert row["input"] == "the cat"
    assert len(row["hypotheses"]) == 2
    assert set(row["hypotheses"][0]) == {"tokens", "score", "text"}
