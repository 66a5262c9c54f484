"""``zoo eval`` from the command line."""

import json
import sys

import jiwer
import pytest
import sacrebleu
from typer.testing import CliRunner

from zoo.cli.main import app, main
from zoo.registry.component_registry import default_registry

HYPOTHESES = "the cat sat on the mat .\nrain falls on the old town\nкот прилег на лавку\n"
REFERENCES = "the cat is on the mat .\nit rains in the old town\nкот лег на лавку\n"
MORE = "a cat sat on a mat .\nthe old town has rain\nкот на лавке\n"


@pytest.fixture
def files(tmp_path):
    for name, content in (("h", HYPOTHESES), ("r1", REFERENCES), ("r2", MORE)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    return ["--hyp", str(tmp_path / "h"), "--ref", str(tmp_path / "r1")]


@pytest.fixture
def fail(monkeypatch, capsys):
    """Run the command through its entry point, expect exit code 1, return the message."""

    def fail(*arguments):
        monkeypatch.setattr(sys, "argv", ["zoo", "eval", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        assert stop.value.code == 1
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return fail


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["eval", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_json_values_equal_the_reference_libraries(files, tmp_path):
    names = "bleu,chrf,ter,wer"
    result = json.loads(run(*files, "--ref", str(tmp_path / "r2"), "--metrics", names, "--json"))

    hyp, *refs = (text.splitlines() for text in (HYPOTHESES, REFERENCES, MORE))
    assert list(result) == ["bleu", "chrf", "ter", "wer", "signatures"]
    assert result["bleu"] == pytest.approx(sacrebleu.corpus_bleu(hyp, refs).score)
    assert result["chrf"] == pytest.approx(sacrebleu.corpus_chrf(hyp, refs).score)
    assert result["ter"] == pytest.approx(sacrebleu.corpus_ter(hyp, refs).score)
    assert list(result["signatures"]) == ["bleu", "chrf", "ter", "wer"]
    version = sacrebleu.__version__
    assert result["signatures"]["bleu"] == (
        f"nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    one = json.loads(run(*files, "--metrics", "wer", "--json"))
    assert one["wer"] == pytest.approx(jiwer.wer(refs[0], hyp))


def test_every_text_metric_has_a_value_and_a_signature(files):
    names = [e.name for e in default_registry().components("metric") if e.cls.consumes == "text"]

    result = json.loads(run(*files, "--metrics", ",".join(names), "--json"))

    assert list(result["signatures"]) == names
    assert all(result["signatures"].values())
    values = {name: value for name, value in result.items() if name != "signatures"}
    assert set(values) == {*names, "rouge-1", "rouge-2", "rouge-l"} - {"rouge-google"}
    assert all(isinstance(value, float) for value in values.values())


def test_the_default_output_is_a_table_of_bleu_and_chrf(files):
    lines = run(*files).splitlines()

    assert lines[0].split() == ["metric", "value", "signature"]
    assert [line.split()[0] for line in lines[1:]] == ["bleu", "chrf"]
    value = json.loads(run(*files, "--json"))["bleu"]
    assert lines[1].split()[1:] == [f"{value:.4f}", sacrebleu_signature()]


def sacrebleu_signature():
    return f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_the_values_of_one_metric_share_its_signature(files):
    lines = run(*files, "--metrics", "rouge-google").splitlines()

    assert [len(line.split()) for line in lines[1:]] == [3, 2, 2]


def test_parameters_can_be_set(files):
    options = ["--set", "bleu.tokenize=intl", "--set", "bleu.lowercase=true"]

    result = json.loads(run(*files, "--metrics", " bleu , ", *options, "--json"))

    assert "|case:lc|" in result["signatures"]["bleu"]
    assert "|tok:intl|" in result["signatures"]["bleu"]


def test_files_are_required():
    run("--hyp", "h.txt", code=2)
    run("--ref", "r.txt", code=2)


def test_errors_are_one_line(files, fail, tmp_path):
    assert "no metric named 'blue'; did you mean 'bleu'?" in fail(*files, "--metrics", "blue")
    assert "'accuracy' takes token IDs" in fail(*files, "--metrics", "bleu,accuracy")
    assert "metrics is empty" in fail(*files, "--metrics", ",")
    assert "no such file or directory" in fail("--hyp", "no.txt", *files[2:])
    assert "but should be '13a'" in fail(*files, "--set", "bleu.tokenize=13b")
    (tmp_path / "short").write_text("one\n")
    assert "has 1 line, but" in fail(*files, "--ref", str(tmp_path / "short"))
    (tmp_path / "latin").write_bytes("caf\xe9\n".encode("latin-1"))
    assert "is not UTF-8 text" in fail(*files, "--ref", str(tmp_path / "latin"))
