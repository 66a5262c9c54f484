"""Word vectors: files shared with gensim, questions answered as gensim does, corrupt files."""

import json
import sys

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors

import zoo
from zoo import Vectors, ZooError
from zoo.cli.main import main

WORDS = ["king", "queen", "man", "woman", "Köln", "naïve"]


@pytest.fixture
def vectors():
    return Vectors(WORDS, np.random.default_rng(0).normal(size=(6, 5)))


@pytest.mark.parametrize("form", ["word2vec", "word2vec-binary", "glove"])
def test_every_format_brings_back_every_bit(vectors, form, tmp_path):
    vectors.write(tmp_path / "v", form)
    again = Vectors.read(tmp_path / "v")
    assert list(again.words) == WORDS
    assert np.array_equal(again.matrix, vectors.matrix)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # gensim, without a header
@pytest.mark.parametrize("form", ["word2vec", "word2vec-binary", "glove"])
def test_gensim_reads_what_we_write(vectors, form, tmp_path):
    vectors.write(tmp_path / "v", form)
    theirs = KeyedVectors.load_word2vec_format(
        tmp_path / "v", binary=form.endswith("binary"), no_header=form == "glove"
    )
    assert theirs.index_to_key == WORDS
    assert np.array_equal(theirs.vectors, vectors.matrix)


@pytest.mark.parametrize("binary", [False, True])
def test_we_read_what_gensim_writes(vectors, binary, tmp_path):
    theirs = KeyedVectors(5)
    theirs.add_vectors(WORDS, vectors.matrix)
    theirs.save_word2vec_format(tmp_path / "v", binary=binary)
    ours = Vectors.read(tmp_path / "v")
    assert list(ours.words) == theirs.index_to_key
    np.testing.assert_allclose(ours.matrix, theirs.vectors, rtol=1e-6)


def test_questions_are_answered_as_gensim_answers_them(vectors):
    theirs = KeyedVectors(5)
    theirs.add_vectors(WORDS, vectors.matrix)
    assert vectors.similarity("king", "Köln") == pytest.approx(theirs.similarity("king", "Köln"))
    for ours, expected in (
        (vectors.most_similar("man", 3), theirs.most_similar("man", topn=3)),
        (
            vectors.analogy("man", "king", "woman", 3),
            theirs.most_similar(positive=["king", "woman"], negative=["man"], topn=3),
        ),
    ):
        assert [word for word, _ in ours] == [word for word, _ in expected]
        np.testing.assert_allclose([s for _, s in ours], [s for _, s in expected], rtol=1e-5)


def test_a_word_with_a_blank_and_a_repeated_word_are_read_as_meant(tmp_path):
    (tmp_path / "v").write_text("at home 1 2\nat 3 4\nat 5 6\n", encoding="utf-8")
    (tmp_path / "w").write_text("at 1 2\nat home 3 4\nat 5 6\n", encoding="utf-8")
    read = Vectors.read(tmp_path / "w")
    assert list(read.words) == ["at", "at home"]
    assert read["at"].tolist() == [1, 2]
    with pytest.raises(ZooError, match="line 1 should hold a word and 3 numbers"):
        Vectors.read(tmp_path / "v")


@pytest.mark.parametrize("header", [b"", b"2 2\n"])
def test_a_mark_of_the_byte_order_is_no_letter(header, tmp_path):
    (tmp_path / "v").write_bytes(b"\xef\xbb\xbf" + header + b"at 1 2\nhome 3 4\n")
    assert list(Vectors.read(tmp_path / "v").words) == ["at", "home"]


