"""What a model on the Hub says of itself, read from the first bytes of its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub_kit import NAME, WEIGHTS, list_files
from hub_server import Hub, Response

import zoo
from zoo import artifact
from zoo.errors import ArtifactError, HubError, ZooError
from zoo.hub.checkout import Options
from zoo.hub.models import pull, read_header


@pytest.fixture
def commit(hub: Hub, saved: Path) -> str:
    return hub.repo(NAME).add({WEIGHTS: saved.read_bytes(), "config.json": b"{}"})


def told(header: artifact.Header) -> dict[str, object]:
    """All that is the same wherever the file is."""
    return {key: value for key, value in header.as_json().items() if key != "file"}


def ranges(hub: Hub) -> list[str]:
    return [r.headers["range"] for r in hub.requests_to("objects", "cdn")]


def test_the_header_is_the_files_and_no_weights_are_fetched(
    hub: Hub, commit: str, saved: Path, cache: Path
) -> None:
    header = read_header(NAME)
    assert told(header) == told(artifact.read_header(saved))
    assert str(header.path) == f"{NAME}@{commit[:12]}/{WEIGHTS}"
    assert ranges(hub) == ["bytes=0-65535"]
    assert not [path for path in list_files(cache) if "blobs" in path or "snapshots" in path]


def test_a_long_header_takes_a_second_request_for_just_its_bytes(
    hub: Hub, saved: Path, tmp_path: Path
) -> None:
    model = zoo.load(saved)
    model.tokenizer = {"source": "x" * 100_000}
    file = zoo.save(model, tmp_path / WEIGHTS)
    hub.repo(NAME).add({WEIGHTS: file.read_bytes()})
    assert told(read_header(NAME)) == told(artifact.read_header(file))
    end = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    assert ranges(hub) == ["bytes=0-65535", f"bytes=0-{end - 1}"]


def test_a_hub_that_knows_no_ranges_is_read_as_far_as_needed(
    hub: Hub, commit: str, saved: Path
) -> None:
    endless = saved.read_bytes() + bytes(50_000_000)
    hub.fault("objects", lambda a: Response(200, endless), port="cdn")
    assert told(read_header(NAME)) == told(artifact.read_header(saved))


def test_what_the_cache_has_is_asked_for_nowhere(hub: Hub, commit: str, saved: Path) -> None:
    path = pull(NAME).path
    Path("zoo.lock").unlink()
    hub.requests.clear()
    assert read_header(f"{NAME}@{commit}").path == path
    assert read_header(NAME, options=Options(local_files_only=True)).path == path
    assert hub.requests == []
    read_header(NAME)
    assert [r.path for r in hub.requests] == [f"/api/models/{NAME}/revision/main"]


def test_offline_what_is_not_in_the_cache_is_named(hub: Hub, commit: str) -> None:
    read_header(NAME)
    hub.requests.clear()
    with pytest.raises(HubError, match=r"missing or damaged: model\.safetensors$"):
        read_header(NAME, options=Options(local_files_only=True))
    assert hub.requests == []


def test_shards_are_put_together_from_their_headers(hub: Hub, saved: Path, tmp_path: Path) -> None:
    folder = zoo.save(zoo.load(saved), tmp_path / "shards", shard_bytes=100_000)
    hub.repo(NAME).add({path.name: path.read_bytes() for path in folder.iterdir()})
    assert told(read_header(NAME)) == told(artifact.read_header(folder))
    assert ranges(hub) == ["bytes=0-65535"] * 3
    (first, *_) = sorted(folder.glob("*.safetensors"))
    other = zoo.save(zoo.compose("bahdanau-reversal"), tmp_path / "other", shard_bytes=100_000)
    hub.repo(NAME).add({first.name: (other / first.name).read_bytes()})
    with pytest.raises(ArtifactError, match="its shards do not belong together"):
        read_header(NAME)


def test_a_broken_connection_is_taken_up_again(hub: Hub, commit: str) -> None:
    hub.fault("objects", lambda a: replace(a, cut=9, end="reset"), port="cdn", times=1)
    assert read_header(NAME).spec["name"] == "bahdanau-reversal"
    assert len(ranges(hub)) == 2


def claiming(length: int) -> Callable[[bytes], bytes]:
    return lambda body: length.to_bytes(8, "little") + body[8:]


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a header longer than the file": (claiming(1 << 62), "ends before its header does"),
    "a header that is too long": (claiming(100_000_001), "has 100,000,001 bytes, more than"),
    "a pickle": (lambda body: b"\x80\x04" + body, "is a pickle"),
    "a changed header": (lambda body: body.replace(b"reversal", b"reversed", 1), "was changed"),
    "a header of another file": (
        lambda body: b"\x02" + bytes(7) + b"{}",
        "bytes follow the header",
    ),
    "nothing": (lambda body: b"", "ends before its header does"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_header_is_refused_and_costs_one_request(
    hub: Hub, commit: str, kind: str
) -> None:
    def vast(answer: Response) -> Response:
        """So that only the limit on headers stands in the way."""
        rows = json.loads(answer.body)
        rows[-2]["size"] = 1 << 40
        return replace(answer, body=json.dumps(rows).encode())

    corrupt, sentence = HOSTILE[kind]
    if kind == "a header that is too long":
        hub.fault("/tree/", vast)
    hub.fault("objects", lambda a: replace(a, body=corrupt(a.body)), port="cdn")
    with pytest.raises(ZooError, match=sentence):
        read_header(NAME)
    assert len(ranges(hub)) == 1
