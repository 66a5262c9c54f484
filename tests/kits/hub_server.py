"""A local test hub for huggingface_hub, with two ports: the hub and its CDN.

Standard library only. Every request is recorded; any response can be changed by a fault.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from hub_store import Entry, Repo, blob_id

TOKEN = "hf_TheTokenOfTheTestHub"


@dataclass(frozen=True)
class Request:
    port: str
    method: str
    path: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Response:
    """A response. With `max_bytes`, the body is cut after that many bytes and the connection ends.

    With `drip`, headers or body are sent byte by byte, this many seconds apart.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    max_bytes: int | None = None
    end: str = "reset"
    slow: float = 0.0
    drip: tuple[str, float] | None = None

    @classmethod
    def of(cls, data: Any, status: int = 200, **headers: str) -> Response:
        return cls(
            status, json.dumps(data).encode(), {"Content-Type": "application/json"} | headers
        )

    @classmethod
    def error(cls, status: int, code: str = "", message: str = "no") -> Response:
        return cls.of({"error": message}, status, **{"X-Error-Code": code} if code else {})


@dataclass
class Fault:
    port: str
    pattern: str
    corrupt: Callable[[Response], Response]
    times: int


class Hub:
    """The repositories, the two servers and the recorded requests."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.chunk: int | None = None
        self.page = 1000
        self.request_lock = threading.Lock()
        self.running = True
        self.servers = {port: _Server(self, port) for port in ("hub", "cdn")}
        self.url = self.servers["hub"].url
        self.cdn = self.servers["cdn"].url

    def __enter__(self) -> Hub:
        for server in self.servers.values():
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.running = False
        for server in self.servers.values():
            server.shutdown()
            for connection in list(server.open):  # clients keep connections open
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            server.server_close()

    def repo(self, name: str, **options: bool) -> Repo:
        return self.repos.setdefault(name, Repo(name, **options))

    def fault(
        self,
        pattern: str,
        corrupt: Callable[[Response], Response],
        *,
        port: str = "hub",
        times: int = 99,
    ) -> None:
        """Change the next responses to paths that match the pattern."""
        self.faults.append(Fault(port, pattern, corrupt, times))

    def requests_to(self, pattern: str = "", port: str | None = None) -> list[Request]:
        return [r for r in self.requests if port in (None, r.port) and re.search(pattern, r.path)]

    def answer(self, request: Request, body: bytes) -> Response:
        with self.request_lock:
            self.requests.append(request)
            table = _HUB if request.port == "hub" else _CDN
            path, _, query = request.path.partition("?")
            for method, pattern, handle in table:
                found = re.fullmatch(pattern, path)
                if found and method in (request.method, "*"):
                    words = {k: unquote(v) for k, v in found.groupdict().items() if v is not None}
                    answer = handle(self, request, body, parse_qs(query), **words)
                    break
            else:
                answer = Response.error(404)
            for fault in self.faults:
                hit = fault.port == request.port and re.search(fault.pattern, request.path)
                if hit and fault.times > 0:
                    fault.times -= 1
                    answer = fault.corrupt(answer)
            return answer

    def get_repo(self, request: Request, name: str, *, write: bool = False) -> Repo | Response:
        """Return the repository, or an error if the request has no access."""
        authorization = request.headers.get("authorization")
        if authorization is not None and authorization != f"Bearer {TOKEN}":
            return Response.error(401, message="Invalid credentials in Authorization header")
        repo = self.repos.get(name)
        if repo is None or (repo.private and authorization is None):
            return Response.error(404 if authorization else 401, "RepoNotFound")
        if write and authorization is None:
            return Response.error(401)
        return repo


def _create(hub: Hub, request: Request, body: bytes, query: Any) -> Response:
    data = json.loads(body)
    name = f"{data.get('organization') or 'me'}/{data['name']}"
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return Response.error(401)
    exists = name in hub.repos
    private = data.get("visibility") == "private" or bool(data.get("private"))
    hub.repos.setdefault(name, Repo(name, private=private))
    return Response.of({"url": f"{hub.url}/{name}", "name": name}, 409 if exists else 200)


def _validate(hub: Hub, request: Request, body: bytes, query: Any) -> Response:
    return Response.of({"errors": [], "warnings": []})


def _preupload(
    hub: Hub, request: Request, body: bytes, query: Any, repo: str, revision: str
) -> Response:
    found = hub.get_repo(request, repo, write=True)
    if isinstance(found, Response):
        return found
    known = found.commits.get(found.find(revision) or "", {})
    rows = []
    for file in json.loads(body)["files"]:
        large = file["path"].endswith(".safetensors") or file["size"] > 10_000_000
        old = known.get(file["path"])
        rows.append(
            {
                "path": file["path"],
                "uploadMode": "lfs" if large else "regular",
                "shouldIgnore": False,
                "oid": old.row(file["path"])["oid"] if old else None,
            }
        )
    return Response.of({"files": rows})


def _batch(hub: Hub, request: Request, body: bytes, query: Any, repo: str) -> Response:
    if isinstance(found := hub.get_repo(request, repo, write=True), Response):
        return found
    rows = []
    for item in json.loads(body)["objects"]:
        oid, size = item["oid"], item["size"]
        row: dict[str, Any] = {"oid": oid, "size": size}
        if oid not in hub.objects:
            upload: dict[str, Any] = {"href": f"{hub.cdn}/upload/{oid}"}
            if hub.chunk:
                count = -(-size // hub.chunk)
                parts = {str(n): f"{hub.cdn}/upload/{oid}?part={n}" for n in range(1, count + 1)}
                upload = {
                    "href": f"{hub.url}/complete/{oid}",
                    "header": {"chunk_size": str(hub.chunk), **parts},
                }
            row["actions"] = {"upload": upload, "verify": {"href": f"{hub.url}/verify/{oid}"}}
        rows.append(row)
    return Response.of({"transfer": "multipart" if hub.chunk else "basic", "objects": rows})


def _upload(hub: Hub, request: Request, body: bytes, query: Any, oid: str) -> Response:
    if "part" in query:
        hub.parts.setdefault(oid, {})[int(query["part"][0])] = body
        return Response(headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
    if hashlib.sha256(body).hexdigest() != oid:
        return Response.error(400)
    hub.objects[oid] = body
    return Response()


def _complete(hub: Hub, request: Request, body: bytes, query: Any, oid: str) -> Response:
    parts = hub.parts.pop(oid)
    content = b"".join(parts[part["partNumber"]] for part in json.loads(body)["parts"])
    if hashlib.sha256(content).hexdigest() != oid:
        return Response.error(400)
    hub.objects[oid] = content
    return Response.of({})


def _verify(hub: Hub, request: Request, body: bytes, query: Any, oid: str) -> Response:
    return Response.of({}) if oid in hub.objects else Response.error(404)


def _commit(
    hub: Hub, request: Request, body: bytes, query: Any, repo: str, revision: str
) -> Response:
    found = hub.get_repo(request, repo, write=True)
    if isinstance(found, Response):
        return found
    parent = found.branches.get(revision)
    if parent is None:
        return Response.error(404, "RevisionNotFound")
    files = dict(found.commits[parent])
    for line in body.splitlines():
        row = json.loads(line)
        value = row["value"]
        if row["key"] == "header" and value.get("parentCommit") not in (None, parent):
            return Response.error(412)
        if row["key"] == "file":
            files[value["path"]] = Entry(base64.b64decode(value["content"]), False)
        elif row["key"] == "lfsFile":
            files[value["path"]] = Entry(hub.objects[value["oid"]], True)
        elif row["key"] == "deletedFile":
            files.pop(value["path"])
    sha = found.commit(revision, files)
    return Response.of({"commitOid": sha, "commitUrl": f"{hub.url}/{repo}/commit/{sha}"})


def _branch(
    hub: Hub, request: Request, body: bytes, query: Any, repo: str, revision: str
) -> Response:
    found = hub.get_repo(request, repo, write=True)
    if isinstance(found, Response):
        return found
    if revision in found.branches:
        return Response.error(409)
    found.branches[revision] = found.branches["main"]
    return Response.of({})


def _info(
    hub: Hub, request: Request, body: bytes, query: Any, repo: str, revision: str = "main"
) -> Response:
    found = hub.get_repo(request, repo)
    if isinstance(found, Response):
        return found
    sha = found.find(revision)
    if sha is None:
        return Response.error(404, "RevisionNotFound")
    siblings = []
    for path, entry in found.commits[sha].items():
        row: dict[str, Any] = {"rfilename": path}
        if "blobs" in query:
            listed = entry.row(path)
            row |= {"size": listed["size"], "blobId": listed["oid"]}
            if entry.large:
                size = {"size": len(entry.body), "pointerSize": len(entry.pointer)}
                row["lfs"] = {"sha256": entry.sha256, **size}
        siblings.append(row)
    about = {"id": repo, "modelId": repo, "sha": sha, "siblings": siblings}
    return Response.of({**about, "private": found.private, "gated": found.gated, "tags": []})


def _tree(
    hub: Hub, request: Request, body: bytes, query: Any, repo: str, revision: str, under: str = ""
) -> Response:
    found = hub.get_repo(request, repo)
    if isinstance(found, Response):
        return found
    sha = found.find(revision)
    if sha is None:
        return Response.error(404, "RevisionNotFound")
    rows: list[dict[str, Any]] = []
    folders: set[str] = set()
    for path, entry in found.commits[sha].items():
        if under and not path.startswith(f"{under}/"):
            continue
        folder = path.rpartition("/")[0]
        if folder and folder not in folders and folder != under:
            folders.add(folder)
            oid = blob_id(folder.encode())
            rows.append({"type": "directory", "path": folder, "size": 0, "oid": oid})
        if folder in ("", under) or query.get("recursive", [""])[0].lower() == "true":
            rows.append(entry.row(path))
    start = int(query.get("cursor", ["0"])[0])
    headers = {}
    if start + hub.page < len(rows):
        base = request.path.partition("?")[0]
        following = f"{hub.url}{base}?recursive=true&cursor={start + hub.page}"
        headers["Link"] = f'<{following}>; rel="next"'
    return Response.of(rows[start : start + hub.page], **headers)


def _resolve(
    hub: Hub, request: Request, body: bytes, query: Any, repo: str, revision: str, file: str
) -> Response:
    found = hub.get_repo(request, repo)
    if isinstance(found, Response):
        return found
    known = "authorization" in request.headers
    if found.gated and not (found.accepted and known):
        return Response.error(403 if known else 401, "GatedRepo")
    sha = found.find(revision)
    if sha is None:
        return Response.error(404, "RevisionNotFound")
    entry = found.commits[sha].get(file)
    headers = {"X-Repo-Commit": sha}
    if entry is None:
        return replace(
            Response.error(404, "EntryNotFound"),
            headers={**headers, "X-Error-Code": "EntryNotFound"},
        )
    if not entry.large:
        oid = entry.row(file)["oid"]
        return _ranged(request, entry.body, {**headers, "ETag": f'"{oid}"'})
    headers |= {"X-Linked-Etag": f'"{entry.sha256}"', "X-Linked-Size": str(len(entry.body))}
    hub.objects[entry.sha256] = entry.body
    return Response(302, b"", {**headers, "Location": f"{hub.cdn}/objects/{entry.sha256}?signed=1"})


def _object(hub: Hub, request: Request, body: bytes, query: Any, oid: str) -> Response:
    return _ranged(request, hub.objects[oid], {"ETag": '"of-the-cdn"'})


def _ranged(request: Request, body: bytes, headers: dict[str, str]) -> Response:
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
    if not match:
        return Response(200, body, {**headers, "Accept-Ranges": "bytes"})
    start, end = int(match[1]), int(match[2] or len(body) - 1)
    if start >= len(body):
        return Response.error(416)
    content_range = {"Content-Range": f"bytes {start}-{end}/{len(body)}"}
    return Response(206, body[start : end + 1], {**headers, **content_range})


def _harnesses(hub: Hub, request: Request, body: bytes, query: Any) -> Response:
    return Response.of({})


_REPO = r"(?P<repo>[^/]+/[^/]+)"
_HUB: list[tuple[str, str, Callable[..., Response]]] = [
    ("POST", "/api/repos/create", _create),
    ("POST", "/api/validate-yaml", _validate),
    ("GET", "/api/agent-harnesses", _harnesses),
    ("POST", rf"/api/models/{_REPO}/preupload/(?P<revision>[^/]+)", _preupload),
    ("POST", rf"/api/models/{_REPO}/commit/(?P<revision>[^/]+)", _commit),
    ("POST", rf"/api/models/{_REPO}/branch/(?P<revision>[^/]+)", _branch),
    ("GET", rf"/api/models/{_REPO}/revision/(?P<revision>[^/]+)", _info),
    ("GET", rf"/api/models/{_REPO}/tree/(?P<revision>[^/]+)(?:/(?P<under>.+))?", _tree),
    ("GET", rf"/api/models/{_REPO}", _info),
    ("POST", r"/(?P<repo>[^/]+/[^/]+)\.git/info/lfs/objects/batch", _batch),
    ("POST", r"/complete/(?P<oid>[0-9a-f]{64})", _complete),
    ("POST", r"/verify/(?P<oid>[0-9a-f]{64})", _verify),
    ("*", rf"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<file>.+)", _resolve),
]
_CDN: list[tuple[str, str, Callable[..., Response]]] = [
    ("PUT", r"/upload/(?P<oid>[0-9a-f]{64})", _upload),
    ("*", r"/objects/(?P<oid>[0-9a-f]{64})", _object),
]


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # joined at the end, so that no socket stays open
    request_queue_size = 64

    def __init__(self, hub: Hub, port: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub, self.port = hub, port
        self.open: set[socket.socket] = set()
        # Two host names, because older clients compare host names without ports.
        name = "127.0.0.1" if port == "hub" else "localhost"
        self.url = f"http://{name}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections of killed clients."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        body = self._body()
        headers = {key.lower(): value for key, value in self.headers.items()}
        request = Request(self.server.port, self.command, self.path, headers)
        self._send(self.server.hub.answer(request, body))

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, answer: Response) -> None:
        part, seconds = answer.drip or ("", 0.0)
        self.send_response(answer.status)
        for key, value in answer.headers.items():
            self.send_header(key, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.body)))
        if part == "headers":
            head = b"".join(self._headers_buffer)
            self._headers_buffer.clear()
            self._send_slowly(head, seconds, size=1)
        self.end_headers()
        if self.command == "HEAD":
            return
        body = answer.body if answer.max_bytes is None else answer.body[: answer.max_bytes]
        if part == "body":
            self._send_slowly(body, seconds, size=1)
        elif answer.slow:
            self._send_slowly(body, answer.slow)
        else:
            self.wfile.write(body)
        if answer.max_bytes is None:
            return
        self.wfile.flush()
        if answer.end == "stall":
            while self.server.hub.running:
                time.sleep(0.02)
        if answer.end == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            time.sleep(0.05)  # let the sent bytes arrive before the reset
        self.close_connection = True
        self.connection.close()

    def _send_slowly(self, data: bytes, seconds: float, size: int = 4096) -> None:
        for start in range(0, len(data), size):
            if not self.server.hub.running:
                return
            self.wfile.write(data[start : start + size])
            time.sleep(seconds)

    def log_message(self, format: str, *args: object) -> None:
        pass


def path_of(url: str) -> str:
    return urlsplit(url).path
