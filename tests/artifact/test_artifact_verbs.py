"""`zoo info` and `zoo verify`, as text and as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from artifact_kit import rewrite
from typer.testing import CliRunner

from zoo.artifact import save
from zoo.artifact.mapped_file import MappedFile
from zoo.cli.main import app, main
from zoo.errors import ArtifactError
from zoo.spec.composition import compose


def run(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model = compose("bahdanau-reversal", dtype="float16")
    model.tokenizer = {"source": "{}", "target": "{}"}
    return save(model, tmp_path / "model.safetensors", provenance={"data": "letters", "seed": 3})


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return save(compose("bahdanau-reversal"), tmp_path / "model", shard_bytes="100kB")


def test_info_shows_the_header(file: Path) -> None:
    text = run("info", file)
    for expected in (
        "68,048 elements, F16, ",
        "format: 2",
        "hashes: sha256 of each of 23 tensors; model hash ",
        "probe: source [2, 5], target [2, 7] -> logits [2, 6, 16]",
        "tokenizer: source, target",
        "data: letters",
        "type: bahdanau:additive",
        "attention-zoo 0.1.0",
    ):
        assert expected in text
    data = json.loads(run("info", file, "--json"))
    assert data["provenance"]["seed"] == 3
    assert data["hashes"] is True
    assert data["dtypes"] == ["F16"]
    assert data["tokenizer"] == ["source", "target"]
    assert data["probe"]["outputs"]["logits"]["shape"] == [2, 6, 16]
    assert all(len(tensor["sha256"]) == 64 for tensor in data["tensors"])
    assert data["bytes"] == file.stat().st_size


def test_info_of_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"missing\.safetensors: no such file$"):
        MappedFile(tmp_path / "missing.safetensors")


def test_info_lists_shards_and_sizes(shards: Path) -> None:
    text = run("info", shards)
    assert "shards: model-00001-of-0000" in text
    data = json.loads(run("info", shards, "--json"))
    assert len(data["files"]) > 1
    assert data["bytes"] == sum(row["bytes"] for row in data["files"])


def test_info_of_format_1_lists_what_is_absent(file: Path) -> None:
    rewrite(file, zoo="1", **dict.fromkeys(("hashes", "digest", "probe", "places")))
    text = run("info", file)
    assert "hashes: absent (format 1)" in text
    assert "probe: absent (format 1)" in text


def test_info_prints_no_control_characters(file: Path) -> None:
    rewrite(file, probe=json.dumps({"skipped": "\x1b[2Jgone"}), provenance='{"a": "\\u001b[2J"}')
    assert "\x1b" not in run("info", file)


def test_verify_prints_one_line_per_check(file: Path, shards: Path) -> None:
    for path in (file, shards, shards / "model.safetensors.index.json"):
        lines = run("verify", path).splitlines()
        assert [line.split()[:2] for line in lines] == [
            ["ok", "header"],
            ["ok", "hashes"],
            ["ok", "spec"],
            ["ok", "probe"],
        ]
    data = json.loads(run("verify", file, "--json"))
    assert data["ok"] is True
    assert [check["status"] for check in data["checks"]] == ["ok"] * 4


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def test_verify_fails_with_a_reason(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(file)
    monkeypatch.setattr(sys, "argv", ["zoo", "verify", str(file)])
    with pytest.raises(SystemExit) as stop:
        main()
    captured = capsys.readouterr()
    assert stop.value.code == 1
    assert "FAILED   hashes" in captured.out
    assert "sha256 does not match" in captured.out
    assert captured.err == f"{file}: verification failed: hashes\n"
    assert "Traceback" not in captured.err
    data = json.loads(run("verify", file, "--json", code=1))
    assert data["ok"] is False
    assert data["checks"][-1]["name"] == "hashes"


@pytest.mark.slow
def test_another_release_prints_one_warning(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["zoo", "info", str(file), "--json"])
        with pytest.raises(SystemExit):
            main()
        lock = json.loads(capsys.readouterr().out)["lock"]
    rewrite(file, lock=json.dumps([{**row, "distribution_version": "0.0.1"} for row in lock]))
    done = subprocess.run(
        [sys.executable, "-m", "zoo", "verify", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"warning: {file} was saved with attention-zoo 0.0.1 (installed: attention-zoo 0.1.0); "
        "component versions are the same\n"
    )


@pytest.mark.slow
def test_ctrl_c_in_verify_prints_no_traceback(tmp_path: Path) -> None:
    model = compose("bahdanau-reversal", overrides=["model.source.vocab=4000000"])
    file = save(model, tmp_path / "m.safetensors", probe=False)
    running = subprocess.Popen(
        [sys.executable, "-m", "zoo", "verify", file],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(str(file) in line for line in _maps(running.pid)):
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in errors


def _maps(process: int) -> list[str]:
    assert os.path.exists(f"/proc/{process}"), "the process has ended"
    return Path(f"/proc/{process}/maps").read_text().splitlines()
