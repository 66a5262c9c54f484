"""``zoo eval`` as a person or a program calls it."""

import json
import sys

import jiwer
import pytest
import sacrebleu
from typer.testing import CliRunner

from zoo.cli.main import app, main
from zoo.registry.component_registry import default_registry

SAID = "the cat sat on the mat .\nrain falls on the old town\nкот прилег на лавку\n"
WANTED = "the cat is on the mat .\nit rains in the old town\nкот лег на лавку\n"
ALSO = "a cat sat on a mat .\nthe old town has rain\nкот на лавке\n"


@pytest.fixture
def files(tmp_path):
    for name, content in (("h", SAID), ("r1", WANTED), ("r2", ALSO)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    return ["--hyp", str(tmp_path / "h"), "--ref", str(tmp_path / "r1")]


@pytest.fixture
def fail(monkeypatch, capsys):
    """What the command says when it fails with exit code 1, through the real entry point."""

    def fail(*arguments):
        monkeypatch.setattr(sys, "argv", ["zoo", "eval", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        assert stop.value.code == 1
        assert said.out == ""
        assert said.err.count("\n") == 1
        return said.err

    return fail


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["eval", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_json_has_values_on_the_libraries_scales_and_signatures(files, tmp_path):
    names = "bleu,chrf,ter,wer"
    found = json.loads(run(*files, "--ref", str(tmp_path / "r2"), "--metrics", names, "--json"))

    said, wanted, also = (text.splitlines() for text in (SAID, WANTED, ALSO))
    assert list(found) == ["bleu", "chrf", "ter", "wer", "signatures"]
    assert found["bleu"] == pytest.approx(sacrebleu.corpus_bleu(said, [wanted, also]).score)
    assert found["chrf"] == pytest.approx(sacrebleu.corpus_chrf(said, [wanted, also]).score)
    assert found["ter"] == pytest.approx(sacrebleu.corpus_ter(said, [wanted, also]).score)
    assert list(found["signatures"]) == ["bleu", "chrf", "ter", "wer"]
    version = sacrebleu.__version__
    assert found["signatures"]["bleu"] == (
        f"nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    one = json.loads(run(*files, "--metrics", "wer", "--json"))
    assert one["wer"] == pytest.approx(jiwer.wer(wanted, said))


def test_every_metric_of_texts_has_a_value_and_a_signature(files):
    names = [e.name for e in default_registry().components("metric") if e.cls.consumes == "text"]

    found = json.loads(run(*files, "--metrics", ",".join(names), "--json"))

    assert list(found["signatures"]) == names
    assert all(found["signatures"].values())
    values = {name: value for name, value in found.items() if name != "signatures"}
    assert set(values) == {*names, "rouge-1", "rouge-2", "rouge-l"} - {"rouge"}
    assert all(isinstance(value, float) for value in values.values())


def test_the_plain_form_is_a_table_of_bleu_and_chrf_by_default(files):
    lines = run(*files).splitlines()

    assert lines[0].split() == ["metric", "value", "signature"]
    assert [line.split()[0] for line in lines[1:]] == ["bleu", "chrf"]
    value = json.loads(run(*files, "--json"))["bleu"]
    assert lines[1].split()[1:] == [f"{value:.4f}", sacrebleu_signature()]


def sacrebleu_signature():
    return f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_the_values_of_one_metric_share_its_signature(files):
    lines = run(*files, "--metrics", "rouge").splitlines()

    assert [len(line.split()) for line in lines[1:]] == [3, 2, 2]


def test_parameters_can_be_set(files):
    options = ["--set", "bleu.tokenize=intl", "--set", "bleu.lowercase=true"]

    found = json.loads(run(*files, "--metrics", " bleu , ", *options, "--json"))

    assert "|case:lc|" in found["signatures"]["bleu"]
    assert "|tok:intl|" in found["signatures"]["bleu"]


def test_files_must_be_given():
    run("--hyp", "h.txt", code=2)
    run("--ref", "r.txt", code=2)


def test_mistakes_are_told_in_one_sentence(files, fail, tmp_path):
    assert "no metric named 'blue'; did you mean 'bleu'?" in fail(*files, "--metrics", "blue")
    assert "'accuracy' reads token ids" in fail(*files, "--metrics", "bleu,accuracy")
    assert "no metric is named" in fail(*files, "--metrics", ",")
    assert "no such file or directory" in fail("--hyp", "no.txt", *files[2:])
    assert "but should be '13a'" in fail(*files, "--set", "bleu.tokenize=13b")
    (tmp_path / "short").write_text("one\n")
    assert "has 1 line, but" in fail(*files, "--ref", str(tmp_path / "short"))
    (tmp_path / "latin").write_bytes("caf\xe9\n".encode("latin-1"))
    assert "is not UTF-8 text" in fail(*files, "--ref", str(tmp_path / "latin"))
