"""Who may use the server: pages of this server on this machine, with its token."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OPEN_ADDRESS = "open the address that 'zoo ui' printed, with its token"


class Guard:
    """Refuses requests for another host, from another origin, or without the token.

    A web page of another origin can send requests to this machine, also under a name of its own
    that it resolves to 127.0.0.1 (DNS rebinding). The names of the host and of the origin are
    therefore compared, and the token is in a cookie that other origins do not send.

    Args:
        app: the application behind it.
        port: the port of the server.
        token: the secret in the address.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._token = token
        self._cookie = f"zoo-ui-{port}"  # cookies are shared by all ports of a host
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._answer(scope, Headers(scope=scope))
            await (answer or self._app)(scope, receive, _with_headers(send))

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to a request that does not reach the application."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refuse("this server answers to 127.0.0.1 and localhost only")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if scope["path"] == "/" and scope["method"] == "GET" and given:
            return self._sign_in(given[0])
        has_header = self._matches(headers.get("authorization", "").removeprefix("Bearer "))
        if not self._is_own_origin(scope, headers, has_header=has_header):
            return _refuse("this server answers to its own pages only")
        if has_header or any(map(self._matches, _cookies(headers, self._cookie))):
            return None
        return _refuse(_OPEN_ADDRESS)

    def _sign_in(self, token: str) -> Response:
        if not self._matches(token):
            return _refuse(f"the token is not valid; {_OPEN_ADDRESS}")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return answer

    def _is_own_origin(self, scope: Scope, headers: Headers, *, has_header: bool) -> bool:
        """Return whether a request comes from a page of this server.

        Browsers name the origin of requests that change something. A program that sends the token
        in a header is not a page, and names none.
        """
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return False
        origins = headers.getlist("origin")
        if not origins:
            return has_header or scope["method"] in ("GET", "HEAD")
        return len(origins) == 1 and origins[0] in self._origins

    def _matches(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self._token.encode())


def _cookies(headers: Headers, name: str) -> Iterator[str]:
    """Yield the values of the cookies of a name.

    Browsers send the cookies of all servers of this machine, which need not be valid, so each is
    read alone.
    """
    for header in headers.getlist("cookie"):
        for cookie in header.split(";"):
            key, _, value = cookie.partition("=")
            if key.strip() == name:
                yield value.strip()


def _refuse(reason: str) -> Response:
    return PlainTextResponse(f"{reason}\n", status_code=403)


def _with_headers(send: Send) -> Send:
    """Return `send` with the headers of all responses; a response may set its own."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
