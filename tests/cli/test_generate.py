"""``zoo generate``: inputs in several batches."""

import pytest
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.errors import InputError
from zoo.generation.pipeline import generate_batches


def test_batches_of_inputs_give_their_outputs_in_order():
    model = zoo.compose("gpt2-tiny")
    rows = [[5], [6, 7], [8], [9], [5, 6]]
    expected = [found[0].tokens for found in zoo.generate(model, rows, max_length=5)]
    batches = list(generate_batches(model, rows, 2, max_length=5))
    assert [len(each) for each in batches] == [2, 2, 1]
    assert [found[0].tokens for each in batches for found in each] == expected
    options = {"sampler": "temperature", "seed": 1, "max_length": 9}
    sampled = list(generate_batches(model, [[5]] * 3, 1, **options))
    assert sampled[0] != sampled[1]  # the random numbers continue
    with pytest.raises(InputError) as raised:
        list(generate_batches(model, [*rows[:3], [10**6]], 2, max_length=5))
    assert raised.value.number == 4


def test_the_lines_of_a_file_are_generated_in_batches(tmp_path, monkeypatch):
    model = zoo.save(zoo.compose("gpt2-tiny"), tmp_path / "model.safetensors")
    (tmp_path / "lines.txt").write_text("5\n6 7\n8\n")
    command = ["generate", str(model), "--ids", "--file", str(tmp_path / "lines.txt")]
    outputs = []
    for size in (32, 2):
        monkeypatch.setattr("zoo.cli.generate._BATCH", size)
        done = CliRunner().invoke(app, [*command, "--max-length", "4"])
        assert done.exit_code == 0, done.output
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 3
