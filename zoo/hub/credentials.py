"""Where the hub is, and which token opens it; neither is ever for a spec or a plugin to say."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from huggingface_hub import constants, get_token

from zoo.errors import HubError, truncate

_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Credentials:
    """A token, which no message shows, and where it came from, which messages do."""

    token: str | None = field(repr=False)
    source: str

    @classmethod
    def resolve(cls, token: str | bool | None = None) -> Credentials:
        """The token given, or the one huggingface_hub finds; False sends none."""
        if token is False:
            return cls(None, "no token was sent, as asked")
        if isinstance(token, str):
            return cls(_validate_token(token, "given as an argument"), "the token given was sent")
        kept = get_token()
        looked = f"HF_TOKEN and {constants.HF_TOKEN_PATH}"
        if kept is None:
            return cls(None, f"no token was found in {looked}; 'hf auth login' stores one")
        variables = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
        named = next((v for v in variables if os.environ.get(v, "").strip()), "")
        place = named or constants.HF_TOKEN_PATH
        return cls(_validate_token(kept, f"in {place}"), f"the token in {place} was sent")

    def __str__(self) -> str:
        return self.source

    def auth_header(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def redact(self, text: str) -> str:
        """The text without the token, should somebody else's message hold it."""
        return text.replace(self.token, "hf_***") if self.token else text


def _validate_token(token: str, where: str) -> str:
    # Else the HTTP library refuses it with an error that repeats it.
    if not _TOKEN_PATTERN.fullmatch(token):
        raise HubError(f"the token {where} holds blanks or other characters that no token has")
    return token


def is_offline() -> bool:
    return bool(constants.HF_HUB_OFFLINE)


def hub_endpoint() -> str:
    """The hub's address: https, or http on this machine."""
    address = str(constants.ENDPOINT)
    check_url(address, address)
    return address


def check_url(url: str, hub: str) -> None:
    """Refuse an address that is neither https nor, for a hub on this machine, on this machine."""
    try:
        scheme, host, _ = origin(url)
        local = _is_loopback(host) and _is_loopback(origin(hub)[1])
    except ValueError:
        scheme, host, local = "", "", False
    if not host or not (scheme == "https" or (scheme == "http" and local)):
        place = truncate(f"{scheme}://{host}" if host else repr(url), 80)
        raise HubError(f"{place} is refused: a hub is spoken to by https, or on this machine")


def origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80}.get(parts.scheme, 443)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
