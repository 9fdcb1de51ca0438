"""A stand-in for Azure Cosmos DB, whose emulator is a container: a service on loopback that speaks its REST protocol.

It keeps items in memory and knows the requests of LangGraph's saver: the account, databases, containers, the one range
of partition keys, items that are created, upserted and read, and queries by equalities of fields. It has Cosmos DB's
limit of an item, and refuses a larger one as the service does. The real SDK connects to it as to any account.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
#: An item as it came: its fields, and the bytes of the body.
Received = tuple[Json, int]

#: The key of an account is in Base64; the stand-in lets any in.
KEY = "c2NyaXB0ZWQ="

_RANGE = {"id": "0", "minInclusive": "", "maxExclusive": "FF", "_rid": "range", "parents": []}
_CREATED, _OK, _NOT_FOUND, _CONFLICT, _TOO_LARGE = 201, 200, 404, 409, 413


class _Account:
    def __init__(self, max_item_bytes: int) -> None:
        self.max_item_bytes = max_item_bytes
        self.url = ""
        self.received: list[Received] = []
        #: Path -> a database or a container.
        self.made: dict[str, Json] = {}
        #: Path of a container -> id and partition key -> item.
        self.items: dict[str, dict[tuple[str, str], Json]] = {}
        self.lock = threading.Lock()

    def read(self, path: str) -> tuple[int, Json]:
        """Answer a GET."""
        if not path:
            place = [{"name": "here", "databaseAccountEndpoint": self.url}]
            policy = {"defaultConsistencyLevel": "Session"}
            return _OK, {"writableLocations": place, "readableLocations": place, "userConsistencyPolicy": policy}
        if path.endswith("/pkranges"):
            return _OK, {"_rid": "pkranges", "PartitionKeyRanges": [_RANGE], "_count": 1}
        found = self.made.get(path)
        return (_NOT_FOUND, _error("NotFound", path)) if found is None else (_OK, found)

    def make(self, path: str, given: Json) -> tuple[int, Json]:
        """Make a database or a container."""
        path = f"{path}/{given['id']}"
        self.made[path] = {**given, "_rid": f"rid{len(self.made)}", "_self": f"{path}/", "_etag": '"1"', "_ts": 1}
        return _CREATED, self.made[path]

    def write(self, path: str, item: Json, size: int, *, is_upsert: bool) -> tuple[int, Json]:
        """Create or replace an item."""
        if size > self.max_item_bytes:
            return _TOO_LARGE, _error("RequestEntityTooLarge", '{"Errors":["Request size is too large"]}')
        items, key = self.items.setdefault(path, {}), (item["id"], item["partition_key"])
        if key in items and not is_upsert:
            return _CONFLICT, _error("Conflict", '{"Errors":["Resource with specified id already exists."]}')
        self.received.append((item, size))
        items[key] = {**item, "_rid": f"rid{len(self.received)}", "_etag": '"1"', "_ts": 1}
        return _CREATED, items[key]

    def query(self, path: str, given: Json) -> tuple[int, Json]:
        """Return the items whose fields equal the parameters."""
        values = {each["name"]: each["value"] for each in given["parameters"]}
        wanted = [(field, values[name]) for field, name in re.findall(r"c\.(\w+)=(@\w+)", given["query"])]
        items = self.items.get(path, {}).values()
        found = [item for item in items if all(item[field] == value for field, value in wanted)]
        return _OK, {"_rid": "docs", "Documents": found, "_count": len(found)}


@contextlib.contextmanager
def server(*, max_item_bytes: int = 2 * 1024 * 1024 - 1) -> Iterator[tuple[str, list[Received]]]:
    """Run one on a free port; yield its URL and the items that have come."""

    class Request(_Request):
        account = _Account(max_item_bytes)

    with ThreadingHTTPServer(("127.0.0.1", 0), Request) as listening:
        listening.daemon_threads = True
        Request.account.url = f"http://127.0.0.1:{listening.server_address[1]}/"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        try:
            yield Request.account.url, Request.account.received
        finally:
            listening.shutdown()


class _Request(BaseHTTPRequestHandler):
    account: _Account
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a request for one thing."""
        with self.account.lock:
            self._answer(*self.account.read(self.path.strip("/")))

    def do_POST(self) -> None:
        """Answer a request that makes or asks for something."""
        body = self.rfile.read(int(self.headers["content-length"]))
        path, given = self.path.strip("/"), json.loads(body)
        with self.account.lock:
            if not path.endswith("/docs"):
                answer = self.account.make(path, given)
            elif "query" in self.headers.get("content-type", ""):
                answer = self.account.query(path, given)
            else:
                is_upsert = self.headers.get("x-ms-documentdb-is-upsert", "").lower() == "true"
                answer = self.account.write(path, given, len(body), is_upsert=is_upsert)
        self._answer(*answer)

    def _answer(self, status: int, said: Json) -> None:
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _error(code: str, message: str) -> Json:
    return {"code": code, "message": f"Message: {message}\r\nActivityId: 0, Request URI: /, SDK: scripted"}
