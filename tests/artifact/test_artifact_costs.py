"""Small files with hostile headers are read or rejected in little time and memory."""

import contextlib
import json
import os
from functools import partial
from pathlib import Path

import pytest
import torch
from artifact_kit import REGISTRY, TIED, write_file
from safetensors import safe_open

import zoo
from zoo.artifact import save
from zoo.cli import info
from zoo.errors import ZooError
from zoo.testing.laws.cost import run_with_limits, supports_limits

pytestmark = pytest.mark.skipif(not supports_limits(), reason="limits of processes need Linux")
SIZE = 3_000_000
KEYS = [
    "spec",
    "provenance",
    *(pytest.param(key, marks=pytest.mark.slow) for key in ("lock", "places", "probe", "hashes")),
]


def _repeat(text: str, start: str, end: str) -> str:
    return start + text * (SIZE // len(text)) + end


TEXTS = {
    "lists": _repeat("[],", "[", "0]"),
    "objects": _repeat("{},", "[", "0]"),
    "numbers": _repeat("1,", "[", "0]"),
    "strings": _repeat('"",', "[", "0]"),
    "levels": "[" * (SIZE // 2) + "]" * (SIZE // 2),
    "levels of objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "repeated key": "{" + "".join(f'"{n}":0,' for n in range(250_000)) + '"249999":0}',
    "keys": "{" + "".join(f'"{n}":0,' for n in range(250_000)) + '"a":0}',
    "long string": '{"name":"' + "a\\n " * (SIZE // 4) + '"}',
    "escaped quotes": '{"name":"' + '\\"' * (SIZE // 2) + '"}',
    "string without an end": '"' + '\\"' * (SIZE // 2),
    "quotes without an end": "," * 1_000_000 + '"\\' * (SIZE // 4),
    "digits": "[" + "9" * SIZE + "]",
    "numbers of many digits": _repeat("9" * 4_000 + ",", "[", "0]"),
    "surrogates": '["' + "\\ud800" * (SIZE // 6) + '"]',
    "long keys": "{" + ",".join(f'"{"k" * 100_000}{n}":0' for n in range(100)) + "}",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """For each text: an artifact with it as each metadata, a file with it as header, an index."""
    folder = tmp_path_factory.mktemp("files")
    path = save(zoo.compose(TIED, registry=REGISTRY), folder / "model.safetensors")
    with safe_open(path, framework="pt") as opened:
        metadata = opened.metadata()
    created = {}
    for label, text in TEXTS.items():
        raw = text.encode()
        header = folder / f"{label}.safetensors"
        header.write_bytes(len(raw).to_bytes(8, "little") + raw)
        index = folder / f"{label}.safetensors.index.json"
        index.write_bytes(raw)
        created[label] = [header, index]
    return folder, metadata, created


def _info_problem(path: Path) -> str:
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        try:
            info.command(str(path))
        except ZooError as error:
            return "" if len(str(error)) < 2_000 else f"a message of {len(str(error)):,} characters"
    return ""


def _info_with_metadata(folder: Path, metadata: dict[str, str], key: str, text: str) -> str:
    path = folder / "changed.safetensors"
    with contextlib.suppress(UnicodeEncodeError):
        write_file(path, {**metadata, key: text}, {"a": torch.zeros(1)})
    return _info_problem(path)


def test_hostile_headers_and_indices_take_little_time_and_memory(files):
    _, _, created = files
    cases = [(label, path) for label, paths in created.items() for path in paths]
    assert all(path.stat().st_size < 20_000_000 for _, path in cases)
    tasks = [partial(_info_problem, path) for _, path in cases]
    problems = zip(cases, run_with_limits(tasks, cpu_seconds=4), strict=True)
    assert not [(label, path.suffix, problem) for (label, path), problem in problems if problem]


@pytest.mark.parametrize("key", KEYS)
def test_hostile_metadata_takes_little_time_and_memory(key, files):
    folder, metadata, _ = files
    tasks = [partial(_info_with_metadata, folder, metadata, key, text) for text in TEXTS.values()]
    problems = zip(TEXTS, run_with_limits(tasks, cpu_seconds=4), strict=True)
    assert not [(label, problem) for label, problem in problems if problem]


def test_a_large_provenance_is_shortened_but_complete_as_json(tmp_path, capsys):
    path = tmp_path / "model.safetensors"
    provenance = {"labels": list(range(20_000)), "text": "a" * 50_000}
    save(zoo.compose(TIED, registry=REGISTRY), path, provenance=provenance)
    info.command(str(path))
    printed = capsys.readouterr().out
    assert "more values are not shown" in printed
    assert len(printed) < 100_000
    info.command(str(path), as_json=True)
    assert json.loads(capsys.readouterr().out)["provenance"]["labels"] == list(range(20_000))
