"""Views of attention that the page shows in a frame."""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

_MAX_VIEWS = 8
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)


class ViewStore:
    """Pages of views by their hash; the oldest are removed.

    A view runs its own inline code, so it has no access to the page around it or to the server.
    """

    def __init__(self) -> None:
        self._pages: dict[str, str] = {}

    def add(self, text: str) -> str:
        """Keep a page; return its key."""
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        self._pages[key] = text
        for old in list(self._pages)[:-_MAX_VIEWS]:
            del self._pages[old]
        return key

    async def respond(self, request: Request) -> Response:
        text = self._pages.get(request.path_params["key"])
        if text is None:
            return PlainTextResponse("this view is no longer kept; compute it again\n", 404)
        return HTMLResponse(text, headers={"Content-Security-Policy": _CONTENT_POLICY})
