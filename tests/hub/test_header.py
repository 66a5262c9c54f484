"""Headers of models on the Hub, read from the first bytes of their files."""

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


def comparable(header: artifact.Header) -> dict[str, object]:
    """Return the header without its path."""
    return {key: value for key, value in header.as_json().items() if key != "file"}


def ranges(hub: Hub) -> list[str]:
    return [r.headers["range"] for r in hub.requests_to("objects", "cdn")]


def test_header_is_read_without_downloading_weights(
    hub: Hub, commit: str, saved: Path, cache: Path
) -> None:
    header = read_header(NAME)
    assert comparable(header) == comparable(artifact.read_header(saved))
    assert str(header.path) == f"{NAME}@{commit[:12]}/{WEIGHTS}"
    assert ranges(hub) == ["bytes=0-65535"]
    assert not [path for path in list_files(cache) if "blobs" in path or "snapshots" in path]


def test_long_header_needs_a_second_request(hub: Hub, saved: Path, tmp_path: Path) -> None:
    model = zoo.load(saved)
    model.tokenizer = {"source": "x" * 100_000}
    file = zoo.save(model, tmp_path / WEIGHTS)
    hub.repo(NAME).add({WEIGHTS: file.read_bytes()})
    assert comparable(read_header(NAME)) == comparable(artifact.read_header(file))
    end = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    assert ranges(hub) == ["bytes=0-65535", f"bytes=0-{end - 1}"]


def test_hub_without_range_support_is_read_as_far_as_needed(
    hub: Hub, commit: str, saved: Path
) -> None:
    endless = saved.read_bytes() + bytes(50_000_000)
    hub.fault("objects", lambda a: Response(200, endless), port="cdn")
    assert comparable(read_header(NAME)) == comparable(artifact.read_header(saved))


def test_cached_model_needs_no_request(hub: Hub, commit: str, saved: Path) -> None:
    path = pull(NAME).path
    Path("zoo.lock").unlink()
    hub.requests.clear()
    assert read_header(f"{NAME}@{commit}").path == path
    assert read_header(NAME, options=Options(local_files_only=True)).path == path
    assert hub.requests == []
    read_header(NAME)
    assert [r.path for r in hub.requests] == [f"/api/models/{NAME}/revision/main"]


def test_offline_missing_files_are_listed(hub: Hub, commit: str) -> None:
    read_header(NAME)
    hub.requests.clear()
    with pytest.raises(HubError, match=r"missing or damaged: model\.safetensors$"):
        read_header(NAME, options=Options(local_files_only=True))
    assert hub.requests == []


def test_header_of_shards(hub: Hub, saved: Path, tmp_path: Path) -> None:
    folder = zoo.save(zoo.load(saved), tmp_path / "shards", shard_bytes=100_000)
    hub.repo(NAME).add({path.name: path.read_bytes() for path in folder.iterdir()})
    assert comparable(read_header(NAME)) == comparable(artifact.read_header(folder))
    assert ranges(hub) == ["bytes=0-65535"] * 3
    (first, *_) = sorted(folder.glob("*.safetensors"))
    other = zoo.save(zoo.compose("bahdanau-reversal"), tmp_path / "other", shard_bytes=100_000)
    hub.repo(NAME).add({first.name: (other / first.name).read_bytes()})
    with pytest.raises(ArtifactError, match="belong to different models"):
        read_header(NAME)


def test_broken_connection_is_retried(hub: Hub, commit: str) -> None:
    hub.fault("objects", lambda a: replace(a, max_bytes=9, end="reset"), port="cdn", times=1)
    assert read_header(NAME).spec["name"] == "bahdanau-reversal"
    assert len(ranges(hub)) == 2


def with_length(length: int) -> Callable[[bytes], bytes]:
    return lambda body: length.to_bytes(8, "little") + body[8:]


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a header longer than the file": (with_length(1 << 62), "ends before the end of its header"),
    "a header that is too long": (with_length(100_000_001), "has 100,000,001 bytes; at most"),
    "a pickle": (lambda body: b"\x80\x04" + body, "is a pickle"),
    "a changed header": (
        lambda body: body.replace(b"reversal", b"reversed", 1),
        "does not match its digest",
    ),
    "a header of another file": (
        lambda body: b"\x02" + bytes(7) + b"{}",
        "bytes follow the header",
    ),
    "nothing": (lambda body: b"", "ends before the end of its header"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_header_raises_after_one_request(hub: Hub, commit: str, kind: str) -> None:
    def claim_size(answer: Response) -> Response:
        """Claim a large file, so that only the limit of the header applies."""
        rows = json.loads(answer.body)
        rows[-2]["size"] = 1 << 40
        return replace(answer, body=json.dumps(rows).encode())

    corrupt, message = HOSTILE[kind]
    if kind == "a header that is too long":
        hub.fault("/tree/", claim_size)
    hub.fault("objects", lambda a: replace(a, body=corrupt(a.body)), port="cdn")
    with pytest.raises(ZooError, match=message):
        read_header(NAME)
    assert len(ranges(hub)) == 1
