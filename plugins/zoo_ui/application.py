"""The pages and requests of ``zoo ui``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from zoo.cli.index import Index, load_index
from zoo.errors import SpecError, ZooError
from zoo_ui.bodies import (
    MAX_UPLOAD_BYTES,
    Answer,
    load_json,
    read_bytes,
    read_fields,
    read_path,
)
from zoo_ui.catalogue_data import describe_component, describe_registry, describe_specs
from zoo_ui.checks import NewestChecks, Superseded
from zoo_ui.views import ViewStore
from zoo_ui.worker_client import WorkerClient

STATIC = Path(__file__).parent / "static"
_LONG_BYTES = 100_000  # what is longer is parsed in a thread
_CHECK_SECONDS, _PART_SECONDS, _MODEL_SECONDS = 60, 300, 1800


class Requests:
    """Answers the requests of the page; what takes long runs in worker processes.

    Checks have a process of their own, so that laws and models do not delay them.

    Args:
        index: what the installed plugins provide; None: it is loaded while the page is read.
    """

    def __init__(self, index: Index | None) -> None:
        self._loaded = index
        self._checker = WorkerClient("checks specs", _CHECK_SECONDS)
        self._parts = WorkerClient("runs laws and tries parts", _PART_SECONDS)
        self._models = WorkerClient("runs models", _MODEL_SECONDS)
        self._checks = NewestChecks(self._checker)
        self._views = ViewStore()
        self._schema: asyncio.Task[Any] | None = None
        self._parts_loaded: asyncio.Task[Any] | None = None
        self._loading = asyncio.Lock()

    async def _index(self) -> Index:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(load_index)
        return self._loaded

    def routes(self) -> list[Route | Mount]:
        get, post = ["GET"], ["POST"]
        return [
            Route("/", self.page, methods=get),
            Route("/api/registry", self.registry, methods=get),
            Route("/api/component", self.component, methods=get),
            Route("/api/specs", self.specs, methods=get),
            Route("/api/schema", self.schema, methods=get),
            Route("/api/spec", self.spec, methods=post),
            Route("/api/parse", self.parse, methods=post),
            Route("/api/check", self.check, methods=post),
            Route("/api/part", self.part, methods=post),
            Route("/api/starters", self.starters, methods=post),
            Route("/api/measure", self.measure, methods=post),
            Route("/api/laws", self.laws, methods=post),
            Route("/api/model", self.model, methods=post),
            Route("/api/run", self.run, methods=post),
            Route("/api/attend", self.attend, methods=post),
            Route("/view/{key}", self._views.respond, methods=get),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Load torch in the background while the first page is read; end all processes at last."""
        self._schema = _in_background(self._checker.call("schema"))
        try:
            yield
        finally:
            for task in (self._schema, self._parts_loaded):
                if task is not None:
                    task.cancel()
            await asyncio.gather(*(w.stop() for w in (self._checker, self._parts, self._models)))

    async def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def registry(self, request: Request) -> Response:
        return Answer(await asyncio.to_thread(describe_registry, await self._index()))

    async def specs(self, request: Request) -> Response:
        return Answer(await asyncio.to_thread(describe_specs, await self._index()))

    async def component(self, request: Request) -> Response:
        kind, plugin, name = (request.query_params.get(k, "") for k in ("kind", "plugin", "name"))
        for component in (await self._index()).components():
            if (component.kind, component.plugin, component.name) == (kind, plugin, name):
                return Answer(describe_component(component))
        raise ZooError(f"no {kind} named '{plugin}:{name}' is installed")

    async def schema(self, request: Request) -> Response:
        if self._schema is None or (self._schema.done() and self._schema.exception()):
            self._schema = _in_background(self._checker.call("schema"))
        schema = await asyncio.shield(self._schema)
        if self._parts_loaded is None:
            self._parts_loaded = _in_background(self._parts.call("load"))
        return Answer(schema)

    async def spec(self, request: Request) -> Response:
        body = await _read_body(request)
        if "recipe" in body:
            (name,) = read_fields(body, recipe=str)
            return Answer(await self._checker.call("recipe", name=name))
        (source,) = read_fields({"source": "", **body}, source=str)
        return Answer(await self._checker.call("open", source=source))

    async def parse(self, request: Request) -> Response:
        from zoo.spec.document import read_text  # not needed to show the page

        (text,) = read_fields(await _read_body(request), text=str)
        try:
            document = await asyncio.to_thread(read_text, text, "YAML")
            problems = document.problems
        except SpecError as error:
            problems = error.problems
        if problems:
            return Answer({"ok": False, "errors": [each.as_json() for each in problems]})
        return Answer({"ok": True, "data": document.data})

    async def check(self, request: Request) -> Response:
        body = await _read_body(request)
        page, sequence, data = read_fields(body, page=str, sequence=int, data=dict)
        try:
            return Answer(await self._checks.check(page, sequence, data))
        except Superseded:
            return Answer({"superseded": True})

    async def part(self, request: Request) -> Response:
        return Answer(await self._parts.call("candidate", **await _read_replacement(request)))

    async def starters(self, request: Request) -> Response:
        (data,) = read_fields(await _read_body(request), data=dict)
        return Answer(await self._parts.call("starters", data=data))

    async def measure(self, request: Request) -> Response:
        return Answer(await self._parts.call("measure", **await _read_replacement(request)))

    async def laws(self, request: Request) -> Response:
        keys = {"run": str, "kind": str, "plugin": str, "name": str}
        values = read_fields(await _read_body(request), **keys)
        return Answer(await self._parts.call("laws", **dict(zip(keys, values, strict=True))))

    async def model(self, request: Request) -> Response:
        (model,) = read_fields(await _read_body(request), model=str)
        return Answer(await self._models.call("describe", model=model))

    async def run(self, request: Request) -> Response:
        body = await read_bytes(request, MAX_UPLOAD_BYTES)
        return Answer(await self._models.call("run", body=body))

    async def attend(self, request: Request) -> Response:
        body = await read_bytes(request, MAX_UPLOAD_BYTES)
        return Answer({"view": self._views.add(await self._models.call("attend", body=body))})


def create_application(index: Index | None) -> Starlette:
    """Return the application, without the guard."""
    requests = Requests(index)
    handlers: Any = {ZooError: _report_error, ClientDisconnect: _ignore_disconnect}
    return Starlette(
        routes=requests.routes(), lifespan=requests.lifespan, exception_handlers=handlers
    )


def _in_background(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start work whose error is raised only where its result is used."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def _report_error(request: Request, error: Exception) -> Response:
    """Return the error as an answer; browsers log the status of other responses as an error."""
    return Answer({"error": str(error)})


async def _ignore_disconnect(request: Request, error: Exception) -> Response:
    """Return a response that nobody receives: the client has left while it sent its request."""
    return Response(status_code=400)


async def _read_body(request: Request) -> dict[str, Any]:
    content = await read_bytes(request)
    if len(content) < _LONG_BYTES:
        return load_json(content)
    return await asyncio.to_thread(load_json, content)


async def _read_replacement(request: Request) -> dict[str, Any]:
    """Return a spec, a path in it, and values to try there."""
    body = await _read_body(request)
    data, values = read_fields(body, data=dict, values=list)
    if not values:
        raise ZooError("'values' should not be empty")
    return {"data": data, "path": read_path(body), "values": values}
