"""Hostile hubs: nothing is written outside the cache, and no token is sent elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, list_files
from hub_server import TOKEN, Hub, Response

from zoo.errors import HubError
from zoo.hub import fetch, tree
from zoo.hub.credentials import check_url
from zoo.hub.models import pull

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PATHS = [
    "../outside",
    "../../../../outside",
    "/etc/outside",
    "a/../../outside",
    "a//b",
    "./a",
    "a/./b",
    "..",
    ".",
    "",
    "a\\..\\..\\outside",
    "C:\\outside",
    "C:outside",
    "a\x00b",
    "a\nb",
    "a/" + "b" * 300,
    "é" * 200,
    "a/b/" * 400 + "c",
    " ",
    "...",
    "\ud800",
]


@pytest.fixture
def repo(hub: Hub) -> str:
    hub.repo(NAME).add({WEIGHTS: BYTES, "config.json": b"{}"})
    return NAME


@pytest.fixture
def untouched(hub: Hub, cache: Path, tmp_path: Path):
    """Check that no file is created outside the cache."""
    before = list_files(tmp_path, cache)
    outside = [Path("/etc/outside"), tmp_path.parent / "outside", tmp_path / "outside"]
    yield
    assert list_files(tmp_path, cache) == before
    assert not [path for path in outside if path.exists()]


def edit_rows(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Response], Response]:
    def corrupt(answer: Response) -> Response:
        page = json.loads(answer.body)
        return replace(answer, body=json.dumps(change(page) or page).encode())

    return corrupt


@pytest.mark.parametrize("path", [*PATHS, None, 3, ["a"]], ids=lambda p: ascii(p)[:30])
@pytest.mark.usefixtures("untouched")
def test_path_traversal_raises_before_any_download(
    hub: Hub, repo: str, cache: Path, path: Any
) -> None:
    hub.fault("/tree/", edit_rows(lambda page: page[-1].update(path=path)))
    with pytest.raises(HubError, match=r"is not a valid file name; nothing was written"):
        fetch(repo, ["*"])
    assert not hub.requests_to("/resolve/")
    assert not [p for p in list_files(cache) if not p.endswith("refs/main")]


ROWS: dict[str, tuple[Any, str]] = {
    "oid a path": ({"oid": "../../../outside"}, "is not a git blob of 40"),
    "oid upper case": ({"oid": "A" * 40}, "is not a git blob of 40"),
    "no oid": ({"oid": None}, "is not a git blob of 40"),
    "sha256 a path": ({"lfs": {"oid": "../../outside"}}, "is not a sha256 of 64"),
    "sha256 short": ({"lfs": {"oid": "a" * 63}}, "is not a sha256 of 64"),
    "sha256 a list": ({"lfs": {"oid": ["a"]}}, "is not a sha256 of 64"),
    "lfs a list": ({"lfs": [1]}, "'lfs' is not an object"),
    "negative size": ({"size": -1}, "-1 is not a valid size"),
    "size a text": ({"size": "7"}, "'7' is not a valid size"),
    "size true": ({"size": True}, "True is not a valid size"),
    "size beyond all disks": ({"size": 1 << 60}, "is not a valid size"),
}


@pytest.mark.parametrize("fault", ROWS)
@pytest.mark.usefixtures("untouched")
def test_invalid_row_raises(hub: Hub, repo: str, fault: str) -> None:
    change, message = ROWS[fault]
    hub.fault("/tree/", edit_rows(lambda page: page[-1].update(change)))
    with pytest.raises(HubError, match=message):
        fetch(repo, ["*"])
    assert not hub.requests_to("/resolve/")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (lambda page: [*page, page[-1]], "is listed twice"),
        (
            lambda page: [*page, {**page[-1], "path": "config.json/x"}],
            "as a file and as a directory",
        ),
        (lambda page: {"rows": page}, "the file list is not a list"),
        (lambda page: [7], "is not an object"),
        (lambda page: [{**page[-1], "path": f"{i}"} for i in range(50_001)], "too many files"),
    ],
    ids=["repeated", "file and directory", "object", "number", "too many"],
)
def test_invalid_file_list_raises(
    hub: Hub, repo: str, page: Callable[[Any], Any], message: str
) -> None:
    hub.fault("/tree/", edit_rows(page))
    with pytest.raises(HubError, match=message):
        fetch(repo, ["*"])


@pytest.mark.parametrize("sha", ["../../outside", "main", "a" * 39, COMMIT.upper(), None, 7])
@pytest.mark.usefixtures("untouched")
def test_invalid_commit_raises(hub: Hub, repo: str, cache: Path, sha: Any) -> None:
    hub.fault("/revision/", edit_rows(lambda about: {**about, "sha": sha}))
    with pytest.raises(HubError, match="is not a commit of 40 hexadecimal digits"):
        fetch(repo, ["*"])
    assert list_files(cache) == {}


@pytest.mark.parametrize(
    "header",
    [
        {"ETag": '"../../../../outside"'},
        {"ETag": '"/etc/outside"'},
        {"X-Linked-Etag": '"../../../../outside"'},
        {"X-Linked-Size": "99999999999"},
        {"ETag": "W/" + "a" * 5000},
    ],
    ids=lambda header: str(header)[:40],
)
@pytest.mark.usefixtures("untouched")
def test_hostile_etag_is_ignored(hub: Hub, repo: str, cache: Path, header: dict[str, str]) -> None:
    """huggingface_hub names files by the ETag; here names come from the file list."""
    hub.fault("/resolve/", lambda a: replace(a, headers={**a.headers, **header}))
    folder = fetch(repo, ["*"])
    assert (folder / WEIGHTS).read_bytes() == BYTES
    assert {p.name for p in cache.glob("*/blobs/*")} == {p.resolve().name for p in folder.iterdir()}


@pytest.mark.parametrize("commit", ["../../outside", "0" * 40, ""])
@pytest.mark.usefixtures("untouched")
def test_file_of_another_commit_raises(hub: Hub, repo: str, cache: Path, commit: str) -> None:
    hub.fault("/resolve/", lambda a: replace(a, headers={**a.headers, "X-Repo-Commit": commit}))
    with pytest.raises(HubError, match="was requested at commit"):
        fetch(repo, ["*"])
    assert not [p for p in list_files(cache) if "blobs" in p or "snapshots" in p]


@pytest.mark.parametrize(
    "revision", ["../../x", "a/../b", "-x", "a b", "a\nb", "/a", "a/", "x.lock"]
)
@pytest.mark.usefixtures("untouched")
def test_invalid_revision_raises_before_any_request(hub: Hub, repo: str, revision: str) -> None:
    for call in (lambda: fetch(repo, ["*"], revision=revision), lambda: pull(f"{repo}@{revision}")):
        with pytest.raises(HubError, match="is not a revision"):
            call()
    assert hub.requests == []


SHARDS = ["../outside.safetensors", "/etc/outside.safetensors", "a/b.safetensors", "x.bin", 7]


@pytest.mark.parametrize("shard", SHARDS, ids=str)
@pytest.mark.usefixtures("untouched")
def test_shard_outside_the_directory_raises(hub: Hub, shard: Any) -> None:
    index = json.dumps({"metadata": {}, "weight_map": {"w": shard}}).encode()
    hub.repo(NAME).add({f"{WEIGHTS}.index.json": index, "x.bin": b"7"})
    with pytest.raises(HubError, match=r"index.json of zoo-team/kit: (7|')?.*(is not a|must be a)"):
        pull(NAME)
    assert len(hub.requests_to("/resolve/")) == 1


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (b"[]", "is not a valid index"),
        (b"{", "is not a valid index"),
        (b"[" * 100_000, "is not a valid index"),
        (b'{"weight_map": []}', "is not a valid index"),
        (b'{"weight_map": {}}', "lists no shards"),
        (b'{"weight_map": {"w": "a.safetensors"}}', "lists files that do not exist: a.safet"),
    ],
)
def test_invalid_index_raises(hub: Hub, index: bytes, message: str) -> None:
    hub.repo(NAME).add({f"{WEIGHTS}.index.json": index})
    with pytest.raises(HubError, match=message):
        pull(NAME)


def redirect(location: str) -> Callable[[Response], Response]:
    return lambda a: Response(302, b"", {"Location": location})


@pytest.mark.parametrize(
    "location",
    [
        "http://example.org/x",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "http://127.0.0.1.example.org/x",
        "http://[::ffff:192.0.2.1]/x",
        "http://[broken",
        "//example.org:80/x",
    ],
)
@pytest.mark.parametrize("path", ["/resolve/", "/tree/", "/revision/"])
def test_redirects_must_be_https_or_local(hub: Hub, repo: str, location: str, path: str) -> None:
    hub.fault(path, redirect(location))
    with pytest.raises(HubError, match="is not allowed: expected https, or a hub on this machine"):
        fetch(repo, ["*"])


@pytest.mark.parametrize("address", ["http://example.org", "ftp://127.0.0.1", "", "example.org"])
def test_endpoint_must_be_https_or_local(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    with pytest.raises(HubError, match="is not allowed: expected https"):
        fetch(NAME, ["*"])


@pytest.mark.parametrize(
    ("url", "hub", "allowed"),
    [
        ("https://a.org/x", "https://b.org", True),
        ("https://a.org/x", "http://127.0.0.1:1", True),
        ("http://127.0.0.1:2/x", "http://localhost:1", True),
        ("http://[::1]:2/x", "http://127.0.0.1:1", True),
        ("http://127.0.0.1/x", "https://b.org", False),
        ("http://localhost/x", "https://b.org", False),
        ("http://0.0.0.0/x", "http://127.0.0.1:1", False),
        ("http://localhost.evil.org/x", "http://127.0.0.1:1", False),
        ("HTTP://a.org", "https://b.org", False),
        ("https://", "https://b.org", False),
        ("https://a.org:port", "https://b.org", False),
    ],
)
def test_remote_hub_cannot_redirect_to_this_machine(url: str, hub: str, allowed: bool) -> None:
    if allowed:
        check_url(url, hub)
    else:
        with pytest.raises(HubError, match="is not allowed"):
            check_url(url, hub)


def test_endless_redirects_raise(hub: Hub, repo: str) -> None:
    hub.fault("/resolve/", lambda a: Response(302, b"", {"Location": f"{hub.url}/a/b/resolve/c/d"}))
    with pytest.raises(HubError, match="redirects more than 5 times"):
        fetch(repo, ["config.json"])


def test_endless_pages_raise(hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def more(answer: Response) -> Response:
        number = len(hub.requests)
        row = {"type": "file", "path": f"f{number}", "size": 1, "oid": "a" * 40}
        link = f'<{hub.url}/api/models/{repo}/tree/main?cursor={number}>; rel="next"'
        return Response.of([row], Link=link)

    hub.fault("/tree/", more)
    monkeypatch.setattr(tree, "MAX_PAGES", 7)
    with pytest.raises(HubError, match=r"has too many files \(7 or more\)"):
        fetch(repo, ["*"])


def test_next_page_on_another_host_raises(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    link = f'<{hub.cdn}/next>; rel="next"'
    hub.fault("/tree/", lambda a: replace(a, headers={**a.headers, "Link": link}))
    with pytest.raises(HubError, match="is on another host"):
        fetch(repo, ["*"])
    assert not hub.requests_to(port="cdn")


def test_response_over_the_limit_raises(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoo.hub.client.MAX_RESPONSE_BYTES", 10_000)
    hub.fault("/tree/", lambda a: replace(a, body=b" " * 20_000))
    with pytest.raises(HubError, match="the response for zoo-team/kit exceeds 10,000 bytes"):
        fetch(repo, ["*"])


def test_star_does_not_match_slashes(hub: Hub) -> None:
    hub.repo(NAME).add({"a.json": b"1", "b/c.json": b"2", "b/d/e.json": b"3", "f.txt": b"4"})
    for patterns, names in (
        (["*.json"], {"a.json"}),
        (["*/*.json", "f.txt", "absent.txt"], {"b/c.json", "f.txt"}),
        (["b/d/e.json"], {"b/d/e.json"}),
    ):
        folder = fetch(NAME, patterns, cache_dir=Path("-".join(patterns).replace("/", "+")))
        assert set(list_files(folder)) == names


def test_long_file_list_is_read_page_by_page(hub: Hub) -> None:
    hub.page = 3
    hub.repo(NAME).add({f"{i}.json": str(i).encode() for i in range(8)})
    folder = fetch(NAME, ["*.json"])
    assert sorted(p.read_text() for p in folder.iterdir()) == [str(i) for i in range(8)]
    assert len(hub.requests_to("/tree/")) == 3


@pytest.mark.parametrize(
    "name",
    ["a", "a/b/c", "../b", "a/..", "-a/b", "a/b--c", "a/b.git", "a/b.", "a b/c", "a/" + "b" * 96],
)
def test_invalid_repository_raises_before_any_request(hub: Hub, name: str) -> None:
    with pytest.raises(HubError, match="is not a repository name; expected ORG/NAME"):
        fetch(name, ["*"])
    assert hub.requests == []


def test_cached_file_list_is_validated(hub: Hub, repo: str, cache: Path) -> None:
    fetch(repo, ["*"])
    (cached,) = cache.rglob("trees/*.json")
    text = cached.read_text()
    for bad in (
        text.replace("config.json", "../../outside"),
        "{",
        "[]",
        text.replace(": 1,", ": 2,"),
    ):
        cached.write_text(bad)
        fetch(repo, ["*"])
        assert json.loads(cached.read_text()) == json.loads(text)