CORRUPT = {
    "empty": (b"", "it is empty"),
    "blank": (b"\n", "its first line is empty"),
    "no numbers": (b"word\n", "line 1 has a word and no numbers"),
    "letters": (b"a 1 2\nb 1 x\n", "line 2 should hold a word and 2 numbers"),
    "huge": (b"a 1e39\n", "line 1 should hold a word and 1 finite numbers"),
    "narrow": (b"2 2\na 1 2 3\nb 1 2 3\n", "promises words of width 2, but line 2 has 3"),
    "wide": (b"2 4\na 1 2 3\nb 1 2 3\n", "promises words of width 4, but line 2 has 3"),
    "digits": (b"1" * 5000 + b" 2\na 1 2\n", "its header holds a number of over 18 digits"),
    "short": (b"2 3\na 1 2 3\nb 1 2\n", "line 3 should hold a word and 3"),
    "nan": (b"a 1 nan\n", "line 1 should hold a word and 2 finite numbers"),
    "count": (b"3 2\na 1 2\nb 1 2\n", "promises 3 words, but it holds 2"),
    "greedy": (b"999999999 300\nab", "promises 999,999,999 words of width 300, too many for"),
    "nothing": (b"0 5\n", "its header promises 0 words of width 5"),
    "not utf-8": (b"a 1 2\n\xff\xfe 1 2\n", "line 2 is not UTF-8"),
    "cut": (b"1 2\na \x00\x00\x80?\x00\x00", "it ends in the vector of word 1 of 1"),
    "endless word": (b"1 2\nabcdefgh\x00", "it ends, or never ends, in word 1"),
    "longer": (b"1 1\na \x00\x00\x80?b \x00", "it goes on after the 1 words"),
    "much longer": (b"1 1\na \x00\x00\x80?\n\n\nb", "it goes on after the 1 words"),
    "no word": (b"1 1\n \x00\x00\x80?", "word 1 has no letters"),
    "infinite": (b"1 1\na \x00\x00\x80\x7f", "it holds numbers that are not finite"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_file_is_refused_in_words(name, tmp_path):
    content, said = CORRUPT[name]
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ZooError, match="is no sound vector file: .*" + said):
        Vectors.read(tmp_path / "v")


def test_random_damage_never_crashes(vectors, tmp_path):
    rng = np.random.default_rng(0)
    for form in ("word2vec", "word2vec-binary", "glove"):
        vectors.write(tmp_path / "v", form)
        whole = (tmp_path / "v").read_bytes()
        for _ in range(200):
            broken = bytearray(whole[: rng.integers(1, len(whole) + 1)])
            broken[rng.integers(len(broken))] = rng.integers(256)
            (tmp_path / "w").write_bytes(broken)
            try:
                read = Vectors.read(tmp_path / "w")
            except ZooError:
                continue
            assert np.isfinite(read.matrix).all()


def test_bad_vectors_and_questions_say_what_is_wrong(vectors, tmp_path):
    with pytest.raises(ZooError, match="the vocabulary is empty"):
        Vectors([], np.zeros((0, 3)))
    with pytest.raises(ZooError, match="the word 'a' has two vectors"):
        Vectors(["a", "a"], np.zeros((2, 3)))
    with pytest.raises(ZooError, match=r"2 words cannot have vectors \[3, 3\]"):
        Vectors(["a", "b"], np.zeros((3, 3)))
    with pytest.raises(ZooError, match="'KÖLN' is none of the 6 here; did you mean 'Köln'"):
        vectors.most_similar("KÖLN")
    with pytest.raises(ZooError, match="no vector format named 'w2v'"):
        vectors.write(tmp_path / "v", "w2v")
    with pytest.raises(ZooError, match="'a b' holds a blank"):
        Vectors(["a b"], np.zeros((1, 2))).write(tmp_path / "v")
    with pytest.raises(ZooError, match="cannot be read: no such file"):
        Vectors.read(tmp_path / "absent")


def test_vectors_plug_into_any_models_embedding(vectors):
    spec = "gru-lm"
    changes = ["model.embedding={vocab: 5, dim: 5}", "model.decoder.hidden=4"]
    model = zoo.compose(spec, overrides=changes)
    table = model.embedding.table.weight
    before = table.clone()
    assert vectors.fill(table, [None, "queen", "unheard-of", "king", "man"]) == 3
    assert torch.equal(table[1].detach(), torch.from_numpy(vectors["queen"]))
    assert torch.equal(table[[0, 2]], before[[0, 2]])
    assert table.requires_grad
    with pytest.raises(ZooError, match=r"width 5 for 2 words do not fit a table \[5, 5\]"):
        vectors.fill(table, ["king", "queen"])


def _run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["zoo", "vectors", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    return stop.value.code, said.out, said.err


def test_the_command_line_answers_and_converts(vectors, tmp_path, monkeypatch, capsys):
    file = tmp_path / "v.txt"
    vectors.write(file)
    run = lambda *arguments: _run(monkeypatch, capsys, file, *arguments)  # noqa: E731
    assert run() == (0, "6 words of width 5\n", "")
    assert run("king", "man")[1] == f"{vectors.similarity('king', 'man'):.4f}\n"
    assert vectors.most_similar("king")[0][0] in run("king")[1].splitlines()[1]
    answer = json.loads(run("man", "king", "woman", "--json", "--count", 1)[1])
    assert answer["nearest"][0]["word"] == vectors.analogy("man", "king", "woman")[0][0]
    assert run("-o", tmp_path / "v.bin", "--format", "word2vec-binary")[0] == 0
    assert np.array_equal(Vectors.read(tmp_path / "v.bin").matrix, vectors.matrix)
    code, out, err = run("emperor")
    assert (code, out) == (1, "")
    assert err == "the word 'emperor' is none of the 6 here\n"
    assert run("a", "b", "c", "d")[2] == "4 words are too many; give one, two or three\n"


def test_a_model_with_words_answers_too(tmp_path, monkeypatch, capsys):
    from tokenizers import Tokenizer, models

    model = zoo.compose("skip-gram-tiny", overrides=["model.source.vocab=7"])
    library = Tokenizer(models.WordLevel({"<pad>": 0} | {w: i for i, w in enumerate(WORDS, 1)}))
    model.tokenizer = {"source": library.to_str()}
    own = zoo.vectors_from_model(model)
    zoo.save(model, tmp_path / "m.safetensors")
    _, out, _ = _run(monkeypatch, capsys, tmp_path / "m.safetensors", "king", "queen")
    assert out == f"{own.similarity('king', 'queen'):.4f}\n"
    model.tokenizer = None
    with pytest.raises(ZooError, match="carries no source tokenizer"):
        zoo.vectors_from_model(model)
