import pytest
from typer.testing import CliRunner

from zoo import ZooError
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
    path = tmp_path / "train.tsv"
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
