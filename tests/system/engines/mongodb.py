"""A stand-in for MongoDB, which no package brings: a server on loopback that speaks MongoDB's wire protocol.

It keeps documents in memory and knows the commands that the tests' sessions and savers send, with the equalities, the
order and the upserts that they use. It has MongoDB's limit of a document, which pymongo is told of as a real server
tells it. The real pymongo connects to it as to any server. ``tests/extra`` has FerretDB in its place, a server that Go
builds.
"""

# mypy: disable-error-code="import-not-found,import-untyped,misc,unused-ignore"
# pymongo is not installed where types are checked.

from __future__ import annotations

import contextlib
import itertools
import operator
import socketserver
import struct
import threading
from typing import TYPE_CHECKING, Any

import bson
import pymongo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = dict[str, Any]
#: Collection -> its documents, as they came.
Stored = dict[str, list[Json]]

_HEADER = struct.Struct("<iiii")
_OP_REPLY, _OP_QUERY, _OP_MSG = 1, 2004, 2013
_HELLO = {
    "ismaster": True,
    "isWritablePrimary": True,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
    "minWireVersion": 0,
    "maxWireVersion": 21,
    "readOnly": False,
}


class Database:
    """The documents of a database of a server that others have made, read whenever they are asked for."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name

    def get(self, collection: str, _: Any = ()) -> list[Json]:
        """Return the documents of a collection."""
        with pymongo.MongoClient(self._url) as client:
            return list(client[self._name][collection].find())


@contextlib.contextmanager
def found(url: str | None, database: str) -> Iterator[tuple[str, Stored | Database]]:
    """Yield the server of this URL with what it has stored in a database; without a URL a stand-in of its own."""
    if url is None:
        with server() as started:
            yield started
    else:
        yield url, Database(url, database)


@contextlib.contextmanager
def server(*, max_document_bytes: int = 16 * 1024 * 1024) -> Iterator[tuple[str, Stored]]:
    """Run one on a free port; yield its URL and what is stored."""
    stored: Stored = {}

    class Connection(_Connection):
        commands = _Commands(stored, max_document_bytes)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as listening:
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        try:
            yield f"mongodb://127.0.0.1:{listening.server_address[1]}/?directConnection=true", stored
        finally:
            listening.shutdown()


class _Connection(socketserver.StreamRequestHandler):
    commands: _Commands

    def handle(self) -> None:
        """Answer messages until the client has gone."""
        while len(header := self.rfile.read(_HEADER.size)) == _HEADER.size:
            size, request, _, operation = _HEADER.unpack(header)
            body = self.rfile.read(size - _HEADER.size)
            command = _of_query(body) if operation == _OP_QUERY else _of_message(body)
            answer = bson.encode({**self.commands.run(command), "ok": 1.0})
            if operation == _OP_QUERY:
                kind, data = _OP_REPLY, struct.pack("<iqii", 8, 0, 0, 1) + answer
            else:
                kind, data = _OP_MSG, struct.pack("<IB", 0, 0) + answer
            self.wfile.write(_HEADER.pack(_HEADER.size + len(data), 0, request, kind) + data)


def _of_query(body: bytes) -> Json:
    """Return the command of the first message of a connection, which has the older form."""
    command: Json = bson.decode_all(body[body.index(b"\0", 4) + 9 :])[0]
    return command


def _of_message(body: bytes) -> Json:
    """Return the command of a message, with the documents that stand in sections of their own."""
    command: Json = {}
    place = 4
    while place < len(body):
        kind, (size,) = body[place], struct.unpack_from("<i", body, place + 1)
        section = body[place + 1 : place + 1 + size]
        if kind == 0:
            command = bson.decode(section)
        else:
            name, _, documents = section[4:].partition(b"\0")
            command[name.decode()] = bson.decode_all(documents)
        place += 1 + size
    return command


class _Commands:
    def __init__(self, stored: Stored, max_document_bytes: int) -> None:
        self._max_document_bytes = max_document_bytes
        self._hello = {**_HELLO, "maxBsonObjectSize": max_document_bytes}
        self._stored = stored
        self._lock = threading.Lock()

    def run(self, command: Json) -> Json:
        """Return a command's answer; its first key is its name."""
        known: dict[str, Callable[[Json, list[Json]], Json]] = {
            "insert": self._insert,
            "find": self._find,
            "update": self._update,
            "findAndModify": self._modify,
        }
        name = next(iter(command))
        if name not in known:
            return self._hello if name in {"hello", "ismaster"} else _cursor([])
        with self._lock:
            return known[name](command, self._stored.setdefault(command[name], []))

    def _insert(self, command: Json, documents: list[Json]) -> Json:
        for index, document in enumerate(command["documents"]):
            size = len(bson.encode(document))
            if size > self._max_document_bytes:
                told = f"object to insert too large. size in bytes: {size}, max size: {self._max_document_bytes}"
                return {"n": index, "writeErrors": [{"index": index, "code": 2, "errmsg": told}]}
            documents.append(document)
        return {"n": len(command["documents"])}

    def _find(self, command: Json, documents: list[Json]) -> Json:
        found = [each for each in documents if _is_match(each, command.get("filter", {}))]
        for name, order in reversed(command.get("sort", {}).items()):
            found.sort(key=operator.itemgetter(name), reverse=order < 0)
        return _cursor(found[: command.get("limit") or None])

    def _update(self, command: Json, documents: list[Json]) -> Json:
        upserted = []
        for index, update in enumerate(command["updates"]):
            if _changed(documents, update["q"], update["u"])[1]:
                upserted.append({"index": index, "_id": documents[-1]["_id"]})
        return {"n": len(command["updates"]), "nModified": 0, "upserted": upserted}

    def _modify(self, command: Json, documents: list[Json]) -> Json:
        return {"value": _changed(documents, command["query"], command["update"])[0]}


_ids = itertools.count(1)


def _changed(documents: list[Json], query: Json, update: Json) -> tuple[Json, bool]:
    """Change the document of a query, or make it; return it, and whether it is new."""
    document = next((each for each in documents if _is_match(each, query)), None)
    is_new = document is None
    if document is None:
        document = {"_id": next(_ids), **query, **update.get("$setOnInsert", {})}
        documents.append(document)
    document.update(update.get("$set", {}))
    for name, step in update.get("$inc", {}).items():
        document[name] = document.get(name, 0) + step
    return document, is_new


def _is_match(document: Json, query: Json) -> bool:
    for name, wanted in query.items():
        values = wanted["$in"] if isinstance(wanted, dict) else [wanted]
        if document.get(name) not in values:
            return False
    return True


def _cursor(documents: list[Json]) -> Json:
    return {"cursor": {"id": 0, "ns": "tests.documents", "firstBatch": documents}}
