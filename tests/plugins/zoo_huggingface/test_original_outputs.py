"""`zoo import --check-with-transformers` compares logits with the original before it writes."""

import json
import sys

import pytest
from hf_model_kit import hf_model
from typer.testing import CliRunner

from zoo.artifact import read_header
from zoo.cli.main import app
from zoo.errors import ZooError


def check(folder, output, *options):
    arguments = ["import", str(folder), "-o", str(output), "--check-with-transformers", *options]
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt2", "bert", "deberta-v2-classifier", "marian", "vit", "clip", "siglip"),
        "vision-encoder-decoder",
        *("clip_text_model", "clip_vision_model", "beit-features", "blip"),
    ],
)
def test_an_import_is_compared_with_transformers(name, tmp_path):
    hf_model(name).half().save_pretrained(tmp_path / "theirs")
    done = check(tmp_path / "theirs", tmp_path / "model.safetensors")
    assert done.exit_code == 0, done.exception
    assert "arrays agree" in done.output
    recorded = read_header(tmp_path / "model.safetensors").provenance["check"]
    assert recorded["max_relative_difference"] < 1e-5


def test_a_difference_is_reported_and_nothing_is_written(tmp_path):
    hf_model("gpt2").save_pretrained(tmp_path / "theirs")
    change = ("--set", "model.decoder.norm.eps=0.3")
    done = check(tmp_path / "theirs", tmp_path / "model.safetensors", *change)
    with pytest.raises(ZooError, match=r"the model differs from the original by 0\.538") as e:
        raise done.exception
    assert "model.decoder.norm.eps=0.3" in str(e.value)
    assert "nothing was written" in str(e.value)
    assert not (tmp_path / "model.safetensors").exists()


def test_what_is_not_supported_is_named(tmp_path, monkeypatch):
    hf_model("wav2vec2").save_pretrained(tmp_path / "theirs")
    done = check(tmp_path / "theirs", tmp_path / "model.safetensors")
    assert "does not support the model 'ctc-recogniser'" in str(done.exception)
    monkeypatch.setitem(sys.modules, "transformers", None)
    done = check(tmp_path / "theirs", tmp_path / "model.safetensors")
    assert "needs transformers" in str(done.exception)
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())
