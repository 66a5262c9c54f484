import json

import pytest
from typer.testing import CliRunner

import zoo
from zoo import ZooError, ZooWarning
from zoo.cli.main import app
from zoo.data.tokenizer import Tokenizer


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["tokenizer", *map(str, arguments)])
    if isinstance(done.exception, ZooError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1\tThe cat sat\n2\tthe mat\n")
    return path


def test_train_prints_a_summary_and_an_example(corpus, tmp_path):
    output = tmp_path / "t.json"
    text = run(
        "train", corpus, "-o", output, "--type", "words", "--vocab", 6, "--special", "pad, unk",
        "--column", 2, "--lowercase",
    )  # fmt: skip
    assert text.splitlines() == [
        f"{output}: 6 tokens (<pad> 0, <unk> 1)",
        "coverage 100.00%, 2.5 tokens per line (of the first 10,000 lines)",
        "text    The cat sat",
        "tokens  the cat sat",
        "IDs     2 3 5",
        "decoded the cat sat",
    ]
    assert Tokenizer(output.read_text()).encode(["THE mat"]) == [[2, 4]]


SPEC = {
    "zoo": 1,
    "name": "shakespeare",
    "extends": "lm-small",
    "model": {"embedding": {"vocab": 40, "dim": 8}},
    "preprocessing": {"target": {"type": "text", "tokenizer": "t.json"}},
    "train": {
        "data": {"type": "plain-text", "files": "play.txt", "unit": "document"},
        "optimiser": {"type": "adamw", "lr": 1e-3},
        "steps": 1,
    },
}


@pytest.mark.parametrize(
    ("arguments", "word", "decoded"),
    [
        (["--for", "play.yaml"], "text", "ab\n\tc"),
        (["play.txt", "--for", "play.yaml"], "text", "ab\n\tc"),
        (["play.txt", "--unit", "document"], "text", "ab\n\tc"),
        (["play.txt", "--unit", "line", "--for", "play.yaml"], "line", "ab\tc"),
        (["play.txt"], "line", "ab\tc"),
    ],
)
def test_documents_are_read_with_their_line_breaks(tmp_path, monkeypatch, arguments, word, decoded):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "play.txt").write_text("ab\n\tc\n")
    (tmp_path / "play.yaml").write_text(json.dumps(SPEC))
    printed = run("train", *arguments, "-o", "t.json", "--type", "characters").splitlines()
    assert f"tokens per {word} (of the first 10,000 {word}s)" in printed[1]
    assert printed[2] == "text    ab"
    tokenizer = Tokenizer((tmp_path / "t.json").read_text())
    assert tokenizer.decode(tokenizer.encode(["ab\n\tc"])[0]) == decoded


def test_files_or_a_spec_are_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "play.yaml").write_text(json.dumps(SPEC))
    with pytest.raises(ZooError, match="expected text files, or --for SPEC, whose training data"):
        run("train", "-o", "t.json")
    with pytest.raises(ZooError, match="--column is for text files; the texts are those of --for"):
        run("train", "-o", "t.json", "--for", "play.yaml", "--column", 1)
    with pytest.raises(ZooError, match="'lm-small' has no section train whose data has texts"):
        run("train", "-o", "t.json", "--for", "lm-small")


def test_train_for_a_spec_uses_its_special_tokens(corpus, tmp_path):
    output = tmp_path / "t.json"
    text = run(
        "train", corpus, "-o", output, "--type", "words", "--for", "transformer-tiny",
        "--key", "target", "--min-count", 2,
    )  # fmt: skip
    assert "(<pad> 0, <s> 1, </s> 2, <unk> 3)" in text
    with pytest.raises(ZooError, match="no spec or file named 'transformer-tin'"):
        run("train", corpus, "-o", output, "--for", "transformer-tin")


def test_show_encodes_and_decodes_a_text(corpus, tmp_path):
    run("train", corpus, "-o", tmp_path / "t.json", "--type", "characters")
    text = run("show", tmp_path / "t.json", "the cat?")
    assert "(<pad> 0, <unk> 1, <s> 2, </s> 3)" in text
    assert "decoded the cat\n" in text
    assert len(run("show", tmp_path / "t.json").splitlines()) == 1


def test_wrong_usage(corpus, tmp_path):
    run("train", corpus, code=2)
    run("train", code=2)
    with pytest.raises(ZooError, match="no type of tokenizers named 'word'"):
        run("train", corpus, "-o", tmp_path / "t.json", "--type", "word")
    with pytest.raises(ZooError, match=r"none\.json cannot be read"):
        run("show", tmp_path / "none.json")


def tokens(path):
    return set(Tokenizer(path.read_text()).backend.get_vocab()) - {"<pad>", "<unk>", "<s>", "</s>"}


