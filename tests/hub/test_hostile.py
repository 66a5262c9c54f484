"""A hub that lies: nothing is written outside the cache, no token leaves, nothing hangs."""

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
    """Whatever the test does, nothing may appear outside the cache."""
    before = list_files(tmp_path, cache)
    outside = [Path("/etc/outside"), tmp_path.parent / "outside", tmp_path / "outside"]
    yield
    assert list_files(tmp_path, cache) == before
    assert not [path for path in outside if path.exists()]


def rows(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Response], Response]:
    def corrupt(answer: Response) -> Response:
        page = json.loads(answer.body)
        return replace(answer, body=json.dumps(change(page) or page).encode())

    return corrupt


@pytest.mark.parametrize("path", [*PATHS, None, 3, ["a"]], ids=lambda p: ascii(p)[:30])
@pytest.mark.usefixtures("untouched")
def test_a_file_name_that_leads_out_is_refused_before_anything_is_fetched(
    hub: Hub, repo: str, cache: Path, path: Any
) -> None:
    hub.fault("/tree/", rows(lambda page: page[-1].update(path=path)))
    with pytest.raises(HubError, match=r"is no file name the zoo accepts; nothing was written"):
        fetch(repo, ["*"])
    assert not hub.requests_to("/resolve/")
    assert not [p for p in list_files(cache) if not p.endswith("refs/main")]


ROWS: dict[str, tuple[Any, str]] = {
    "oid a path": ({"oid": "../../../outside"}, "is no git blob of 40"),
    "oid upper case": ({"oid": "A" * 40}, "is no git blob of 40"),
    "no oid": ({"oid": None}, "is no git blob of 40"),
    "sha256 a path": ({"lfs": {"oid": "../../outside"}}, "is no sha256 of 64"),
    "sha256 short": ({"lfs": {"oid": "a" * 63}}, "is no sha256 of 64"),
    "sha256 a list": ({"lfs": {"oid": ["a"]}}, "is no sha256 of 64"),
    "lfs a list": ({"lfs": [1]}, "has not the right form"),
    "negative size": ({"size": -1}, "-1 is no size"),
    "size a text": ({"size": "7"}, "'7' is no size"),
    "size true": ({"size": True}, "True is no size"),
    "size beyond all disks": ({"size": 1 << 60}, "is no size"),
}


@pytest.mark.parametrize("fault", ROWS)
@pytest.mark.usefixtures("untouched")
def test_a_row_that_is_not_what_it_should_be_is_refused(hub: Hub, repo: str, fault: str) -> None:
    change, sentence = ROWS[fault]
    hub.fault("/tree/", rows(lambda page: page[-1].update(change)))
    with pytest.raises(HubError, match=sentence):
        fetch(repo, ["*"])
    assert not hub.requests_to("/resolve/")


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (lambda page: [*page, page[-1]], "is listed twice"),
        (lambda page: [*page, {**page[-1], "path": "config.json/x"}], "as a file and as a folder"),
        (lambda page: {"rows": page}, "the list of files is no list"),
        (lambda page: [7], "is no mapping"),
        (lambda page: [{**page[-1], "path": f"{i}"} for i in range(50_001)], "more files than"),
    ],
    ids=["twice", "file and folder", "no list", "no row", "too many"],
)
def test_a_listing_that_cannot_be_is_refused(
    hub: Hub, repo: str, page: Callable[[Any], Any], sentence: str
) -> None:
    hub.fault("/tree/", rows(page))
    with pytest.raises(HubError, match=sentence):
        fetch(repo, ["*"])


