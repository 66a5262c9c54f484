"""What goes over the wire: bounded answers, bounded retries, and a token for the hub alone.

The session, the token, the endpoint and the user agent are huggingface_hub's, so proxies,
certificates and the HF_* variables mean what they mean everywhere. Redirects are followed here,
by hand, because the token must not leave the hub.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urljoin

from huggingface_hub import constants, errors
from huggingface_hub.utils import build_hf_headers, get_session

from zoo.about import DISTRIBUTION, version
from zoo.errors import HubError, shortened
from zoo.hub.access import Access, hub_address, origin, permitted

MAX_ANSWER = 32_000_000
WAITS = (0.2, 1.0, 3.0)
_PATIENCE = 30.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_MOVED = (301, 302, 303, 307, 308)
_MOVES = 5

# The library below differs between the majors (httpx, httpx2); huggingface_hub names its errors.
BROKEN: tuple[type[Exception], ...] = (errors.HTTPError, OSError)


class Passing(Exception):
    """A failure that another try may not meet."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Sink(Protocol):
    """Where a download goes: restarted before its first byte, then fed."""

    def restart(self) -> None: ...

    def take(self, chunk: bytes) -> None: ...


@dataclass(frozen=True)
class Wire:
    """One hub, spoken to with one token, always in the zoo's name."""

    address: str
    access: Access
    headers: Mapping[str, str]

    @classmethod
    def open(cls, token: str | bool | None = None) -> Wire:
        """The hub that HF_ENDPOINT names, with the token given or the one found."""
        address = hub_address()
        access = Access.found(token)
        headers = build_hf_headers(
            token=False, library_name=DISTRIBUTION, library_version=version()
        )
        return cls(address, access, {**headers, "accept-encoding": "identity"})

    def json(self, path: str, repo: str, *, revision: str = "") -> tuple[Any, str | None]:
        """The answer as data, and the address of its next page."""

        def ask() -> tuple[Any, str | None]:
            with self._opened(urljoin(f"{self.address}/", path), {}) as response:
                self._check(response, repo, revision)
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_ANSWER:
                        raise HubError(f"{self._host}: an answer about {repo} has no end")
                return json.loads(bytes(body)), response.links.get("next", {}).get("url")

        try:
            answer: tuple[Any, str | None] = self._tried(ask, repo)
            return answer
        except (ValueError, RecursionError):
            raise HubError(f"{self._host}: its answer about {repo} is no JSON") from None

    def download(self, repo: str, commit: str, name: str, sink: Sink) -> None:
        """A file's bytes, handed on as they come; a broken connection is taken up again."""
        url = f"{self.address}/{repo}/resolve/{commit}/{quote(name)}"
        taken = 0

        def ask() -> None:
            nonlocal taken
            wanted = {"range": f"bytes={taken}-"} if taken else {}
            with self._opened(url, wanted, commit) as response:
                if response.status_code == 416:  # nothing is left, or the file is another now
                    taken = 0
                    raise Passing("status 416")
                self._check(response, repo, commit, name)
                goes_on = response.headers.get("content-range", "").startswith(f"bytes {taken}-")
                if not taken or response.status_code != 206 or not goes_on:
                    taken = 0
                    sink.restart()
                for chunk in response.iter_bytes():
                    taken += len(chunk)
                    sink.take(chunk)

        self._tried(ask, f"{name} of {repo}")

    def beginning(self, repo: str, commit: str, name: str, count: int) -> bytes:
        """A file's first bytes; a hub that sends the whole file is left when they are here."""
        url = f"{self.address}/{repo}/resolve/{commit}/{quote(name)}"

        def ask() -> bytes:
            with self._opened(url, {"range": f"bytes=0-{count - 1}"}, commit) as response:
                self._check(response, repo, commit, name)
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) >= count:
                        break
                return bytes(body[:count])

        told: bytes = self._tried(ask, f"{name} of {repo}")
        return told

    def _tried(self, ask: Callable[[], Any], what: str) -> Any:
        for wait in (*WAITS, None):
            try:
                return ask()
            except Passing as error:
                reason, wait = str(error), wait and max(wait, error.wait or 0)
            except (errors.OfflineModeIsEnabled, errors.HfHubHTTPError) as error:
                raise HubError(f"{what}: {self.access.hidden(str(error))}") from None
            except BROKEN as error:
                if getattr(error, "errno", None) is not None:
                    raise  # the disk's, not the network's
                reason = self.access.hidden(str(error) or type(error).__name__)
            if wait is not None:
                time.sleep(wait)
        tries = len(WAITS) + 1
        raise HubError(
            f"{self._host} did not give {what} in {tries} tries: {shortened(reason, 200)}"
        ) from None

    @contextlib.contextmanager
    def _opened(self, url: str, wanted: Mapping[str, str], commit: str = "") -> Iterator[Any]:
        """An answer, wherever it is; all who say which commit they speak of say the same."""
        for _ in range(_MOVES):
            permitted(url, self.address)
            headers = {**self.headers, **wanted}
            if origin(url) == origin(self.address):
                headers |= self.access.header()
            with get_session().stream(
                "GET",
                url,
                headers=headers,
                follow_redirects=False,
                timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
            ) as response:
                told = response.headers.get("x-repo-commit", commit)
                if commit and told != commit:
                    raise HubError(
                        f"{url} was asked for at commit {commit}, but the answer is of "
                        f"{shortened(repr(told), 60)}; nothing was written"
                    )
                if response.status_code not in _MOVED:
                    yield response
                    return
                url = _joined(url, response.headers.get("location", ""))
        raise HubError(f"{self._host} sends from one address to the next without end")

    def _check(self, response: Any, repo: str, revision: str, name: str = "") -> None:
        status = response.status_code
        if status in (200, 206):
            return
        if status in _PASSING:
            later = response.headers.get("retry-after", "")
            wait = min(float(later), _PATIENCE) if later.isdigit() else None
            raise Passing(f"status {status}", wait)
        code = response.headers.get("x-error-code", "")
        if code == "GatedRepo":
            reason = (
                f"{repo} is gated: accept its terms at {self._host}/{repo}, with the account the "
                f"token belongs to; {self.access}"
            )
        elif code == "RevisionNotFound":
            reason = f"{repo} has no revision '{revision}' at {self._host}"
        elif code == "EntryNotFound":
            reason = f"{repo} has no file '{name}' at {revision} ({self._host})"
        elif status == 401 and self.access.token and code != "RepoNotFound":
            reason = f"{self._host} does not accept the token; {self.access}"
        elif status in (401, 404) or code == "RepoNotFound":
            reason = (
                f"no repository {repo} at {self._host}, or it is private and the token does not "
                f"open it; {self.access}"
            )
        elif status == 403:
            reason = f"{self._host} does not let you see {repo}; {self.access}"
        else:
            reason = f"{self._host} answered status {status} when asked for {name or repo}"
        raise HubError(reason)

    @property
    def _host(self) -> str:
        return shown(self.address)


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return location  # no address at all, which is refused as such


def shown(address: str) -> str:
    """An address as it may be printed: without a password somebody put into it."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