TABLES = {
    "a.csv": 'id,text,note\n1,"one, two\nlines",x\n2,three,y\n',
    "a.tsv": "id\ttext\tnote\n1\tone, two\tx\n2\tlines three\ty\n",
    "a.jsonl": '{"text": "one, two", "id": 3}\n{"text": ["lines", "three"]}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_of_tables(name, tmp_path, recwarn):
    (tmp_path / name).write_text(TABLES[name])
    output = tmp_path / "t.json"
    run("train", tmp_path / name, "-o", output, "--type", "words", "--columns", "text")
    assert tokens(output) == {"one,", "two", "lines", "three"}
    assert not recwarn
    with pytest.raises(ZooError, match=rf"{name}:1: no column 'txt'; did you mean 'text'\?"):
        run("train", tmp_path / name, "-o", output, "--columns", "txt")


def test_a_column_with_a_comma_is_quoted(tmp_path):
    (tmp_path / "a.csv").write_text('"Query, short",Doc,id\none,two,3\n')
    options = ["-o", tmp_path / "t.json", "--type", "words", "--columns"]
    run("train", tmp_path / "a.csv", *options, '"Query, short",Doc')
    assert tokens(tmp_path / "t.json") == {"one", "two"}


def test_columns_of_a_table_without_header(tmp_path):
    (tmp_path / "a.csv").write_text("one,two\nthree,four\n")
    run("train", tmp_path / "a.csv", "-o", tmp_path / "t.json", "--type", "words", "--columns", "2")
    assert tokens(tmp_path / "t.json") == {"two", "four"}
    with pytest.raises(ZooError, match=r"a.csv:1: column 3 is missing; the line has 2"):
        run("train", tmp_path / "a.csv", "-o", tmp_path / "t.json", "--columns", "3")


def test_quotes_in_tables(tmp_path):
    (tmp_path / "a.tsv").write_text('en\tde\n"one\teins"\n')
    options = ["-o", tmp_path / "t.json", "--type", "words", "--columns"]
    run("train", tmp_path / "a.tsv", *options, "en,de")
    assert tokens(tmp_path / "t.json") == {'"one', 'eins"'}
    (tmp_path / "a.csv").write_text('en,de\na,b\n"one,eins\n')
    with pytest.raises(ZooError, match=r"a.csv:3: not valid CSV: unexpected end of data"):
        run("train", tmp_path / "a.csv", *options, "en")


def test_nested_keys_of_json(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": {"en": "one", "de": "eins"}}\n')
    options = ["--type", "words", "--columns", "t.en,t.de"]
    run("train", tmp_path / "a.jsonl", "-o", tmp_path / "t.json", *options)
    assert tokens(tmp_path / "t.json") == {"one", "eins"}


WARNINGS = [
    ("a.csv", [], "its lines are used as texts; choose .* --columns id,text,note"),
    ("a.tsv", [], "its lines are used as texts; choose .* --columns id,text,note"),
    ("a.jsonl", [], "its lines are used as texts; choose .* --columns text"),
    ("a.tsv", ["--column", 2], "its first line, .* is used as a text; if it is a header, choose"),
]


@pytest.mark.parametrize(("name", "options", "message"), WARNINGS)
def test_a_table_that_is_read_as_lines_is_a_warning(name, options, message, tmp_path):
    (tmp_path / name).write_text(TABLES[name])
    with pytest.warns(ZooWarning, match=message):
        run("train", tmp_path / name, "-o", tmp_path / "t.json", "--type", "words", *options)


def test_extract_writes_the_tokenizer_of_a_model(corpus, tmp_path):
    model, output = tmp_path / "m.safetensors", tmp_path / "out.json"
    run("train", corpus, "-o", tmp_path / "t.json", "--type", "words", "--for", "transformer-tiny")
    text = (tmp_path / "t.json").read_text()
    built = zoo.compose("transformer-tiny")
    zoo.save(built, model)
    with pytest.raises(ZooError, match="contains no tokenizer"):
        run("extract", model, "-o", output)
    built.tokenizer = {"source": text, "target": text}
    zoo.save(built, model)
    assert run("extract", model, "-o", output).startswith(f"{output}: ")
    assert output.read_text() == text
    built.tokenizer = {"source": text, "target": text.replace('"cat"', '"dog"')}
    zoo.save(built, model)
    with pytest.raises(ZooError, match=r"several tokenizers; .* --key source or --key target"):
        run("extract", model, "-o", output)
    run("extract", model, "-o", output, "--key", "target")
    assert "dog" in output.read_text()
    with pytest.raises(ZooError, match="has no tokenizer of 'sorce'; did you mean 'source'"):
        run("extract", model, "-o", output, "--key", "sorce")
