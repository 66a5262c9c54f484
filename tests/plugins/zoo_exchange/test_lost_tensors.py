"""Tensors that are left out are named by an import and by an export."""

import json
from unittest import TestCase

import pytest
import torch
from hf_model_kit import hf_model
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo_exchange.export_plan import plan_export
from zoo_exchange.lost_tensors import export_notes, import_notes
from zoo_exchange.mapping import Originals, TensorPlan, read_map

HEAD = ("cls.seq_relationship.weight", "cls.seq_relationship.bias")
NOTE = "the head that predicts the next sentence"


@pytest.fixture
def folder(tmp_path):
    """A folder of BERT with the next-sentence head, as the first checkpoints have it."""
    hf_model("bert").save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    head = dict(zip(HEAD, (torch.ones(2, 8), torch.ones(2)), strict=True))
    save_file(load_file(file) | head, file)
    return tmp_path / "theirs"


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_name_what_is_left_out(folder, tmp_path):
    file = tmp_path / "model.safetensors"
    lines = run("import", folder, "-o", file).splitlines()
    assert lines[1:] == [
        f"not imported: {HEAD[1]}, {HEAD[0]}, {NOTE}; an export does not have the values"
    ]
    lines = run("export", file, tmp_path / "out").splitlines()
    assert lines[1:] == [
        f"not exported: {HEAD[1]}, {HEAD[0]}, {NOTE}; classes that have it initialise it"
    ]
    (note,) = json.loads(run("export", file, tmp_path / "json", "--json"))["notes"]
    assert note == lines[1]


def test_python_logs_what_is_left_out(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "home"))
    with TestCase().assertLogs("zoo", "WARNING") as logs:
        file = zoo.import_model(folder, tmp_path / "model.safetensors")
        zoo.export_model(file, tmp_path / "out")
        zoo.load(folder)
    assert [NOTE in line for line in logs.output] == [True, True, True]


def test_an_export_of_a_model_that_was_not_imported_lacks_nothing(folder, tmp_path):
    file = zoo.import_model(folder, tmp_path / "model.safetensors")
    plain = zoo.save(zoo.load(file), tmp_path / "plain.safetensors")
    assert list(plan_export(plain, to="bert").notes) == []


@pytest.mark.parametrize("lost", [None, [], "text", {"a": 3, "b\n": None}])
def test_any_provenance_gives_notes(lost):
    mapped = read_map({"zoo": 1})
    notes = export_notes(mapped, TensorPlan([]), Originals(), {"lost": lost}, ["BertModel"])
    assert len(notes) == (2 if isinstance(lost, dict) else 0)
    assert "\n" not in "".join(notes)


def test_classes_that_have_a_tensor_are_told():
    drop = {"name": "a.{w:x|y}", "export": "omit", "purpose": "a head", "classes": ["Theirs"]}
    mapped = read_map({"zoo": 1, "drop": [drop]})
    arguments = (mapped, TensorPlan([]), Originals(), {})
    assert export_notes(*arguments, ["Other"]) == []
    assert export_notes(*arguments, ["Theirs"]) == [
        "not exported: a.x, a.y, a head; classes that have it initialise it"
    ]


def test_many_names_are_shortened():
    (note,) = import_notes({f"tensor{i}": "a head" for i in range(1_000)})
    assert "tensor19 and 980 more, a head" in note
