"""Downloads that go wrong: nothing broken is kept, nothing broken is used."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, list_files
from hub_server import Hub, Response

from zoo.errors import HubError
from zoo.hub import fetch

Spoil = Callable[[Response], Response]


def flipped(answer: Response) -> Response:
    """The same size, one bit different."""
    body = bytearray(answer.body)
    body[len(body) // 2] ^= 1
    return replace(answer, body=bytes(body))


SPOILT: dict[str, Spoil] = {
    "a flipped bit": flipped,
    "a reset in the middle": lambda a: replace(a, cut=len(a.body) // 2, end="reset"),
    "a close in the middle": lambda a: replace(a, cut=len(a.body) // 3, end="close"),
    "a reset before the first byte": lambda a: replace(a, cut=0, end="reset"),
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


@pytest.mark.parametrize("fault", SPOILT)
@pytest.mark.parametrize("file", ["large", "small"])
def test_a_fault_that_passes_costs_a_retry_and_the_bytes_are_right(
    hub: Hub, repo: str, cache: Path, fault: str, file: str
) -> None:
    name, port = (WEIGHTS, "cdn") if file == "large" else ("config.json", "hub")
    hub.fault("objects" if file == "large" else name, SPOILT[fault], port=port, times=1)
    folder = fetch(repo, [name])
    assert (folder / name).read_bytes() == (BYTES if file == "large" else b'{"a": 1}\n' * 900)
    assert not [path for path in list_files(cache) if ".part" in path or "incomplete" in path]


@pytest.mark.parametrize("fault", ["a flipped bit", "a shorter file", "a longer file"])
def test_a_fault_that_stays_fails_after_two_downloads_and_keeps_nothing(
    hub: Hub, repo: str, cache: Path, fault: str
) -> None:
    hub.fault("objects", SPOILT[fault], port="cdn")
    with pytest.raises(HubError, match=r"arrived twice with other bytes than its hash [0-9a-f]"):
        fetch(repo, [WEIGHTS])
    assert len(hub.requests_to("objects", "cdn")) == 2
    assert not [p for p in list_files(cache) if "blobs" in p or "snapshots" in p]


def test_a_connection_that_always_breaks_is_given_up_after_four_tries(
    hub: Hub, repo: str, cache: Path
) -> None:
    hub.fault("objects", lambda a: replace(a, cut=1000, end="reset"), port="cdn")
    before = time.monotonic()
    with pytest.raises(HubError, match=r"did not give model.safetensors .* in 4 tries"):
        fetch(repo, [WEIGHTS])
    assert len(hub.requests_to("objects", "cdn")) == 4
    assert time.monotonic() - before < 60
    assert not [p for p in list_files(cache) if "blobs" in p or "snapshots" in p]


def test_a_broken_download_is_taken_up_where_it_broke(hub: Hub, repo: str) -> None:
    hub.fault("objects", SPOILT["a reset in the middle"], port="cdn", times=1)
    fetch(repo, [WEIGHTS])
    first, second = hub.requests_to("objects", "cdn")
    assert "range" not in first.headers
    start = int(second.headers["range"].removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= len(BYTES) // 2


def test_a_range_that_cannot_be_had_is_given_up_for_the_whole(hub: Hub, repo: str) -> None:
    hub.fault("objects", SPOILT["a reset in the middle"], port="cdn", times=1)
    hub.fault("objects", lambda a: Response.error(416) if a.status == 206 else a, port="cdn")
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES


def test_a_connection_that_stands_still_is_left_and_taken_up_again(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hub.fault("objects", lambda a: replace(a, cut=9000, end="stall"), port="cdn", times=1)
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES
    assert hub.requests_to("objects", "cdn")[1].headers["range"] == "bytes=9000-"


def test_a_cdn_that_knows_no_ranges_is_read_from_the_start(hub: Hub, repo: str) -> None:
    hub.fault("objects", SPOILT["a reset in the middle"], port="cdn", times=1)
    hub.fault("objects", lambda a: Response(200, BYTES) if a.status == 206 else a, port="cdn")
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES


def blob(cache: Path) -> Path:
    (found,) = [p for p in cache.rglob("blobs/*") if p.stat().st_size == len(BYTES)]
    return found


def test_a_damaged_blob_in_the_cache_is_thrown_away_and_fetched_again(
    hub: Hub, repo: str, cache: Path
) -> None:
    """Same size, other bytes: what the client itself would use without a word."""
    fetch(repo, [WEIGHTS])
    blob(cache).write_bytes(bytes(len(BYTES)))
    folder = fetch(repo, [WEIGHTS])
    assert (folder / WEIGHTS).read_bytes() == BYTES
    assert len(hub.requests_to("objects", "cdn")) == 2


def test_a_blob_is_read_for_its_hash_once_and_then_known_by_size_and_time(
    hub: Hub, repo: str, cache: Path
) -> None:
    fetch(repo, [WEIGHTS])
    path = blob(cache)
    state = path.stat()
    path.write_bytes(bytes(len(BYTES)))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == bytes(len(BYTES))  # not read
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert (fetch(repo, [WEIGHTS]) / WEIGHTS).read_bytes() == BYTES  # read, refused, replaced


def test_where_there_are_no_links_the_snapshot_has_the_bytes(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_SYMLINKS", True)
    folder = fetch(repo, [WEIGHTS, "config.json"])
    assert not [path for path in folder.iterdir() if path.is_symlink()]
    assert (folder / WEIGHTS).read_bytes() == BYTES
    hub.requests.clear()
    fetch(repo, [WEIGHTS, "config.json"], local_files_only=True)
    assert hub.requests == []


def test_force_downloads_again(hub: Hub, repo: str) -> None:
    fetch(repo, [WEIGHTS])
    fetch(repo, [WEIGHTS], force_download=True)
    assert len(hub.requests_to("objects", "cdn")) == 2


@pytest.mark.parametrize("answer", [b"<html>", b"[" * 100_000, b'"text"', b"{}", b'{"sha": 3}'])
def test_an_answer_that_is_no_listing_is_refused_in_words(
    hub: Hub, repo: str, cache: Path, answer: bytes
) -> None:
    hub.fault("/revision/", lambda a: replace(a, body=answer))
    with pytest.raises(HubError, match=r"is no JSON|is no commit"):
        fetch(repo, [WEIGHTS])
    assert list_files(cache) == {}


def test_a_hub_that_is_not_there_is_said_so(hub: Hub, repo: str, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match=r"http://127.0.0.1:9 did not give zoo-team/kit in 4 tries"):
        fetch(repo, [WEIGHTS])


def test_a_moving_branch_is_never_silently_stale(hub: Hub, repo: str) -> None:
    """The client falls back to what it has; a model that is not the one asked for is an error."""
    fetch(repo, [WEIGHTS])
    hub.fault("/revision/main", lambda a: Response.error(500))
    with pytest.raises(HubError, match="did not give zoo-team/kit in 4 tries: status 500"):
        fetch(repo, [WEIGHTS])
