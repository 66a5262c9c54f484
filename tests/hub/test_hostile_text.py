"""Control characters in responses of a hub do not reach the terminal."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hostile_kit import HOSTILE, assert_clean, run_clean, string_variants
from hub_kit import NAME, WEIGHTS, environment
from hub_server import TOKEN, Hub, Response
from huggingface_hub.utils import disable_progress_bars
from terminal_kit import ZOO, run_on_terminal

from zoo.hub.card import GENERATED_MARK

disable_progress_bars()
HEADER = "\x1b]0;title\x07\x9b31m"
HEADERS = ("X-Error-Code", "X-Error-Message", "X-Request-Id", "X-HF-Warning", "Location")
DOWNLOADS = [("hub", "/revision/"), ("hub", "/tree/"), ("hub", "/resolve/"), ("cdn", "/objects/")]
UPLOADS = [
    ("hub", "/repos/create"),
    ("hub", "/validate-yaml"),
    *(
        pytest.param(port, path, marks=pytest.mark.slow)
        for port, path in (
            ("hub", "/branch/"),
            ("hub", "/preupload/"),
            ("hub", "/lfs/objects/batch"),
            ("cdn", "/upload/"),
            ("hub", "/verify/"),
            ("hub", "/commit/"),
            ("hub", "/revision/"),
            ("hub", "/tree/"),
        )
    ),
]


@pytest.fixture
def run(
    hub: Hub, saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Runs a command whose output must be clean, with a token and a repository."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr("time.sleep", lambda _: None)  # between the attempts of huggingface_hub
    card = f"{GENERATED_MARK} {HOSTILE}".encode()  # replaced by a push
    hub.repo(NAME).add({WEIGHTS: saved.read_bytes(), "README.md": card})
    return partial(run_clean, capsys, monkeypatch)


def hostile_variants(answer: Response) -> Iterator[Response]:
    """Yield the response with hostile text in each string, and errors with hostile text."""
    if "json" in answer.headers.get("Content-Type", ""):
        for data in string_variants(json.loads(answer.body)):
            yield replace(answer, body=json.dumps(data).encode())
    yield replace(answer, headers={**answer.headers, **dict.fromkeys(HEADERS, HEADER)})
    rows = [{"message": HOSTILE}]
    error = {"error": HOSTILE, "message": HOSTILE, "errors": rows, "warnings": rows}
    for status in (302, 400, 409):
        yield Response.of(error, status, **dict.fromkeys(HEADERS, HEADER))
    yield replace(answer, body=HOSTILE.encode())


def run_with_variants(
    hub: Hub, port: str, path: str, clear: Callable[[], None], command: Callable[[], str]
) -> int:
    """Run a command with each variant of the responses to a path; return their number."""
    answers: list[Response] = []
    hub.fault(path, lambda a: answers.append(a) or a, port=port)
    clear()
    command()
    assert answers
    variants = list(hostile_variants(answers[0]))
    for variant in variants:
        hub.faults.clear()
        hub.fault(path, lambda _, variant=variant: variant, port=port)  # type: ignore[misc]
        clear()
        command()
    return len(variants)


@pytest.mark.parametrize("verb", ["pull", "info"])
@pytest.mark.parametrize(("port", "path"), DOWNLOADS)
def test_responses_to_downloads_are_printed_escaped(
    hub: Hub, run: Callable[..., str], cache: Path, verb: str, port: str, path: str
) -> None:
    clear = partial(shutil.rmtree, cache, ignore_errors=True)
    assert run_with_variants(hub, port, path, clear, lambda: run(verb, NAME)) > 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("port", "path"), UPLOADS)
def test_responses_to_uploads_are_printed_escaped(
    hub: Hub, run: Callable[..., str], saved: Path, port: str, path: str
) -> None:
    def command() -> str:
        return run("push", saved, NAME, "--revision", "dev")

    assert run_with_variants(hub, port, path, hub.objects.clear, command) > 4


@pytest.mark.parametrize("verb", ["pull", "info", "import"])
def test_file_names_are_printed_escaped(hub: Hub, run: Callable[..., str], verb: str) -> None:
    hub.repo("zoo-team/names").add({"a\x9b31m\u202e.bin": b"1", "\u2066b.json": b"{}"})
    options = ["--dry-run"] if verb == "import" else []
    output = run(verb, "zoo-team/names", *options)
    assert "\\u202e" in output or verb == "import"


@pytest.mark.slow
def test_a_push_on_a_terminal_shows_progress_and_escapes_text_of_the_server(
    hub: Hub, saved: Path, tmp_path: Path
) -> None:
    rows = [{"message": HOSTILE}]
    hub.fault("/validate-yaml", lambda a: Response.of({"errors": [], "warnings": rows}))
    hub.fault("", lambda a: replace(a, headers={**a.headers, "X-HF-Warning": f"a; {HEADER}"}))
    env = environment(hub, tmp_path / "home", HF_TOKEN=TOKEN)
    output = run_on_terminal([*ZOO, "push", str(saved), NAME], env, tmp_path, code=0)
    assert "100%" in output
    assert output.count("title") >= 2
    assert_clean(re.sub(r"\r|\x1b\[A", "", output))