@pytest.mark.parametrize("sha", ["../../outside", "main", "a" * 39, COMMIT.upper(), None, 7])
@pytest.mark.usefixtures("untouched")
def test_a_commit_that_is_none_is_refused(hub: Hub, repo: str, cache: Path, sha: Any) -> None:
    hub.fault("/revision/", rows(lambda about: {**about, "sha": sha}))
    with pytest.raises(HubError, match="is no commit of 40 hexadecimal digits"):
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
def test_a_hostile_etag_names_nothing(
    hub: Hub, repo: str, cache: Path, header: dict[str, str]
) -> None:
    """The client itself writes outside its cache on these; the zoo takes names from the tree."""
    hub.fault("/resolve/", lambda a: replace(a, headers={**a.headers, **header}))
    folder = fetch(repo, ["*"])
    assert (folder / WEIGHTS).read_bytes() == BYTES
    assert {p.name for p in cache.glob("*/blobs/*")} == {p.resolve().name for p in folder.iterdir()}


@pytest.mark.parametrize("told", ["../../outside", "0" * 40, ""])
@pytest.mark.usefixtures("untouched")
def test_a_file_of_another_commit_is_refused(hub: Hub, repo: str, cache: Path, told: str) -> None:
    hub.fault("/resolve/", lambda a: replace(a, headers={**a.headers, "X-Repo-Commit": told}))
    with pytest.raises(HubError, match="was asked for at commit"):
        fetch(repo, ["*"])
    assert not [p for p in list_files(cache) if "blobs" in p or "snapshots" in p]


@pytest.mark.parametrize(
    "revision", ["../../x", "a/../b", "-x", "a b", "a\nb", "/a", "a/", "x.lock"]
)
@pytest.mark.usefixtures("untouched")
def test_a_revision_that_is_none_is_refused_before_anybody_is_asked(
    hub: Hub, repo: str, revision: str
) -> None:
    for call in (lambda: fetch(repo, ["*"], revision=revision), lambda: pull(f"{repo}@{revision}")):
        with pytest.raises(HubError, match="is no revision"):
            call()
    assert hub.requests == []


SHARDS = ["../outside.safetensors", "/etc/outside.safetensors", "a/b.safetensors", "x.bin", 7]


@pytest.mark.parametrize("shard", SHARDS, ids=str)
@pytest.mark.usefixtures("untouched")
def test_a_shard_that_leads_out_is_refused(hub: Hub, shard: Any) -> None:
    index = json.dumps({"metadata": {}, "weight_map": {"w": shard}}).encode()
    hub.repo(NAME).add({f"{WEIGHTS}.index.json": index, "x.bin": b"7"})
    with pytest.raises(HubError, match=r"index.json of zoo-team/kit: (7|')?.*(is no|should be a)"):
        pull(NAME)
    assert len(hub.requests_to("/resolve/")) == 1


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (b"[]", "is no index of shards"),
        (b"{", "is no index of shards"),
        (b"[" * 100_000, "is no index of shards"),
        (b'{"weight_map": []}', "is no index of shards"),
        (b'{"weight_map": {}}', "names files that are not there: none"),
        (b'{"weight_map": {"w": "a.safetensors"}}', "names files that are not there: a.safet"),
    ],
)
def test_an_index_that_is_none_is_refused(hub: Hub, index: bytes, sentence: str) -> None:
    hub.repo(NAME).add({f"{WEIGHTS}.index.json": index})
    with pytest.raises(HubError, match=sentence):
        pull(NAME)


def moved(location: str) -> Callable[[Response], Response]:
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
def test_only_https_or_this_machine_is_spoken_to(
    hub: Hub, repo: str, location: str, path: str
) -> None:
    hub.fault(path, moved(location))
    with pytest.raises(HubError, match="is refused: a hub is spoken to by https, or on this mach"):
        fetch(repo, ["*"])


