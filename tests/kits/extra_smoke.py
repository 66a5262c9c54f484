"""Use everything of the installed zoo once, in an environment with the packages of one extra.

Prints a JSON object: for each thing that failed, the message. Run by the environment's own Python.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

FAILURES: dict[str, str] = {}


def attempt(thing: str, run: Callable[[], Any]) -> Any:
    """Run a function; record its failure, with the traceback unless the user can mend it."""
    from zoo import ZooError

    try:
        return run()
    except ZooError as error:
        FAILURES[thing] = str(error)
    except Exception:
        FAILURES[thing] = traceback.format_exc()
    return None


def command(*arguments: str) -> None:
    """Run `zoo` with arguments in this process; record its output if it fails."""
    from zoo.cli.main import main

    output = io.StringIO()
    sys.argv = ["zoo", *arguments]
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as stop:
        if stop.code:
            FAILURES[" ".join(sys.argv)] = output.getvalue()
    except Exception:
        FAILURES[" ".join(sys.argv)] = traceback.format_exc()


def use_components() -> None:
    """List, show and build all components, and check all specs."""
    from zoo.registry.component_registry import default_registry

    registry = default_registry()
    FAILURES.update(
        {f"plugin {each.name}": each.errors[0] for each in registry.plugins if each.errors}
    )
    for listing in ([], ["--specs"], ["--maps"], ["--importers"]):
        command("list", *listing)
    command("catalogue")
    command("schema", "-o", "schema.json")
    for entry in registry.components():
        command("show", entry.reference)
        attempt(f"{entry.kind} {entry.name}", partial(_build, entry.cls))
    for plugin in registry.plugins:
        for spec in plugin.specs:
            command("check", spec.name)


def _build(cls: Any) -> None:
    """Build a component on its first configuration for tests, and open it if it is a dataset."""
    from zoo.testing.configuration import configurations

    if hasattr(cls, "write_example"):
        with tempfile.TemporaryDirectory() as folder:
            parameters = cls.write_example(Path(folder))
            next(iter(configurations(cls, **parameters))).build().open()
    else:
        next(iter(configurations(cls))).build()


def use_models() -> None:
    """Compose, save, train, evaluate and compare models, and use those with shipped weights."""
    import zoo

    attempt(
        "compose", lambda: zoo.save(zoo.compose("bahdanau-reversal", seed=0), "model.safetensors")
    )
    for name in ("info", "verify"):
        command(name, "model.safetensors")
    for part in ("train", "val", "test"):
        Path(f"{part}.tsv").write_text("one two\ttwo one\n" * 20, encoding="utf-8")
    Path("reversal.yaml").write_text(SPEC, encoding="utf-8")
    words = ["-o", "words.json", "--type", "words", "--for", "reversal.yaml"]
    command("tokenizer", "train", "train.tsv", "--column", "1", *words)
    swap = ["--swap", "decoder.attention.scorer=additive,dot"]
    command("compare", "reversal.yaml", *swap, "--list")
    command("train", "reversal.yaml", "-o", "run")
    command("compare", "reversal.yaml", *swap, "-o", "study")
    command("generate", "g2p-bahdanau", "cat")


SPEC = """
extends: bahdanau-reversal
name: reversal
metrics: [accuracy]
model: {source: {vocab: 16}}
preprocessing:
  source: {type: text, tokenizer: words.json}
  target: {type: text, tokenizer: words.json}
train:
  data: {type: parallel-text, file: train.tsv}
  validation: {type: parallel-text, file: val.tsv}
  test: {type: parallel-text, file: test.tsv}
  optimiser: {type: adamw, lr: 0.01}
  batch: {items: 10}
  steps: 2
"""


def use_pages(kits: Path) -> None:
    """Request what the pages of `zoo ui` do."""
    sys.path.insert(0, str(kits))
    from ui_kit import UiServer

    server = UiServer()

    def call(path: str, body: Any = None) -> Any:
        answer = server.call(path, body)
        problems = answer.get("error") if isinstance(answer, dict) else None
        if isinstance(answer, dict) and answer.get("ok") is False:
            problems = str(answer)
        if problems:
            FAILURES[f"{path} {str(body)[:60]}"] = problems
        return answer

    call("/api/schema")
    for component in call("/api/registry")["components"]:
        query = urlencode({key: component[key] for key in ("kind", "plugin", "name")})
        call(f"/api/component?{query}")
    for name in ("bahdanau-reversal", "gat-cora", "transformer-tiny"):
        data = call("/api/spec", {"source": name})["data"]
        call("/api/check", {"page": name, "sequence": 1, "data": data})
        found = call("/api/starters", {"data": data})
        if isinstance(found, list) and not found:
            FAILURES[f"/api/starters {name}"] = "no dataset"
    data = call("/api/spec", {"source": "bahdanau-reversal"})["data"]
    path = ["model", "decoder", "attention", "scorer"]
    call("/api/part", {"data": data, "path": path, "values": ["dot"]})
    call("/api/measure", {"data": data, "path": path, "values": ["additive", "dot"]})
    _, _, errors = server.interrupt()
    if errors:
        FAILURES["zoo ui"] = errors


def main(kits: Path, extra: str) -> None:
    """Use everything in the current folder."""
    with contextlib.redirect_stdout(sys.stderr):
        use_components()
        use_models()
        if extra == "ui":
            use_pages(kits)
        else:
            command("ui", "--no-browser", "--port", "0")
    print(json.dumps(FAILURES))


if __name__ == "__main__":
    main(Path(__file__).parent, sys.argv[1])
