"""``zoo eval MODEL`` from the command line."""

import json

import pytest
import torch
from kits.evaluation_kit import random_tokens, varied_translator
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.errors import ZooError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    generator = torch.Generator().manual_seed(0)
    for name in ("test.en", "test.de"):
        rows = [row.tolist() for row in random_tokens(5, 16, generator)]
        lines = (" ".join(f"w{token}" for token in row) for row in rows)
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = {"type": "text"}
    model = varied_translator(metrics=["chrf"], preprocessing={"source": text, "target": text})
    data = {"type": "parallel-text", "source": str(folder / "test.en"), "target": "moved.de"}
    provenance = {"train": {"section": {"validation": data}}}
    zoo.save(model, folder / "model.safetensors", provenance=provenance)
    for name in ("log.jsonl", "spec.yaml"):
        (folder / name).touch()
    return folder


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["eval", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def test_values_and_signatures_are_printed_and_hypotheses_written(folder, tmp_path):
    target = f"target={folder / 'test.de'}"
    out = tmp_path / "hyp.txt"
    lines = run(folder, "--data", target, "--max-length", 6, "--hypotheses", out).splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["metric", "loss", "chrf"]
    assert lines[2].split()[2].startswith("nrefs:1|case:mixed")
    assert lines[3].startswith("5 examples in ")

    more = ["--max-length", 6, "--batch", 2, "--json"]
    result = json.loads(run(folder, "--data", target, *more))
    assert lines[2].split()[1] == f"{result['chrf']:.4f}"
    assert result["examples"] == 5
    assert result["data"]["target"] == str(folder / "test.de")
    assert result["sampler"] == {"type": "sampling:greedy"}
    model = zoo.load(folder)
    sources = (folder / "test.en").read_text(encoding="utf-8").splitlines()
    expected = [zoo.generate(model, [line], max_length=6)[0][0].text for line in sources]
    assert out.read_text(encoding="utf-8").splitlines() == expected

    files = ["--hyp", out, "--ref", folder / "test.de", "--metrics", "chrf", "--json"]
    assert json.loads(run(*files))["chrf"] == pytest.approx(result["chrf"])


def test_sampler_metrics_and_data_can_be_set(folder):
    data = ["--data", "type=parallel-text", "--data", f"source={folder / 'test.en'}"]
    data += ["--data", f"target={folder / 'test.de'}"]
    options = ["--sampler", "{type: beam, width: 2}", "--set", "sampler.width=3"]
    options += ["--metrics", "bleu", "--set", "bleu.tokenize=intl"]
    limits = ["--limit", 2, "--max-length", 4, "--json"]
    result = json.loads(run(folder, *data, *options, *limits))
    assert result["examples"] == 2
    assert result["sampler"] == {"type": "beam", "width": 3}
    assert "|tok:intl|" in result["signatures"]["bleu"]


def test_usage():
    assert "expected a MODEL, or text files" in run(code=2)
    assert "cannot be combined with --hyp" in run("model", "--hyp", "h", "--ref", "r", code=2)
    assert "needs a MODEL" in run("--data", "a=b", "--hyp", "h", "--ref", "r", code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], r"moved\.de: no such file .*--data KEY=VALUE"),
        (["--data", "source"], "--data source: expected KEY=VALUE"),
        (["--data", "sorce=x"], "unknown key 'sorce'; did you mean 'source'"),
        (["--part", "test"], "not trained with a dataset 'test': it has validation"),
        (["--metrics", "micro-f1"], "metrics that fit: accuracy, bleu"),
    ],
)
def test_errors(folder, options, message):
    done = CliRunner().invoke(app, ["eval", str(folder), *options])
    assert done.exit_code == 1
    with pytest.raises(ZooError, match=message):
        raise done.exception