@pytest.mark.parametrize("address", ["http://example.org", "ftp://127.0.0.1", "", "example.org"])
def test_an_endpoint_without_encryption_is_refused(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    with pytest.raises(HubError, match="is refused: a hub is spoken to by https"):
        fetch(NAME, ["*"])


@pytest.mark.parametrize(
    ("url", "hub", "good"),
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
def test_a_hub_out_there_sends_nobody_to_this_machine(url: str, hub: str, good: bool) -> None:
    if good:
        check_url(url, hub)
    else:
        with pytest.raises(HubError, match="is refused"):
            check_url(url, hub)


def test_redirects_without_end_are_left(hub: Hub, repo: str) -> None:
    hub.fault("/resolve/", lambda a: Response(302, b"", {"Location": f"{hub.url}/a/b/resolve/c/d"}))
    with pytest.raises(HubError, match="from one address to the next without end"):
        fetch(repo, ["config.json"])


def test_pages_without_end_are_left(hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def more(answer: Response) -> Response:
        number = len(hub.requests)
        row = {"type": "file", "path": f"f{number}", "size": 1, "oid": "a" * 40}
        link = f'<{hub.url}/api/models/{repo}/tree/main?cursor={number}>; rel="next"'
        return Response.of([row], Link=link)

    hub.fault("/tree/", more)
    monkeypatch.setattr(tree, "MAX_PAGES", 7)
    with pytest.raises(HubError, match=r"has more files than a model has \(7 and more\)"):
        fetch(repo, ["*"])


def test_a_next_page_at_another_host_is_refused(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    link = f'<{hub.cdn}/next>; rel="next"'
    hub.fault("/tree/", lambda a: replace(a, headers={**a.headers, "Link": link}))
    with pytest.raises(HubError, match="goes on at another host"):
        fetch(repo, ["*"])
    assert not hub.requests_to(port="cdn")


def test_an_answer_without_end_is_left(
    hub: Hub, repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoo.hub.client.MAX_RESPONSE_BYTES", 10_000)
    hub.fault("/tree/", lambda a: replace(a, body=b" " * 20_000))
    with pytest.raises(HubError, match="an answer about zoo-team/kit has no end"):
        fetch(repo, ["*"])


def test_a_star_stays_within_its_folder(hub: Hub) -> None:
    hub.repo(NAME).add({"a.json": b"1", "b/c.json": b"2", "b/d/e.json": b"3", "f.txt": b"4"})
    for patterns, names in (
        (["*.json"], {"a.json"}),
        (["*/*.json", "f.txt", "absent.txt"], {"b/c.json", "f.txt"}),
        (["b/d/e.json"], {"b/d/e.json"}),
    ):
        folder = fetch(NAME, patterns, cache_dir=Path("-".join(patterns).replace("/", "+")))
        assert set(list_files(folder)) == names


def test_a_long_listing_is_read_page_by_page(hub: Hub) -> None:
    hub.page = 3
    hub.repo(NAME).add({f"{i}.json": str(i).encode() for i in range(8)})
    folder = fetch(NAME, ["*.json"])
    assert sorted(p.read_text() for p in folder.iterdir()) == [str(i) for i in range(8)]
    assert len(hub.requests_to("/tree/")) == 3


@pytest.mark.parametrize(
    "name",
    ["a", "a/b/c", "../b", "a/..", "-a/b", "a/b--c", "a/b.git", "a/b.", "a b/c", "a/" + "b" * 96],
)
def test_a_repository_that_is_none_is_refused_before_anybody_is_asked(hub: Hub, name: str) -> None:
    with pytest.raises(HubError, match="is no repository; one reads ORG/NAME"):
        fetch(name, ["*"])
    assert hub.requests == []


def test_a_listing_kept_in_the_cache_is_checked_like_any_other(
    hub: Hub, repo: str, cache: Path
) -> None:
    fetch(repo, ["*"])
    (kept,) = cache.rglob("trees/*.json")
    text = kept.read_text()
    for bad in (
        text.replace("config.json", "../../outside"),
        "{",
        "[]",
        text.replace(": 1,", ": 2,"),
    ):
        kept.write_text(bad)
        fetch(repo, ["*"])
        assert json.loads(kept.read_text()) == json.loads(text)
