"""The pages and requests of ``zoo ui``."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from zoo.cli.index import Index, load_index
from zoo.errors import SpecError, ZooError
from zoo_ui.catalogue_data import describe_component, describe_registry, describe_specs
from zoo_ui.checks import NewestChecks, Superseded
from zoo_ui.views import ViewStore
from zoo_ui.worker_client import WorkerClient

STATIC = Path(__file__).parent / "static"
_MAX_BODY = 64_000_000
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
        return JSONResponse(await asyncio.to_thread(describe_registry, await self._index()))

    async def specs(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(describe_specs, await self._index()))

    async def component(self, request: Request) -> Response:
        kind, plugin, name = (request.query_params.get(k, "") for k in ("kind", "plugin", "name"))
        for component in (await self._index()).components():
            if (component.kind, component.plugin, component.name) == (kind, plugin, name):
                return JSONResponse(describe_component(component))
        raise ZooError(f"no {kind} named '{plugin}:{name}' is installed")

    async def schema(self, request: Request) -> Response:
        if self._schema is None or (self._schema.done() and self._schema.exception()):
            self._schema = _in_background(self._checker.call("schema"))
        schema = await asyncio.shield(self._schema)
        if self._parts_loaded is None:
            self._parts_loaded = _in_background(self._parts.call("load"))
        return JSONResponse(schema)

    async def spec(self, request: Request) -> Response:
        body = await _read_body(request)
        if "recipe" in body:
            return JSONResponse(await self._checker.call("recipe", name=str(body["recipe"])))
        body = {"source": "", **body}
        return JSONResponse(await self._checker.call("open", source=str(body["source"])))

    async def parse(self, request: Request) -> Response:
        from zoo.spec.document import read_text  # not needed to show the page

        body = await _read_body(request, "text")
        try:
            document = await asyncio.to_thread(read_text, str(body["text"]), "YAML")
            problems = document.problems
        except SpecError as error:
            problems = error.problems
        if problems:
            return JSONResponse({"ok": False, "errors": [each.as_json() for each in problems]})
        return JSONResponse({"ok": True, "data": document.data})

    async def check(self, request: Request) -> Response:
        body = await _read_body(request, "page", "sequence", "data")
        if not isinstance(body["data"], dict) or not isinstance(body["sequence"], int):
            raise ZooError("'data' should be a mapping, and 'sequence' an integer")
        try:
            report = await self._checks.check(str(body["page"]), body["sequence"], body["data"])
        except Superseded:
            return JSONResponse({"superseded": True})
        return JSONResponse(report)

    async def part(self, request: Request) -> Response:
        body = await _read_body(request, "data", "path", "values")
        arguments = {key: body[key] for key in ("data", "path", "values")}
        return JSONResponse(await self._parts.call("candidate", **arguments))

    async def starters(self, request: Request) -> Response:
        body = await _read_body(request, "data")
        return JSONResponse(await self._parts.call("starters", data=body["data"]))

    async def measure(self, request: Request) -> Response:
        body = await _read_body(request, "data", "path", "values")
        arguments = {key: body[key] for key in ("data", "path", "values")}
        return JSONResponse(await self._parts.call("measure", **arguments))

    async def laws(self, request: Request) -> Response:
        keys = ("run", "kind", "plugin", "name")
        body = await _read_body(request, *keys)
        arguments = {key: str(body[key]) for key in keys}
        return JSONResponse(await self._parts.call("laws", **arguments))

    async def model(self, request: Request) -> Response:
        body = await _read_body(request, "model")
        return JSONResponse(await self._models.call("describe", model=str(body["model"])))

    async def run(self, request: Request) -> Response:
        body = await _read_body(request, "model", "input")
        return JSONResponse(await self._models.call("run", **_model_arguments(body)))

    async def attend(self, request: Request) -> Response:
        body = await _read_body(request, "model", "input")
        text = await self._models.call("attend", **_model_arguments(body))
        return JSONResponse({"view": self._views.add(text)})


def create_application(index: Index | None) -> Starlette:
    """Return the application, without the guard."""
    requests = Requests(index)
    handlers: Any = {ZooError: _report_error}
    return Starlette(
        routes=requests.routes(), lifespan=requests.lifespan, exception_handlers=handlers
    )


def _in_background(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start work whose error is raised only where its result is used."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


def _model_arguments(body: dict[str, Any]) -> dict[str, Any]:
    return {"model": str(body["model"]), "value": body["input"]}


async def _report_error(request: Request, error: Exception) -> Response:
    """Return the error as an answer; browsers log the status of other responses as an error."""
    return JSONResponse({"error": str(error)})


async def _read_body(request: Request, *keys: str) -> dict[str, Any]:
    """Return the JSON object in the body of a request."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > _MAX_BODY:
            raise ZooError(f"the request has more than {_MAX_BODY:,} bytes, which is the limit")
    try:
        body = json.loads(bytes(content))
    except (ValueError, RecursionError):
        raise ZooError("the request is not valid JSON") from None
    missing = [key for key in keys if not isinstance(body, dict) or key not in body]
    if missing:
        raise ZooError(f"the request has no key '{missing[0]}'")
    found: dict[str, Any] = body
    return found
