"""What huggingface_hub's own download does with faults and hostile servers.

Each test is the reason for own code in `zoo/hub` (docs/hub.md). If one fails with a new version of
huggingface_hub, the client has learned this duty, and the own code for it may be removed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, environment
from hub_server import TOKEN, Hub, Response
from huggingface_hub import HfApi, constants, errors, hf_hub_download

Corrupt = Callable[[Response], Response]


@pytest.fixture
def commit(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    # Built from the endpoint when huggingface_hub is imported.
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    hub.repo(NAME).add({WEIGHTS: BYTES, "config.json": b"{}"})
    return hub.repo(NAME).branches["main"]


def download(cache: Path, revision: str) -> Path:
    return Path(hf_hub_download(NAME, WEIGHTS, revision=revision, cache_dir=cache))


def set_header(name: str, value: str) -> Corrupt:
    return lambda answer: replace(answer, headers={**answer.headers, name: value})


@pytest.mark.parametrize("etag", ['"../../../outside"', '"{absolute}/outside"'])
def test_server_chooses_the_path_of_the_blob(
    hub: Hub, commit: str, tmp_path: Path, etag: str
) -> None:
    cache = tmp_path / "cache"
    hub.fault("/resolve/", set_header("X-Linked-Etag", etag.format(absolute=tmp_path)))
    download(cache, commit)
    assert (tmp_path / "outside").read_bytes() == BYTES


def test_wrong_bytes_of_the_right_size_are_returned(hub: Hub, commit: str, cache: Path) -> None:
    hub.fault("objects", lambda a: replace(a, body=bytes(len(a.body))), port="cdn")
    assert download(cache, commit).read_bytes() == bytes(len(BYTES))


def test_damaged_file_in_the_cache_is_returned(hub: Hub, commit: str, cache: Path) -> None:
    download(cache, commit).resolve().write_bytes(b"damaged")
    assert download(cache, commit).read_bytes() == b"damaged"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lambda a: replace(a, max_bytes=len(a.body) // 2, end="reset"), "reset"),
        (lambda a: Response.error(503), "503"),
        (lambda a: replace(a, body=a.body[:-7]), "Consistency check failed"),
    ],
    ids=["reset", "503", "short"],
)
def test_one_temporary_fault_ends_the_download(
    hub: Hub, commit: str, cache: Path, fault: Corrupt, error: str
) -> None:
    hub.fault("objects", fault, port="cdn", times=1)
    with pytest.raises((errors.HTTPError, OSError), match=error):
        download(cache, commit)
    assert len(hub.requests_to("objects", "cdn")) == 1


@pytest.mark.slow
def test_closed_connection_restarts_a_small_file(hub: Hub, commit: str, cache: Path) -> None:
    """The client resumes at multiples of its chunk of 10 MB."""
    hub.fault("objects", lambda a: replace(a, max_bytes=200_000, end="close"), port="cdn", times=1)
    assert download(cache, commit).read_bytes() == BYTES
    assert [r.headers.get("range") for r in hub.requests_to("objects", "cdn")] == [None, None]


def test_file_of_another_commit_is_returned(hub: Hub, commit: str, cache: Path) -> None:
    hub.fault("/resolve/", set_header("X-Repo-Commit", "0" * 40))
    assert download(cache, commit).parent.name == "0" * 40


def test_outdated_commit_of_a_branch_is_returned_if_the_hub_fails(
    hub: Hub, commit: str, cache: Path
) -> None:
    download(cache, "main")
    hub.fault(".", lambda a: Response.error(500))
    assert download(cache, "main").parent.name == commit


def test_redirects_of_the_cdn_are_followed_to_any_address(
    hub: Hub, commit: str, cache: Path
) -> None:
    """Also from https to http and to this machine: there is no check of scheme or host."""
    hub.fault(
        "objects", lambda a: Response(302, b"", {"Location": f"{hub.url}/inside"}), port="cdn"
    )
    with pytest.raises(errors.HfHubHTTPError):
        download(cache, commit)
    assert len(hub.requests_to("/inside", "hub")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "port", "part"),
    [("/resolve/", "hub", "headers"), ("objects", "cdn", "headers"), ("objects", "cdn", "body")],
)
def test_dripping_response_has_no_deadline(
    hub: Hub, commit: str, tmp_path: Path, pattern: str, port: str, part: str
) -> None:
    hub.fault(pattern, lambda a: replace(a, drip=(part, 0.3)), port=port)
    limits = {"HF_HUB_DOWNLOAD_TIMEOUT": "1", "HF_HUB_ETAG_TIMEOUT": "1"}
    code = f"import huggingface_hub as h; h.hf_hub_download({NAME!r}, {WEIGHTS!r})"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(hub, tmp_path / "home", **limits),
        stderr=subprocess.DEVNULL,
    ) as process:
        while not hub.requests_to(pattern, port):
            assert process.poll() is None
            time.sleep(0.05)
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(6)
        finally:
            process.kill()


def test_file_list_is_not_validated_and_sends_the_token_to_other_hosts(
    hub: Hub, commit: str
) -> None:
    row = {"type": "file", "path": "../../outside", "size": 1, "oid": "../x"}
    page = Response.of([row], Link=f'<{hub.cdn}/next>; rel="next"')
    hub.fault("/tree/", lambda a: page)
    files = HfApi(endpoint=hub.url, token=TOKEN).list_repo_tree(NAME, recursive=True)
    assert next(iter(files)).path == "../../outside"
    with pytest.raises(errors.HfHubHTTPError):
        list(files)
    assert hub.requests_to("/next", "cdn")[0].headers["authorization"] == f"Bearer {TOKEN}"


def test_token_is_not_sent_to_the_cdn(hub: Hub, commit: str, cache: Path) -> None:
    """The client does this itself for files."""
    hf_hub_download(NAME, WEIGHTS, revision=commit, cache_dir=cache, token=TOKEN)
    assert "authorization" not in hub.requests_to("objects", "cdn")[0].headers
