"""What goes over the wire: bounded answers, bounded retries, and a token for the hub alone.

The session, the token, the endpoint and the user agent are huggingface_hub's, so proxies,
certificates and the HF_* variables mean what they mean everywhere. Redirects are followed here,
by hand, because the token must not leave the hub.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urljoin

from huggingface_hub import constants, errors
from huggingface_hub.utils import build_hf_headers, get_session

from zoo.about import DISTRIBUTION, version
from zoo.errors import HubError, truncate
from zoo.hub.credentials import Credentials, check_url, hub_endpoint, origin

_log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES = 32_000_000
RETRY_DELAYS = (0.2, 1.0, 3.0)
_MAX_RETRY_AFTER = 30.0
_RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5

# The library below differs between the majors (httpx, httpx2); huggingface_hub names its errors.
NETWORK_ERRORS: tuple[type[Exception], ...] = (errors.HTTPError, OSError)


class TransientError(Exception):
    """A failure that another try may not meet."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class DownloadSink(Protocol):
    """Where a download goes: restarted before its first byte, then fed."""

    def restart(self) -> None: ...

    def write_chunk(self, chunk: bytes) -> None: ...


@dataclass(frozen=True)
class HubClient:
    """One hub, spoken to with one token, always in the zoo's name."""

    address: str
    access: Credentials
    headers: Mapping[str, str]

    @classmethod
    def connect(cls, token: str | bool | None = None) -> HubClient:
        """The hub that HF_ENDPOINT names, with the token given or the one found."""
        address = hub_endpoint()
        access = Credentials.resolve(token)
        headers = build_hf_headers(
            token=False, library_name=DISTRIBUTION, library_version=version()
        )
        return cls(address, access, {**headers, "accept-encoding": "identity"})

    def json(self, path: str, repo: str, *, revision: str = "") -> tuple[Any, str | None]:
        """The answer as data, and the address of its next page."""

        def send() -> tuple[Any, str | None]:
            with self._stream(urljoin(f"{self.address}/", path), {}) as response:
                self._raise_for_status(response, repo, revision)
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_RESPONSE_BYTES:
                        raise HubError(f"{self._host}: an answer about {repo} has no end")
                return json.loads(bytes(body)), response.links.get("next", {}).get("url")

        try:
            answer: tuple[Any, str | None] = self._retry(send, repo)
            return answer
        except (ValueError, RecursionError):
            raise HubError(f"{self._host}: its answer about {repo} is no JSON") from None

    def download(self, repo: str, commit: str, name: str, sink: DownloadSink) -> None:
        """A file's bytes, handed on as they come; a broken connection is taken up again."""
        url = f"{self.address}/{repo}/resolve/{commit}/{quote(name)}"
        taken = 0

        def send() -> None:
            nonlocal taken
            wanted = {"range": f"bytes={taken}-"} if taken else {}
            with self._stream(url, wanted, commit) as response:
                if response.status_code == 416:  # nothing is left, or the file is another now
                    taken = 0
                    raise TransientError("status 416")
                self._raise_for_status(response, repo, commit, name)
                goes_on = response.headers.get("content-range", "").startswith(f"bytes {taken}-")
                if not taken or response.status_code != 206 or not goes_on:
                    taken = 0
                    sink.restart()
                for chunk in response.iter_bytes():
                    taken += len(chunk)
                    sink.write_chunk(chunk)

        self._retry(send, f"{name} of {repo}")

    def read_prefix(self, repo: str, commit: str, name: str, count: int) -> bytes:
        """A file's first bytes; a hub that sends the whole file is left when they are here."""
        url = f"{self.address}/{repo}/resolve/{commit}/{quote(name)}"

        def send() -> bytes:
            with self._stream(url, {"range": f"bytes=0-{count - 1}"}, commit) as response:
                self._raise_for_status(response, repo, commit, name)
                body = bytearray()
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) >= count:
                        break
                return bytes(body[:count])

        told: bytes = self._retry(send, f"{name} of {repo}")
        return told

    def _retry(self, send: Callable[[], Any], what: str) -> Any:
        for wait in (*RETRY_DELAYS, None):
            try:
                return send()
            except TransientError as error:
                reason, wait = str(error), wait and max(wait, error.wait or 0)
            except (errors.OfflineModeIsEnabled, errors.HfHubHTTPError) as error:
                raise HubError(f"{what}: {self.access.redact(str(error))}") from None
            except NETWORK_ERRORS as error:
                if getattr(error, "errno", None) is not None:
                    raise  # the disk's, not the network's
                reason = self.access.redact(str(error) or type(error).__name__)
            if wait is not None:
                _log.warning("%s: %s; trying again in %.1f s", what, truncate(reason, 200), wait)
                time.sleep(wait)
        tries = len(RETRY_DELAYS) + 1
        raise HubError(
            f"{self._host} did not give {what} in {tries} tries: {truncate(reason, 200)}"
        ) from None

    @contextlib.contextmanager
    def _stream(self, url: str, wanted: Mapping[str, str], commit: str = "") -> Iterator[Any]:
        """An answer, wherever it is; all who say which commit they speak of say the same."""
        for _ in range(_MAX_REDIRECTS):
            check_url(url, self.address)
            headers = {**self.headers, **wanted}
            if origin(url) == origin(self.address):
                headers |= self.access.auth_header()
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
                        f"{truncate(repr(told), 60)}; nothing was written"
                    )
                if response.status_code not in _REDIRECT_STATUSES:
                    yield response
                    return
                url = _join_url(url, response.headers.get("location", ""))
        raise HubError(f"{self._host} sends from one address to the next without end")

    def _raise_for_status(self, response: Any, repo: str, revision: str, name: str = "") -> None:
        status = response.status_code
        if status in (200, 206):
            return
        if status in _RETRY_STATUSES:
            later = response.headers.get("retry-after", "")
            wait = min(float(later), _MAX_RETRY_AFTER) if later.isdigit() else None
            raise TransientError(f"status {status}", wait)
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
        return redact_url(self.address)


def _join_url(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return location  # no address at all, which is refused as such


def redact_url(address: str) -> str:
    """An address as it may be printed: without a password somebody put into it."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
