"""Private and gated repositories. Tokens are never shown, and only sent to the hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, zoo as command
from hub_server import TOKEN, Hub, Response

import zoo
from zoo.errors import HubError
from zoo.hub import fetch

SECRET = "hf_AnotherTokenThatIsNotShown"


@pytest.fixture
def repo(hub: Hub) -> str:
    hub.repo(NAME).add({WEIGHTS: BYTES, "config.json": b"{}"})
    return NAME


def fetch_error(*arguments: object, **options: object) -> str:
    with pytest.raises(HubError) as caught:
        fetch(*arguments, **options)  # type: ignore[arg-type]
    assert TOKEN not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_missing_repository_names_the_sources_of_the_token(hub: Hub, cache: Path) -> None:
    message = fetch_error(NAME, ["*"])
    assert message.startswith(f"no repository {NAME} at {hub.url}, or it is private")
    assert f"no token was found in HF_TOKEN and {cache.parent}/token" in message
    assert "hf auth login" in message


def test_private_repository_opens_with_a_token_from_any_source(
    hub: Hub, repo: str, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.repo(repo).private = True
    assert "no token was found" in fetch_error(repo, ["*"])
    assert "no token was sent (token=False)" in fetch_error(repo, ["*"], token=False)
    assert "the token argument was sent" in fetch_error(repo, ["*"], token=SECRET)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    assert "the token in HF_TOKEN was sent" in fetch_error(repo, ["*"])
    assert fetch(repo, ["*"], token=TOKEN, cache_dir=tmp_path / "a").is_dir()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert fetch(repo, ["*"], cache_dir=tmp_path / "b").is_dir()
    monkeypatch.delenv("HF_TOKEN")
    stored = cache.parent / "token"
    stored.parent.mkdir(exist_ok=True)
    stored.write_text(SECRET)
    assert f"the token in {stored} was sent" in fetch_error(repo, ["*"])
    stored.write_text(f"{TOKEN}\n")
    assert fetch(repo, ["*"], cache_dir=tmp_path / "c").is_dir()


@pytest.mark.parametrize("token", [None, TOKEN])
def test_gated_repository_names_the_page_of_its_terms(
    hub: Hub, repo: str, token: str | None
) -> None:
    hub.repo(repo).gated = True
    message = fetch_error(repo, ["*"], token=token)
    assert message.startswith(f"{NAME} is gated: accept its terms at {hub.url}/{NAME} with the")
    assert ("the token argument was sent" if token else "no token was found") in message


def test_gated_repository_opens_after_its_terms_were_accepted(hub: Hub, repo: str) -> None:
    hub.repo(repo).gated = hub.repo(repo).accepted = True
    assert "no token was found" in fetch_error(repo, ["*"])
    assert (fetch(repo, ["*"], token=TOKEN) / WEIGHTS).read_bytes() == BYTES


def test_unknown_token_is_not_reported_as_a_missing_repository(hub: Hub, repo: str) -> None:
    assert fetch_error(repo, ["*"], token=SECRET) == (
        f"{hub.url} does not accept the token; the token argument was sent"
    )


def test_token_without_permission_raises(hub: Hub, repo: str) -> None:
    hub.fault("/revision/", lambda a: Response.error(403))
    assert f"{hub.url} denies access to {NAME}; the token argument" in fetch_error(
        repo, ["*"], token=TOKEN
    )


def test_missing_revision_raises(hub: Hub, repo: str) -> None:
    assert fetch_error(f"{repo}@v9", ["*"]) == f"{NAME} has no revision 'v9' at {hub.url}"
    assert "has no revision" in fetch_error(repo, ["*"], revision="a" * 40)


def test_missing_file_lists_existing_files(hub: Hub, repo: str) -> None:
    message = fetch_error(repo, ["tokenizer.json"])
    assert "has no data file matching tokenizer.json" in message
    assert "config.json, model.safetensors" in message


@pytest.mark.parametrize("token", [f"{SECRET}\nX-Evil: 1", f"{SECRET} x", f"{SECRET}é", ""])
def test_invalid_token_raises_without_being_shown(hub: Hub, repo: str, token: str) -> None:
    message = fetch_error(repo, ["*"], token=token)
    assert message.startswith("the token argument contains white space or other invalid")
    assert hub.requests == []


def test_token_is_sent_to_the_hub_but_not_to_the_cdn(
    hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    zoo.push(saved, NAME, private=True)
    hub.chunk = 100_000
    zoo.push(zoo.compose("bahdanau-reversal", seed=9), NAME)
    zoo.load(NAME)
    at_hub, at_cdn = hub.requests_to(port="hub"), hub.requests_to(port="cdn")
    assert {r.method for r in at_cdn} == {"PUT", "GET"}
    assert len([r for r in at_cdn if "part=" in r.path]) == 3
    assert not [r for r in at_cdn if TOKEN in str(r.headers) or "authorization" in r.headers]
    bodies = [entry.body for files in hub.repo(NAME).commits.values() for entry in files.values()]
    assert not [body for body in bodies if TOKEN.encode() in body]
    private = [r for r in at_hub if not r.path.startswith(("/complete", "/api/validate-yaml"))]
    assert {r.headers.get("authorization") for r in private} == {f"Bearer {TOKEN}"}


def test_redirect_of_a_renamed_repository_is_followed_with_the_token(hub: Hub, repo: str) -> None:
    hub.repo(repo).private = True
    location = f"{hub.url}/api/models/{repo}/revision/main"
    hub.fault("/models/old/name/revision/", lambda a: Response(307, b"", {"Location": location}))
    hub.repos["old/name"] = hub.repo(repo)
    assert (fetch("old/name", ["*"], token=TOKEN) / WEIGHTS).read_bytes() == BYTES


def test_user_agent_names_the_library(
    hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    zoo.push(saved, NAME)
    zoo.load(NAME)
    uploads = ("/upload/", "/api/validate-yaml")
    agents = {r.headers["user-agent"] for r in hub.requests if not r.path.startswith(uploads)}
    assert all(agent.startswith("attention-zoo/") for agent in agents), agents


def test_command_line_does_not_print_the_token(hub: Hub, repo: str, tmp_path: Path) -> None:
    hub.repo(repo).private = True
    done = command(hub, tmp_path / "h", "pull", NAME, here=tmp_path, HF_TOKEN=SECRET, HF_DEBUG="1")
    assert done.returncode == 1
    assert "the token in HF_TOKEN was sent" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_pushing_without_write_access_names_the_token_source(hub: Hub, saved: Path) -> None:
    with pytest.raises(HubError, match=r"\(status 401\); use a token with write access to 'z"):
        zoo.push(saved, NAME)
    with pytest.raises(HubError, match="the token argument was sent") as caught:
        zoo.push(saved, NAME, token=SECRET)
    assert SECRET not in str(caught.value)
