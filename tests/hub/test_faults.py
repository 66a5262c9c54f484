"""Failed downloads: damaged data is neither stored nor used."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, list_files
from hub_server import Hub, Response

from zoo.errors import HubError
from zoo.hub import fetch
from zoo.hub.cache import Cache

Corrupt = Callable[[Response], Response]


def flip_bit(answer: Response) -> Response:
    """Change one bit of the body."""
    body = bytearray(answer.body)
    body[len(body) // 2] ^= 1
    return replace(answer, body=bytes(body))


FAULTS: dict[str, Corrupt] = {
    "a flipped bit": flip_bit,
    "a reset in the middle": lambda a: replace(a, max_bytes=len(a.body) // 2, end="reset"),
    "a close in the middle": lambda a: replace(a, max_bytes=len(a.body) // 3, end="close"),
    "a reset before the first byte": lambda a: replace(a, max_bytes=0, end="reset"),
    "a shorter file": lambda a: replace(a, body=a.body[:-7]),
    "a longer file": lambda a: replace(a, body=a.body + b"more"),
    "an empty file": lambda a: replace(a, body=b""),
    "not available": lambda a: Response.error(503),
    "too many requests": lambda a: replace(Response.error(429), headers={"Retry-After": "0"}),
    "another file of the same size": lambda a: replace(a, body=bytes(len(a.body))),
}


@pytest.fixture
def repo(hub: Hub) -> str:
    hub.repo(NAME).add({WEIGHTS: BYTES, "config.json": b'{"a": 1}\n' * 900})
    return NAME


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("file", ["large", "small"])
def test_temporary_fault_is_retried(
    hub: Hub, repo: str, cache: Path, fault: str, file: str
) -> None:
    name, port = (WEIGHTS, "cdn") if file == "large" else ("config.json", "hub")
    hub.fault("objects" if file == "large" else name, FAULTS[fault], port=port, times=1)
    folder = fetch(repo, [name])
    assert (folder / name).read_bytes() == (BYTES if file == "large" else b'{"a": 1}\n' * 900)
    assert not [path for path in list_files(cache) if ".part" in path or "incomplete" in path]


@pytest.mark.parametrize("fault", ["a flipped bit", "a shorter file", "a longer file"])
def test_permanent_fault_raises_after_two_downloads(
    hub: Hub, repo: str, cache: Path, fault: str
) -> None:
    hub.fault("objects", FAULTS[fault], port="cdn")
    with pytest.raises(HubError, match=r"downloaded twice, but does not match its hash [0-9a-f]"):
        fetch(repo, [WEIGHTS])
    assert len(hub.requests_to("objects", "cdn")) == 2
    assert not [p for p in list_files(cache) if "blobs" in p or "snapshots" in p]


def test_broken_connection_raises_after_four_attempts(hub: Hub, repo: str, cache: Path) -> None:
    hub.fault("objects", lambda a: replace(a, max_bytes=1000, end="reset"), port="cdn")
    with pytest.raises(HubError, match=r"model.safetensors .* failed after 4 attempts"):
        fetch(repo, [WEIGHTS])
    assert len(hub.requests_to("objects", "cdn")) == 4
    assert not [p for p in list_files(cache) if "blobs" in p or "snapshots" in p]


def test_broken_download_is_resumed(hub: Hub, repo: str) -> None:
    hub.fault("objects", FAULTS["a reset in the middle"], port="cdn", times=1)
    fetch(repo, [WEIGHTS])
    first, second = hub.requests_to("objects", "cdn")
    assert "range" not in first.headers
    start = int(second.headers["range"].removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= len(BYTES) // 2


def test_unsatisfiable_range_restarts_the_download(hub: Hub, repo: str) -> None:
    hub.fault("objects", FAULTS["a reset in the middle"], port="cdn", times=1)
    hub.fault("objects", lambda a: Response.error(416) if a.status == 206 else a, port="cdn")
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES


def test_stalled_connection_is_resumed(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hub.fault("objects", lambda a: replace(a, max_bytes=9000, end="stall"), port="cdn", times=1)
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES
    assert hub.requests_to("objects", "cdn")[1].headers["range"] == "bytes=9000-"


def test_download_without_range_support_restarts(hub: Hub, repo: str) -> None:
    hub.fault("objects", FAULTS["a reset in the middle"], port="cdn", times=1)
    hub.fault("objects", lambda a: Response(200, BYTES) if a.status == 206 else a, port="cdn")
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES


def blob(cache: Path) -> Path:
    (found,) = [p for p in cache.rglob("blobs/*") if p.stat().st_size == len(BYTES)]
    return found


def test_damaged_blob_in_the_cache_is_downloaded_again(hub: Hub, repo: str, cache: Path) -> None:
    """A blob of the same size, which huggingface_hub would use."""
    fetch(repo, [WEIGHTS])
    blob(cache).write_bytes(bytes(len(BYTES)))
    folder = fetch(repo, [WEIGHTS])
    assert (folder / WEIGHTS).read_bytes() == BYTES
    assert len(hub.requests_to("objects", "cdn")) == 2


def test_blob_is_hashed_once_and_again_after_a_change_of_the_same_size_and_time(
    hub: Hub, repo: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = []
    plain = Cache._has_expected_hash
    monkeypatch.setattr(
        Cache, "_has_expected_hash", lambda *args: hashed.append(args) or plain(*args)
    )
    fetch(repo, [WEIGHTS])
    fetch(repo, [WEIGHTS])
    assert len(hashed) == 1  # when it was downloaded
    path = blob(cache)
    state = path.stat()
    path.write_bytes(bytes(len(BYTES)))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES


def test_altered_file_list_in_the_cache_is_requested_again(
    hub: Hub, repo: str, cache: Path
) -> None:
    fetch(repo, [WEIGHTS])
    (cached,) = cache.rglob("trees/*.json")
    text = cached.read_text()
    oid = blob(cache).name
    cached.write_text(text.replace(oid, oid[::-1]))
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES
    assert cached.read_text() == text


def test_without_symbolic_links_the_snapshot_contains_copies(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_SYMLINKS", True)
    folder = fetch(repo, [WEIGHTS, "config.json"])
    assert not [path for path in folder.iterdir() if path.is_symlink()]
    assert (folder / WEIGHTS).read_bytes() == BYTES
    hub.requests.clear()
    fetch(repo, [WEIGHTS, "config.json"], local_files_only=True)
    assert hub.requests == []


def test_force_download_downloads_again(hub: Hub, repo: str) -> None:
    fetch(repo, [WEIGHTS])
    fetch(repo, [WEIGHTS], force_download=True)
    assert len(hub.requests_to("objects", "cdn")) == 2


@pytest.mark.parametrize("answer", [b"<html>", b"[" * 100_000, b'"text"', b"{}", b'{"sha": 3}'])
def test_invalid_response_raises(hub: Hub, repo: str, cache: Path, answer: bytes) -> None:
    hub.fault("/revision/", lambda a: replace(a, body=answer))
    with pytest.raises(HubError, match=r"is not JSON|is not a commit"):
        fetch(repo, [WEIGHTS])
    assert list_files(cache) == {}


def test_unreachable_hub_raises(hub: Hub, repo: str, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match=r"http://127.0.0.1:9: zoo-team/kit failed after 4 attempts"):
        fetch(repo, [WEIGHTS])


def test_branch_is_not_loaded_from_the_cache_if_the_hub_fails(hub: Hub, repo: str) -> None:
    """huggingface_hub would use the cached commit, which may be outdated."""
    fetch(repo, [WEIGHTS])
    hub.fault("/revision/main", lambda a: Response.error(500))
    with pytest.raises(HubError, match="zoo-team/kit failed after 4 attempts: status 500"):
        fetch(repo, [WEIGHTS])
