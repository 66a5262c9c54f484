"""Private and gated repositories, and tokens: told apart in words, never shown, never sent on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hub_kit import BYTES, NAME, WEIGHTS, zoo as command
from hub_server import TOKEN, Hub, Response

import zoo
from zoo.errors import HubError
from zoo.hub import fetch

SECRET = "hf_AnotherTokenThatNobodyMaySee"


@pytest.fixture
def repo(hub: Hub) -> str:
    hub.repo(NAME).add({WEIGHTS: BYTES, "config.json": b"{}"})
    return NAME


def said(*arguments: object, **options: object) -> str:
    with pytest.raises(HubError) as caught:
        fetch(*arguments, **options)  # type: ignore[arg-type]
    assert TOKEN not in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_a_repository_that_is_not_there_names_where_a_token_was_looked_for(
    hub: Hub, cache: Path
) -> None:
    sentence = said(NAME, ["*"])
    assert sentence.startswith(f"no repository {NAME} at {hub.url}, or it is private")
    assert f"no token was found in HF_TOKEN and {cache.parent}/token" in sentence
    assert "hf auth login" in sentence


def test_a_private_repository_opens_with_a_token_from_wherever_it_is_kept(
    hub: Hub, repo: str, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.repo(repo).private = True
    assert "no token was found" in said(repo, ["*"])
    assert "no token was sent, as asked" in said(repo, ["*"], token=False)
    assert "the token given was sent" in said(repo, ["*"], token=SECRET)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    assert "the token in HF_TOKEN was sent" in said(repo, ["*"])
    assert fetch(repo, ["*"], token=TOKEN, cache_dir=tmp_path / "a").is_dir()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert fetch(repo, ["*"], cache_dir=tmp_path / "b").is_dir()
    monkeypatch.delenv("HF_TOKEN")
    kept = cache.parent / "token"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(SECRET)
    assert f"the token in {kept} was sent" in said(repo, ["*"])
    kept.write_text(f"{TOKEN}\n")
    assert fetch(repo, ["*"], cache_dir=tmp_path / "c").is_dir()


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_gated_repository_says_where_its_terms_are(
    hub: Hub, repo: str, token: str | None
) -> None:
    hub.repo(repo).gated = True
    sentence = said(repo, ["*"], token=token)
    assert sentence.startswith(f"{NAME} is gated: accept its terms at {hub.url}/{NAME}, with the")
    assert ("the token given was sent" if token else "no token was found") in sentence


def test_a_gated_repository_opens_to_those_who_accepted_its_terms(hub: Hub, repo: str) -> None:
    hub.repo(repo).gated = hub.repo(repo).accepted = True
    assert "no token was found" in said(repo, ["*"])
    assert (fetch(repo, ["*"], token=TOKEN) / WEIGHTS).read_bytes() == BYTES


def test_a_token_the_hub_does_not_know_is_not_taken_for_a_missing_repository(
    hub: Hub, repo: str
) -> None:
    assert said(repo, ["*"], token=SECRET) == (
        f"{hub.url} does not accept the token; the token given was sent"
    )


def test_a_token_without_the_right_is_told_so(hub: Hub, repo: str) -> None:
    hub.fault("/revision/", lambda a: Response.error(403))
    assert f"{hub.url} does not let you see {NAME}; the token given" in said(
        repo, ["*"], token=TOKEN
    )


def test_a_revision_that_is_not_there(hub: Hub, repo: str) -> None:
    assert said(f"{repo}@v9", ["*"]) == f"{NAME} has no revision 'v9' at {hub.url}"
    assert "has no revision" in said(repo, ["*"], revision="a" * 40)


def test_a_file_that_is_not_there(hub: Hub, repo: str) -> None:
    sentence = said(repo, ["tokenizer.json"])
    assert "has no data file that matches tokenizer.json" in sentence
    assert "config.json, model.safetensors" in sentence


@pytest.mark.parametrize("token", [f"{SECRET}\nX-Evil: 1", f"{SECRET} x", f"{SECRET}é", ""])
def test_a_token_that_is_none_is_refused_without_being_shown(
    hub: Hub, repo: str, token: str
) -> None:
    sentence = said(repo, ["*"], token=token)
    assert sentence.startswith("the token given as an argument holds blanks or other characters")
    assert hub.requests == []


def test_the_token_goes_to_the_hub_and_never_to_the_cdn(
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
    kept = [entry.body for files in hub.repo(NAME).commits.values() for entry in files.values()]
    assert not [body for body in kept if TOKEN.encode() in body]
    private = [r for r in at_hub if not r.path.startswith(("/complete", "/api/validate-yaml"))]
    assert {r.headers.get("authorization") for r in private} == {f"Bearer {TOKEN}"}


def test_a_repository_that_was_renamed_is_followed_with_the_token(hub: Hub, repo: str) -> None:
    hub.repo(repo).private = True
    there = f"{hub.url}/api/models/{repo}/revision/main"
    hub.fault("/models/old/name/revision/", lambda a: Response(307, b"", {"Location": there}))
    hub.repos["old/name"] = hub.repo(repo)
    assert (fetch("old/name", ["*"], token=TOKEN) / WEIGHTS).read_bytes() == BYTES


def test_every_call_is_made_in_the_zoos_name(
    hub: Hub, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    zoo.push(saved, NAME)
    zoo.load(NAME)
    uploads = ("/upload/", "/api/validate-yaml")
    agents = {r.headers["user-agent"] for r in hub.requests if not r.path.startswith(uploads)}
    assert all(agent.startswith("attention-zoo/") for agent in agents), agents


def test_no_output_of_the_command_line_shows_a_token(hub: Hub, repo: str, tmp_path: Path) -> None:
    hub.repo(repo).private = True
    done = command(hub, tmp_path / "h", "pull", NAME, here=tmp_path, HF_TOKEN=SECRET, HF_DEBUG="1")
    assert done.returncode == 1
    assert "the token in HF_TOKEN was sent" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_writing_needs_a_token_and_the_message_says_which_was_tried(hub: Hub, saved: Path) -> None:
    with pytest.raises(HubError, match=r"\(status 401\); it takes a token with write access to 'z"):
        zoo.push(saved, NAME)
    with pytest.raises(HubError, match="the token given was sent") as caught:
        zoo.push(saved, NAME, token=SECRET)
    assert SECRET not in str(caught.value)
