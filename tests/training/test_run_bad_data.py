"""Examples that cannot be used, through ``zoo train``."""

import json

import pytest
from bad_data_kit import CASES, undecodable_bytes
from train_command_kit import run_zoo, write_spec
from typer.testing import CliRunner

import zoo
from zoo import ZooError
from zoo.cli.main import app

SKIP = ("--set", "train.bad_data=skip", "--set", "train.log.every=1")


def _train(spec, output, *options):
    arguments = ["train", spec, "--device", "cpu", "-o", output, *options]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None:
        assert isinstance(result.exception, ZooError), result.exc_info
        return str(result.exception)
    return result.output


@pytest.mark.parametrize("make_case", CASES, ids=lambda case: case.__name__)
def test_bad_data_ends_the_run_or_is_counted(make_case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = make_case(tmp_path)
    spec = write_spec(tmp_path, case.spec)
    message = _train(spec, "fail")
    assert case.origin in message
    assert case.reason in message
    assert ("'bad_data: skip' in 'train' leaves such examples out" in message) == bool(case.count)
    assert not (tmp_path / "fail/checkpoints").exists()
    output = _train(spec, "skip", *SKIP)
    if not case.count:
        assert output == message
        return
    (line,) = (line for line in output.splitlines() if line.startswith("skipped"))
    assert line.startswith(f"skipped {case.count} example")
    assert case.reason in line
    last = json.loads((tmp_path / "skip/log.jsonl").read_text().splitlines()[-1])
    ((reason, count),) = last["skipped"].items()
    assert (case.reason in reason, count) == (True, case.count)


def test_bad_data_ends_the_process_with_a_message(tmp_path):
    case = undecodable_bytes(tmp_path)
    code, _, errors = run_zoo(tmp_path, "train", write_spec(tmp_path, case.spec), "-o", "run")
    assert code == 1
    assert errors.splitlines() == [errors.strip()]
    assert f"{case.origin}: " in errors
    assert case.reason in errors


NUMBERS = """\
extends: text-regressor-small
name: numbers
model: {source: {vocab: 20, dim: 8}, encoder: {layers: 1}}
train:
  data:
    type: csv
    file: a.csv
    fields: &fields {source: {column: x}, target: {column: y, content: number}}
  validation: {type: csv, file: b.csv, fields: *fields}
  optimiser: {type: adamw, lr: 1e-3}
  batch: {items: 2}
  bad_data: skip
  steps: 1
"""


def test_skipped_validation_examples_and_the_unit_of_the_speed_are_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.yaml").write_text(NUMBERS)
    (tmp_path / "a.csv").write_text("x,y\na b,1\nb c,2\n")
    (tmp_path / "b.csv").write_text("x,y\na b,1\nb c,many\n")
    special = ["pad", "unk"]
    zoo.train_tokenizer("a.csv", "tokenizer.json", type="words", columns=["x"], special=special)
    output = _train("numbers.yaml", "run")
    assert "skipped 1 examples of the validation data: column 'y' contains 'many'" in output
    assert " examples/s" in output  # the tokens of these examples are not counted
    last = json.loads((tmp_path / "run/log.jsonl").read_text().splitlines()[-1])
    assert list(last["skipped_validation"].values()) == [1]


def test_rows_that_are_left_out_are_not_counted_as_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.txt").write_text("a b c\n")
    (tmp_path / "rows.tsv").write_text("a b\tb a\nc\t\nb\tb\n")
    model = zoo.compose("transformer-tiny")
    zoo.train_tokenizer("rows.txt", "words.json", type="words", model=model)
    text = {"type": "text", "tokenizer": "words.json"}
    data = {"type": "parallel-text", "file": "rows.tsv"}
    spec = {"zoo": 1, "extends": "transformer-tiny", "name": "rows"}
    spec["preprocessing"] = {"source": text, "target": text}
    spec["train"] = {"data": data, "optimiser": "adamw", "steps": 1}
    output = _train(write_spec(tmp_path, spec), "run", *SKIP)
    assert "; 2 examples, 1 updates per epoch" in output
    assert "skipped 1 examples" in output
