"""HTTP requests to the Hub, with limited response sizes and times, and retries.

Session, token, endpoint and user agent come from huggingface_hub, so proxies, certificates and the
HF_* variables work as usual. Redirects are followed here, because the token must only be sent to
the Hub.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin

from huggingface_hub import constants, errors
from huggingface_hub.utils import build_hf_headers, get_session

from zoo.about import DISTRIBUTION, version
from zoo.artifact.layout import exceeds_values
from zoo.errors import HubError, truncate
from zoo.hub.credentials import Credentials, check_url, hub_endpoint, origin

MIN_BYTES_PER_SECOND = 1_000
_STEPS = 3
"""Connecting, sending the request and receiving the headers may each take the timeout."""


@contextlib.contextmanager
def open_response(
    response: contextlib.AbstractContextManager[Any], timeout: float
) -> Iterator[Any]:
    """Enter a response, which waits for its headers; raise TimeoutError if they take too long.

    A thread waits for them, because the HTTP library limits only the time between two bytes. If
    they take too long, the thread closes the response later.
    """
    opened: Future[Any] = Future()
    lock = threading.Lock()
    is_abandoned = False

    def enter() -> None:
        try:
            entered = response.__enter__()
        except BaseException as error:
            opened.set_exception(error)
            return
        with lock:
            if not is_abandoned:
                opened.set_result(entered)
                return
        response.__exit__(None, None, None)

    def abandon() -> bool:
        nonlocal is_abandoned
        with lock:
            is_abandoned = not opened.done()
        return is_abandoned

    threading.Thread(target=enter, daemon=True).start()
    try:
        opened.exception(_STEPS * timeout)
    except TimeoutError:
        if abandon():
            reason = f"no complete headers after {_STEPS * timeout:g} s"
            raise TimeoutError(reason) from None
    except BaseException:  # Ctrl-C
        if not abandon() and opened.exception() is None:
            response.__exit__(None, None, None)
        raise
    entered = opened.result()
    with contextlib.ExitStack() as stack:
        stack.push(response.__exit__)
        yield entered


def iter_chunks(response: Any, timeout: float) -> Iterator[bytes]:
    """Yield the body of a response; raise TimeoutError if it arrives too slowly."""
    received, waited = 0, 0.0
    chunks = iter(response.iter_bytes())
    while True:
        started = time.monotonic()
        chunk = next(chunks, None)
        if chunk is None:
            return
        received, waited = received + len(chunk), waited + time.monotonic() - started
        if waited >= timeout:
            if received < MIN_BYTES_PER_SECOND * waited:
                raise TimeoutError(
                    f"{received:,} bytes in {waited:.3g} s; at least {MIN_BYTES_PER_SECOND:,} per "
                    "second are required"
                )
            received, waited = 0, 0.0
        yield chunk


_log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES = 32_000_000
MAX_RESPONSE_VALUES = 1_000_000
RETRY_DELAYS = (0.2, 1.0, 3.0)
_MAX_RETRY_AFTER = 30.0
_RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5

# The HTTP library differs between major versions of huggingface_hub, which re-exports its errors.
NETWORK_ERRORS: tuple[type[Exception], ...] = (errors.HTTPError, OSError)


class TransientError(Exception):
    """A failure that is worth a retry."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class HubClient:
    """A client for one hub and one token."""

    address: str
    access: Credentials
    headers: Mapping[str, str]

    @classmethod
    def connect(cls, token: str | bool | None = None) -> HubClient:
        """Create a client for HF_ENDPOINT, with the given token or the stored one."""
        address = hub_endpoint()
        access = Credentials.resolve(token)
        headers = build_hf_headers(
            token=False, library_name=DISTRIBUTION, library_version=version()
        )
        return cls(address, access, {**headers, "accept-encoding": "identity"})

    def json(self, path: str, repo: str, *, revision: str = "") -> tuple[Any, str | None]:
        """Return the parsed response, and the URL of the next page."""

        def send() -> tuple[Any, str | None]:
            with self._stream(urljoin(f"{self.address}/", path), {}) as response:
                self._raise_for_status(response, repo, revision)
                body = _read(response, MAX_RESPONSE_BYTES + 1)
                if len(body) > MAX_RESPONSE_BYTES:
                    excess = f"exceeds {MAX_RESPONSE_BYTES:,} bytes"
                    raise HubError(f"{self._host}: the response for {repo} {excess}")
                text = body.decode()
                if exceeds_values(text, MAX_RESPONSE_VALUES):
                    excess = f"has more than {MAX_RESPONSE_VALUES:,} values"
                    raise HubError(f"{self._host}: the response for {repo} {excess}")
                return json.loads(text), response.links.get("next", {}).get("url")

        try:
            response: tuple[Any, str | None] = self._retry(send, repo)
            return response
        except (ValueError, RecursionError):
            raise HubError(f"{self._host}: the response for {repo} is not JSON") from None

    def download(
        self, repo: str, commit: str, name: str, write: Callable[[int, bytes], None]
    ) -> None:
        """Download a file to `write(offset, chunk)`.

        A broken connection is resumed, or restarted at offset 0 if the server ignores the range.
        """
        received = 0

        def send() -> None:
            nonlocal received
            byte_range = f"bytes={received}-" if received else ""
            with self._stream_file(repo, commit, name, byte_range) as response:
                if response.status_code == 416:  # the range is outside the file
                    received = 0
                    raise TransientError("status 416")
                self._raise_for_status(response, repo, commit, name)
                content_range = response.headers.get("content-range", "")
                if not content_range.startswith(f"bytes {received}-"):
                    received = 0
                for chunk in iter_chunks(response, _timeout()):
                    write(received, chunk)
                    received += len(chunk)

        self._retry(send, f"{name} of {repo}")

    def read_prefix(self, repo: str, commit: str, name: str, count: int) -> bytes:
        """Return the first bytes of a file, even if the Hub ignores the range."""

        def send() -> bytes:
            with self._stream_file(repo, commit, name, f"bytes=0-{count - 1}") as response:
                self._raise_for_status(response, repo, commit, name)
                return _read(response, count)

        prefix: bytes = self._retry(send, f"{name} of {repo}")
        return prefix

    def _retry(self, send: Callable[[], Any], what: str) -> Any:
        for wait in (*RETRY_DELAYS, None):
            try:
                return send()
            except TransientError as error:
                reason, wait = str(error), wait and max(wait, error.wait or 0)
            except (errors.OfflineModeIsEnabled, errors.HfHubHTTPError) as error:
                raise HubError(f"{what}: {self.access.describe(error)}") from None
            except NETWORK_ERRORS as error:
                if getattr(error, "errno", None) is not None:
                    raise  # of the file system, not of the network
                reason = self.access.describe(error)
            if wait is not None:
                _log.warning("%s: %s; trying again in %.1f s", what, reason, wait)
                time.sleep(wait)
        tries = len(RETRY_DELAYS) + 1
        raise HubError(f"{self._host}: {what} failed after {tries} attempts: {reason}") from None

    @contextlib.contextmanager
    def _stream(self, url: str, extra: Mapping[str, str], commit: str = "") -> Iterator[Any]:
        """Yield a response, following redirects. Each must be for `commit`, if it names one."""
        for _ in range(_MAX_REDIRECTS):
            check_url(url, self.address)
            headers = {**self.headers, **extra}
            if origin(url) == origin(self.address):
                headers |= self.access.auth_header()
            request = get_session().stream(
                "GET", url, headers=headers, follow_redirects=False, timeout=_timeout()
            )
            with open_response(request, _timeout()) as response:
                response_commit = response.headers.get("x-repo-commit", commit)
                if commit and response_commit != commit:
                    raise HubError(
                        f"{url} was requested at commit {commit}, but the response is for "
                        f"{truncate(repr(response_commit), 60)}; nothing was written"
                    )
                if response.status_code not in _REDIRECT_STATUSES:
                    yield response
                    return
                url = _join_url(url, response.headers.get("location", ""))
        raise HubError(f"{self._host} redirects more than {_MAX_REDIRECTS} times")

    def _stream_file(
        self, repo: str, commit: str, name: str, byte_range: str
    ) -> contextlib.AbstractContextManager[Any]:
        url = f"{self.address}/{repo}/resolve/{commit}/{quote(name)}"
        return self._stream(url, {"range": byte_range} if byte_range else {}, commit)

    def _raise_for_status(self, response: Any, repo: str, revision: str, name: str = "") -> None:
        status = response.status_code
        if status in (200, 206):
            return
        if status in _RETRY_STATUSES:
            later = response.headers.get("retry-after", "")
            wait = min(float(later), _MAX_RETRY_AFTER) if later.isdecimal() else None
            raise TransientError(f"status {status}", wait)
        code = response.headers.get("x-error-code", "")
        if code == "GatedRepo":
            reason = (
                f"{repo} is gated: accept its terms at {self._host}/{repo} with the account of the "
                f"token; {self.access}"
            )
        elif code == "RevisionNotFound":
            reason = f"{repo} has no revision '{revision}' at {self._host}"
        elif code == "EntryNotFound":
            reason = f"{repo} has no file '{name}' at {revision} ({self._host})"
        elif status == 401 and self.access.token and code != "RepoNotFound":
            reason = f"{self._host} does not accept the token; {self.access}"
        elif status in (401, 404) or code == "RepoNotFound":
            reason = (
                f"no repository {repo} at {self._host}, or it is private and the token has no "
                f"access; {self.access}"
            )
        elif status == 403:
            reason = f"{self._host} denies access to {repo}; {self.access}"
        else:
            reason = f"{self._host} returned status {status} for {name or repo}"
        raise HubError(reason)

    @property
    def _host(self) -> str:
        return redact_url(self.address)


def _timeout() -> float:
    return float(constants.HF_HUB_DOWNLOAD_TIMEOUT)


def _read(response: Any, max_bytes: int) -> bytes:
    """Return the body of a response, or its first `max_bytes`."""
    body = bytearray()
    for chunk in iter_chunks(response, _timeout()):
        body += chunk
        if len(body) >= max_bytes:
            break
    return bytes(body[:max_bytes])


def _join_url(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return location  # rejected by check_url


def redact_url(address: str) -> str:
    """Return a URL without user name and password."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
