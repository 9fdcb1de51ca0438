"""A Grafana that keeps dashboards and folders in memory and speaks the part of its HTTP API that a push uses.

Paths, statuses and shapes are those of Grafana's documentation (HTTP API: dashboard, dashboard versions, folder, data
source, other) and, where that is silent, of its backend (pkg/api/dashboard.go, pkg/services/dashboards/errors.go).
"""

from __future__ import annotations

import copy
import json
import re
import ssl
from base64 import b64decode
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from agent_otel.testing.servers.scripted import Serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]
Reply = tuple[int, Any]

TOKEN = "glsa_dGhpcyBpcyBub3QgYSByZWFsIHRva2Vu"  # noqa: S105 - known to these tests only
USER, PASSWORD = "admin", "pa:ss wörd"
ADMIN, VIEWER = "Admin", "Viewer"


@dataclass
class Stored:
    """A dashboard with all that was ever saved under its uid."""

    id: int
    folder: str
    models: list[Json] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    provisioned: str = ""

    @property
    def version(self) -> int:
        """Counted from 1."""
        return len(self.models)

    @property
    def model(self) -> Json:
        """As it is now."""
        return self.models[-1]


class Grafana(Serving):
    """The server, on a free port of 127.0.0.1 while the ``with`` block lasts.

    ``writes`` holds what was asked of it that changes something, ``asked`` every request line. ``role`` is that of
    its one token and its one user. ``base`` is the path that it is served below.
    """

    def __init__(
        self, version: str = "11.6.0", *, base: str = "", hide_version: bool = False, certificate: Path | None = None
    ) -> None:
        self.version, self.base, self.hide_version = version, base, hide_version
        self.role = ADMIN
        self.dashboards: dict[str, Stored] = {}
        self.folders: list[Json] = []
        self.nested: list[Json] = []
        self.asked: list[str] = []
        self.writes: list[Json] = []
        self._scheme = "https" if certificate else "http"
        super().__init__(lambda: _server(self, certificate))

    @property
    def url(self) -> str:
        """The address that a person gives."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}{self.base}"

    def edit(self, uid: str, change: Callable[[Json], Any]) -> None:
        """Change a dashboard as a person does in the browser: a new version, without a message."""
        stored = self.dashboards[uid]
        model = copy.deepcopy(stored.model)
        change(model)
        stored.models.append(model)
        stored.messages.append("")

    def answer(self, method: str, target: str, body: bytes, authorization: str) -> Reply:
        """What is sent for a request: a status and JSON."""
        parts = urlsplit(target)
        path = parts.path.removeprefix(self.base)
        if path == "/api/health":
            hidden = {} if self.hide_version else {"version": self.version}
            return 200, {"commit": "5b85c4c2fcf5d32d4f68aaef345c53096359b2f1", "database": "ok", **hidden}
        if not self._knows(authorization):
            return 401, {"message": "Invalid API key" if authorization.startswith("Bearer") else "Unauthorized"}
        if method == "POST" and self.role == VIEWER:
            needed = "dashboards:create" if path.startswith("/api/dashboards") else "folders:create"
            message = f"You'll need additional permissions to perform this action. Permissions needed: {needed}"
            return 403, {"accessErrorId": "ACE4711", "message": message, "title": "Access denied"}
        for verb, pattern, route in _ROUTES:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                arguments = [unquote(group) for group in found.groups()]
                given = json.loads(body) if method == "POST" else parse_qs(parts.query)
                if method == "POST":
                    self.writes.append({"path": path, **given})
                reply: Reply = route(self, given, *arguments)
                return reply
        return 404, {"message": "Not found"}

    def _knows(self, authorization: str) -> bool:
        kind, _, value = authorization.partition(" ")
        if kind == "Basic":
            return b64decode(value).decode() == f"{USER}:{PASSWORD}"
        return kind == "Bearer" and value == TOKEN

    def search(self, _: Json) -> Reply:
        """GET /api/search."""
        return 200, []

    def settings(self, _: Json) -> Reply:
        """GET /api/frontend/settings."""
        return 200, {"appSubUrl": self.base, "buildInfo": {"version": self.version, "edition": "Open Source"}}

    def save(self, command: Json) -> Reply:
        """POST /api/dashboards/db."""
        model, overwrite = dict(command["dashboard"]), bool(command.get("overwrite"))
        if not str(model.get("title") or "").strip():
            return 400, {"status": "empty-name", "message": "Dashboard title cannot be empty"}
        uid = model.get("uid") or f"made-{len(self.dashboards)}"
        stored = self.dashboards.get(uid)
        if model.get("id") and (stored is None or stored.id != model["id"]):
            return 404, {"status": "not-found", "message": "Dashboard not found"}
        if command.get("folderUid") and self._title(command["folderUid"]) == "":
            return 400, {"message": "folder not found"}
        if stored is not None:
            refusal = self._refusal(stored, int(model.get("version") or 0), overwrite=overwrite)
            if refusal:
                return refusal
        else:
            stored = self.dashboards[uid] = Stored(id=len(self.dashboards) + 1, folder="")
        stored.folder = command.get("folderUid") or ""
        stored.models.append({key: value for key, value in model.items() if key not in {"id", "version"}})
        stored.messages.append(command.get("message") or "")
        return 200, {
            "id": stored.id, "uid": uid, "slug": "slug", "status": "success", "version": stored.version,
            "url": self._address(uid), "folderUid": stored.folder,
        }  # fmt: skip

    @staticmethod
    def _refusal(stored: Stored, version: int, *, overwrite: bool) -> Reply | None:
        if stored.provisioned:
            return 400, {"message": "Cannot save provisioned dashboard"}
        if version != stored.version and not overwrite:
            return 412, {"status": "version-mismatch", "message": "The dashboard has been changed by someone else"}
        return None

    def list_folders(self, query: Json) -> Reply:
        """GET /api/folders: those at the top."""
        limit, page = int(query.get("limit", ["1000"])[0]), int(query.get("page", ["1"])[0])
        return 200, self.folders[(page - 1) * limit : page * limit]

    def get_folder(self, _: Json, uid: str) -> Reply:
        """GET /api/folders/:uid, wherever it is."""
        for folder in (*self.folders, *self.nested):
            if folder["uid"] == uid:
                return 200, {**folder, "url": f"/dashboards/f/{uid}/slug", "version": 1}
        return 404, {"status": "not-found", "message": "folder not found"}

    def make_folder(self, command: Json) -> Reply:
        """POST /api/folders."""
        if not command.get("title"):
            return 400, {"message": "folder title cannot be empty"}
        uid = command.get("uid") or f"f{len(self.folders) + 1}"
        if any(folder["uid"] == uid for folder in self.folders):
            return 409, {"message": "a folder/dashboard with the same uid already exists"}
        folder = {"id": len(self.folders) + 1, "uid": uid, "title": command["title"]}
        self.folders.append(folder)
        return 200, {**folder, "url": f"/dashboards/f/{uid}/slug", "version": 1}

    def _title(self, uid: str) -> str:
        titles = {folder["uid"]: str(folder["title"]) for folder in (*self.folders, *self.nested)}
        return titles.get(uid, "" if uid else "General")

    def _address(self, uid: str) -> str:
        return f"{self.base}/d/{uid}/slug"


_ROUTES: list[tuple[str, str, Callable[..., Reply]]] = [
    ("GET", "/api/search", Grafana.search),
    ("GET", "/api/frontend/settings", Grafana.settings),
    ("POST", "/api/dashboards/db", Grafana.save),
    ("GET", "/api/folders", Grafana.list_folders),
    ("GET", "/api/folders/([^/]+)", Grafana.get_folder),
    ("POST", "/api/folders", Grafana.make_folder),
]


def _server(grafana: Grafana, certificate: Path | None) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body are two writes; else each answer waits 40 ms

        def do_GET(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def _reply(self) -> None:
            grafana.asked.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            inside = self.path.startswith(f"{grafana.base}/")
            authorization = self.headers.get("Authorization", "")
            status, answer = (
                grafana.answer(self.command, self.path, body, authorization) if inside else (404, "404 page not found")
            )
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    return server
