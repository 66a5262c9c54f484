import gzip
import lzma
import subprocess
import sys

import pytest
import torch

import zoo
from zoo import DataError, ZooError
from zoo.data.tokenizer import Tokenizer

TEXTS = [
    "Two young men  are outside near many bushes.",
    "Several men in hard hats are operating a giant pulley system.",
    "Ein Mädchen im rosa Kleid klettert — 42 Stufen hinauf.",
    "two men are outside",
] * 5
TYPES = ["bpe", "unigram", "wordpiece", "words", "characters"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", TYPES)
def test_training_gives_special_tokens_first_and_the_text_back(corpus, kind):
    summary = zoo.train_tokenizer(corpus, type=kind, vocab=300)
    assert summary.special == {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3}
    assert summary.size <= 300
    assert summary.coverage == 1
    assert summary.example == TEXTS[0]
    tokenizer = Tokenizer(summary.json)
    assert tokenizer.special_ids() == {0: "<pad>", 1: "<unk>", 2: "<s>", 3: "</s>"}
    rows = tokenizer.encode(TEXTS)
    assert min(map(min, rows)) > 3
    mean = sum(map(len, rows)) / len(rows)
    assert summary.tokens_per_line == pytest.approx(mean)
    if kind in ("bpe", "unigram", "characters"):
        assert [tokenizer.decode(row) for row in rows] == TEXTS
    elif kind == "words":
        assert [tokenizer.decode(row) for row in rows] == [" ".join(t.split()) for t in TEXTS]


@pytest.mark.parametrize("kind", TYPES)
def test_special_tokens_in_the_text_keep_their_ids(tmp_path, kind):
    path = tmp_path / "wiki.tokens"
    path.write_text("a <unk> b x<unk>y\n</s> a <unk> c\n" * 9, encoding="utf-8")
    summary = zoo.train_tokenizer(path, type=kind, vocab=300)
    assert summary.special == {"<pad>": 0, "<unk>": 1, "<s>": 2, "</s>": 3}
    tokenizer = Tokenizer(summary.json)
    assert tokenizer.special_ids() == {0: "<pad>", 1: "<unk>", 2: "<s>", 3: "</s>"}
    assert sorted(tokenizer.backend.get_vocab().values()) == list(range(summary.size))


def test_bytes_encode_any_text(corpus):
    tokenizer = Tokenizer(zoo.train_tokenizer(corpus, vocab=270).json)
    unseen = "日本語 \t 😀"
    assert tokenizer.decode(tokenizer.encode([unseen])[0]) == unseen


def test_words_are_those_of_a_counter(corpus):
    from collections import Counter

    counts = Counter(word for text in TEXTS for word in text.split())
    frequent = {word for word, count in counts.items() if count >= 10}
    summary = zoo.train_tokenizer(corpus, type="words", min_count=10, special=["unk"])
    vocab = Tokenizer(summary.json).backend.get_vocab()
    assert set(vocab) == {"<unk>", *frequent}
    total = sum(counts.values())
    assert summary.coverage == pytest.approx(sum(counts[w] for w in frequent) / total)


def test_two_processes_write_the_same_files(corpus, tmp_path):
    code = f"""import zoo
for kind in {TYPES}:
    zoo.train_tokenizer({str(corpus)!r}, kind + ".json", type=kind, vocab=280)"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    for kind in TYPES:
        here = zoo.train_tokenizer(corpus, tmp_path / "here.json", type=kind, vocab=280)
        assert (tmp_path / "here.json").read_text(encoding="utf-8") == here.json
        assert (tmp_path / f"{kind}.json").read_text(encoding="utf-8") == here.json, kind


def test_lower_case_and_special_tokens(corpus):
    summary = zoo.train_tokenizer(
        corpus, type="words", lowercase=True, special=["eos", "pad", "<user>"]
    )
    assert summary.special == {"</s>": 0, "<pad>": 1, "<user>": 2, "<unk>": 3}
    tokenizer = Tokenizer(summary.json)
    assert tokenizer.encode(["Two MEN"]) == tokenizer.encode(["two men"])
    with pytest.raises(ZooError, match="special tokens occur twice: <pad>, <pad>"):
        zoo.train_tokenizer(corpus, special=["pad", "<pad>"])


def test_compressed_files_and_columns(tmp_path):
    rows = "".join(f"id\t{text}\n" for text in TEXTS).encode()
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(rows))
    (tmp_path / "b.tsv.xz").write_bytes(lzma.compress(rows))
    files = [tmp_path / "a.tsv.gz", tmp_path / "b.tsv.xz"]
    both = zoo.train_tokenizer(files, type="words", column=2)
    (tmp_path / "plain.txt").write_text("\n".join(TEXTS * 2), encoding="utf-8")
    assert both.json == zoo.train_tokenizer(tmp_path / "plain.txt", type="words").json
    with pytest.raises(DataError, match=r"a\.tsv\.gz:1: column 3 is missing; the line has 2"):
        zoo.train_tokenizer(files, column=3)


def test_columns_with_another_delimiter(tmp_path):
    path = tmp_path / "g2p.txt"
    path.write_text("ABADIE  AH B AE\nABATES  AH B EY\n", encoding="utf-8")
    summary = zoo.train_tokenizer(path, type="words", column=2, delimiter="  ")
    assert set(Tokenizer(summary.json).backend.get_vocab()) >= {"AH", "B", "AE", "EY"}
    assert summary.example == "AH B AE"
    with pytest.raises(ZooError, match="delimiter is empty"):
        zoo.train_tokenizer(path, column=2, delimiter="")


def test_wrong_files_and_sizes_raise(tmp_path, corpus):
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        zoo.train_tokenizer(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match="the files have no text"):
        zoo.train_tokenizer(tmp_path / "empty.txt")
    with pytest.raises(ZooError, match=r"vocab \(100\) must be at least 260 for the type bpe"):
        zoo.train_tokenizer(corpus, vocab=100)
    with pytest.raises(ZooError, match="no type of tokenizers named 'bp'; did you mean 'bpe'"):
        zoo.train_tokenizer(corpus, type="bp")


SPEC = {
    "zoo": 1,
    "name": "mine",
    "model": {
        "type": "seq2seq",
        "bos": 4,
        "eos": 2,
        "source": {"type": "token", "vocab": 300, "dim": 4, "padding": 1},
        "encoder": {"type": "gru", "hidden": 3},
        "decoder": {"type": "plain-rnn", "hidden": 5},
    },
}


def test_a_tokenizer_for_a_model_has_its_size_and_special_tokens(corpus):
    model = zoo.compose(SPEC)
    summary = zoo.train_tokenizer(corpus, model=model, key="target")
    assert summary.size <= 300
    assert summary.special == {"<unk>": 0, "<pad>": 1, "</s>": 2, "<unused3>": 3, "<s>": 4}
    source = zoo.train_tokenizer(corpus, model=model, key="source")
    assert source.special == {"<unk>": 0, "<pad>": 1}
    with pytest.raises(
        ZooError, match=r"'mask' of model 'seq2seq' does not contain token IDs .keys"
    ):
        zoo.train_tokenizer(corpus, model=model, key="mask")


def test_a_tokenizer_for_all_keys_of_a_model_has_the_special_tokens_of_each(corpus):
    shared = zoo.train_tokenizer(corpus, model=zoo.compose(SPEC))
    assert shared.special == {"<unk>": 0, "<pad>": 1, "</s>": 2, "<unused3>": 3, "<s>": 4}
    target = {"type": "token", "vocab": 400, "dim": 4, "padding": 1}
    model = zoo.compose({**SPEC, "model": {**SPEC["model"], "target": target}})
    with pytest.raises(ZooError, match="different sizes: 300 for 'source' and 400 for 'target'"):
        zoo.train_tokenizer(corpus, model=model)
    assert zoo.train_tokenizer(corpus, model=model, key="target").special == shared.special
    classes = zoo.compose("vit-tiny")
    with pytest.raises(ZooError, match="the batch of model 'classifier' does not contain token"):
        zoo.train_tokenizer(corpus, model=classes)


def test_a_model_whose_padding_is_its_last_token_is_rejected(corpus):
    spec = {**SPEC, "model": {**SPEC["model"], "bos": 0, "source": {
        "type": "token", "vocab": 300, "dim": 4, "padding": 299}}}  # fmt: skip
    with pytest.raises(ZooError, match=r"ID 299, the last one .* such as 'model: \{padding: 0\}'"):
        zoo.train_tokenizer(corpus, model=zoo.compose(spec))


def test_a_model_whose_end_is_its_last_token_says_what_to_change(corpus):
    with pytest.raises(ZooError, match=r"ID 30, the last one .* 'model: \{bos: 0, eos: 0\}'"):
        zoo.train_tokenizer(corpus, model=zoo.compose("gpt2-tiny"))
    changes = ["model.bos=0", "model.eos=0"]
    model = zoo.compose("gpt2-tiny", overrides=changes)
    trained = zoo.train_tokenizer(corpus, type="characters", model=model)
    assert trained.special == {"</s>": 0, "<unk>": 1}


def test_the_parameter_model_may_be_on_the_meta_device(corpus):
    with torch.device("meta"):
        model = zoo.load_spec(SPEC).sections.model.build()
    assert zoo.train_tokenizer(corpus, model=model).special["<pad>"] == 1


def test_the_line_breaks_of_documents_are_tokens(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("ab\n\tc\r\n")
    lines = Tokenizer(zoo.train_tokenizer(path, type="characters").json)
    assert lines.unknown(["ab\n\tc"]) == ["\n"]
    document = Tokenizer(zoo.train_tokenizer(path, type="characters", unit="document").json)
    assert document.unknown(["ab\n\tc"]) == []
    for wrong in ({"column": 1}, {"columns": ["a"]}):
        with pytest.raises(ZooError, match="unit is 'document'; columns need unit 'line'"):
            zoo.train_tokenizer(path, unit="document", **wrong)
    with pytest.raises(ZooError, match="unit is 'page'; expected one of line, document"):
        zoo.train_tokenizer(path, unit="page")
