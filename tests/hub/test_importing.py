"""Refusals that need only the small files of a repository come before its weights are requested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hf_model_kit import hf_model
from hub_server import Hub
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app

NAME = "org/theirs"
QUANTIZED = {"quantization_config": {"quant_method": "mxfp4"}}
SENTENCES = [{"idx": 0, "type": "sentence_transformers.models.Unheard"}]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders as `save_pretrained` writes them. Tests must not change them."""
    folders = {}
    for name in ("gpt_oss", "bert", "llama"):
        folders[name] = tmp_path_factory.mktemp(name)
        hf_model(name).save_pretrained(folders[name])
    return folders


def publish(hub: Hub, folder: Path, **contents: Any) -> None:
    """Add the files of a folder; `contents` are merged into JSON files, by name without suffix."""
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    for stem, content in contents.items():
        known = json.loads(files.get(f"{stem}.json", b"{}"))
        merged = {**known, **content} if isinstance(content, dict) else content
        files[f"{stem}.json"] = json.dumps(merged).encode()
    hub.repo(NAME).add(files)


def weight_requests(hub: Hub) -> list[Any]:
    return [request for request in hub.requests_to("safetensors") if "index" not in request.path]


REFUSED = {
    "architecture": ("bert", {"config": {"model_type": "unheard"}}, "no importer supports"),
    "class": ("bert", {"config": {"architectures": ["BertForQuestionAnswering"]}}, "architectures"),
    "quantized": ("gpt_oss", {"config": QUANTIZED}, "'quantization_config' is .*mxfp4"),
    "unknown key": ("llama", {"config": {"unheard": 1}}, "'unheard' is 1.*--ignore unheard"),
    "value": ("llama", {"config": {"is_causal": False}}, "'is_causal' is false"),
    "generation": (
        "llama", {"generation_config": {"guidance_scale": 2.0}},
        "'guidance_scale' is 2.0.*--ignore guidance_scale",
    ),
    "sentence modules": ("bert", {"modules": SENTENCES}, "modules.json"),
    "tokenizer": ("bert", {"tokenizer": {"model": {"type": "unheard"}}}, "tokenizer"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_requests_no_weights(
    hub: Hub, theirs: dict[str, Path], tmp_path: Path, case: str
) -> None:
    name, contents, message = REFUSED[case]
    publish(hub, theirs[name], **contents)
    with pytest.raises(zoo.ZooError, match=message):
        zoo.import_model(NAME, tmp_path / "model.safetensors")
    assert weight_requests(hub) == []
    with pytest.raises(zoo.ZooError, match=message):
        zoo.load(NAME)
    # To find out whether they are weights of this library, their header is read.
    assert all("range" in request.headers for request in weight_requests(hub))


def test_a_map_that_is_not_valid_requests_no_weights(
    hub: Hub, theirs: dict[str, Path], tmp_path: Path
) -> None:
    publish(hub, theirs["bert"])
    spec, invalid = "bert-base", {"zoo": 1, "rename": {"a.{n}": "b"}, "unheard": 1}
    with pytest.raises(zoo.SpecError, match="unheard"):
        zoo.import_model(NAME, tmp_path / "model.safetensors", spec=spec, map=invalid)
    assert weight_requests(hub) == []


def test_an_adapter_is_refused_with_advice(hub: Hub, tmp_path: Path) -> None:
    hub.repo(NAME).add({"adapter_config.json": b"{}", "adapter_model.safetensors": b"weights"})
    with pytest.raises(zoo.ZooError, match=f"adapter of peft.*hf download {NAME} --local-dir"):
        zoo.import_model(NAME, tmp_path / "model.safetensors")
    assert weight_requests(hub) == []


def test_an_adapter_that_is_not_supported_requests_nothing_of_its_base(
    hub: Hub, theirs: dict[str, Path], tmp_path: Path
) -> None:
    publish(hub, theirs["bert"])
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_bias": true}')
    with pytest.raises(zoo.ZooError, match="lora_bias is True"):
        zoo.import_adapter(tmp_path, tmp_path / "adapter.safetensors", base=NAME)
    assert hub.requests == []


def test_keys_that_are_ignored_are_left_out(
    hub: Hub, theirs: dict[str, Path], tmp_path: Path
) -> None:
    publish(hub, theirs["llama"], config={"unheard": 1}, generation_config={"guidance_scale": 2.0})
    out = tmp_path / "model.safetensors"
    ignored = ["--ignore", "unheard", "--ignore", "guidance_scale"]
    done = CliRunner().invoke(app, ["import", NAME, "-o", str(out), *ignored])
    assert done.exit_code == 0, done.output
    with pytest.raises(zoo.ZooError, match="--ignore hidden_size: the importer 'llama' needs"):
        zoo.import_model(NAME, out, ignore=["hidden_size"])


def test_only_the_weights_of_the_model_are_downloaded(
    hub: Hub, theirs: dict[str, Path], tmp_path: Path
) -> None:
    publish(hub, theirs["llama"])
    hub.repo(NAME).put(**{"model.fp16.safetensors": b"another variant"})
    zoo.import_model(NAME, tmp_path / "model.safetensors")
    assert not hub.requests_to("fp16")
