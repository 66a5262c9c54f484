"""zoo embed."""

import json

from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo_preprocessing.tokenized import EXAMPLE_TOKENIZER

MODEL = {
    "type": "sentence-encoder",
    "source": {"type": "token", "vocab": 9, "dim": 4},
    "encoder": {"type": "gru", "hidden": 4},
    "prompts": {"query": "the "},
}


def test_vectors_are_printed_with_a_prompt_and_a_width(tmp_path):
    model = zoo.compose(
        {"zoo": 1, "name": "tiny", "model": MODEL, "preprocessing": {"source": "text"}}
    )
    model.tokenizer = {"source": EXAMPLE_TOKENIZER}
    file = str(zoo.save(model, tmp_path / "model.safetensors"))
    options = ["cat", "mat", "--prompt", "query", "--truncate-dim", "3"]
    result = CliRunner().invoke(app, ["embed", file, *options])
    assert result.exit_code == 0, result.output
    rows = [[float(number) for number in line.split()] for line in result.stdout.splitlines()]
    expected = zoo.embed(model, ["cat", "mat"], prompt="query", truncate_dim=3)
    assert rows == [[float(f"{number:.6g}") for number in row] for row in expected.tolist()]
    result = CliRunner().invoke(app, ["embed", file, *options, "--json"])
    assert [row["input"] for row in json.loads(result.stdout)] == ["cat", "mat"]
    assert json.loads(result.stdout)[1]["vector"] == expected[1].tolist()
