"""Endpoint and token of the Hub. Specs and plugins cannot set them."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from huggingface_hub import constants, get_token

from zoo.errors import HubError, one_line, truncate

_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Credentials:
    """A token, and a description of its source for messages, which never contain the token."""

    token: str | None = field(repr=False)
    source: str

    @classmethod
    def resolve(cls, token: str | bool | None = None) -> Credentials:
        """Return the given token or the one that huggingface_hub finds; False sends none."""
        if token is False:
            return cls(None, "no token was sent (token=False)")
        if isinstance(token, str):
            return cls(_validate_token(token, "argument"), "the token argument was sent")
        stored = get_token()
        sources = f"HF_TOKEN and {constants.HF_TOKEN_PATH}"
        if stored is None:
            return cls(None, f"no token was found in {sources}; 'hf auth login' stores one")
        variables = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
        variable = next((v for v in variables if os.environ.get(v, "").strip()), "")
        source = variable or constants.HF_TOKEN_PATH
        return cls(_validate_token(stored, f"in {source}"), f"the token in {source} was sent")

    def __str__(self) -> str:
        return self.source

    def auth_header(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def describe(self, error: BaseException) -> str:
        """Return the message of an error of another library, in one line and without the token.

        It may contain text of a server.
        """
        text = " ".join(str(error).split()) or type(error).__name__
        text = text.replace(self.token, "hf_***") if self.token else text
        return one_line(truncate(text, 300))


def _validate_token(token: str, where: str) -> str:
    # The HTTP library would show an invalid token in its error.
    if not _TOKEN_PATTERN.fullmatch(token):
        raise HubError(f"the token {where} contains white space or other invalid characters")
    return token


def is_offline() -> bool:
    """Return whether HF_HUB_OFFLINE is set."""
    return bool(constants.HF_HUB_OFFLINE)


def hub_endpoint() -> str:
    """Return the URL of the Hub: https, or http on this machine."""
    address = str(constants.ENDPOINT)
    check_url(address, address)
    return address


def check_url(url: str, hub: str) -> None:
    """Raise HubError unless a URL is https or, for a hub on this machine, on this machine."""
    try:
        scheme, host, _ = origin(url)
        local = _is_loopback(host) and _is_loopback(origin(hub)[1])
    except ValueError:
        scheme, host, local = "", "", False
    if not host or not (scheme == "https" or (scheme == "http" and local)):
        shown = truncate(f"{scheme}://{host}" if host else repr(url), 80)
        raise HubError(f"{shown} is not allowed: expected https, or a hub on this machine")


def origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
