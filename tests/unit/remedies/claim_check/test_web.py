"""The application that serves results, asked over ASGI as a server asks it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_otel.remedies.claim_check.envelope import Claims, Origin
from agent_otel.remedies.claim_check.reader import ClaimReader, Place, ResultsApp
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.writer import ClaimWriter, Stored
from tests.rows import each_row
from tests.unit.remedies.claim_check.hostile_stores import Failing
from tests.unit.remedies.claim_check.stores.contract import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = Place("run-1", "agent", "call_0")
PATH = "/executions/run-1/tool-results/agent/call_0"
RESULT = "".join(f"{number:06}\n" for number in range(40_000))


def _etag() -> str:
    """The digest by hand: an HMAC over the SHA-256 of each 64 KiB, each part with its length before it."""
    data = RESULT.encode()
    digests = b"".join(hashlib.sha256(data[at : at + 65_536]).digest() for at in range(0, len(data), 65_536))
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"content", b"", digests))
    return f'"{hmac.digest(b"secret", framed, "sha256").hex()[:32]}"'


ETAG = _etag()
NOT_FOUND = {
    "cache-control": "private, no-store",
    "content-length": "9",
    "content-security-policy": "default-src 'none'; sandbox",
    "content-type": "text/plain",
    "x-content-type-options": "nosniff",
}
#: The owner of each execution's results, for each user: what a server would look up in its own records.
OWNERS = {("alice", "run-1"): "run-1", ("bob", "run-2"): "run-2"}


def _authorize(scope: Mapping[str, Any], execution: str) -> str | None:
    user = dict(scope["headers"]).get(b"x-test-session", b"").decode()
    return OWNERS.get((user, execution))


def path(place: Place) -> str:
    """Return the path of a result below the application's mount point."""
    execution, node, call = (quote(part, safe="", errors="surrogatepass") for part in place)
    return f"/executions/{execution}/tool-results/{node}/{call}"


class Site:
    """A store with a result, and the application in front of it."""

    def __init__(self, store: MemoryStore | None = None, *, encryption_key: str = "") -> None:
        self.claims = Claims(store or MemoryStore(), key="secret", encryption_key=encryption_key)
        self.app = ResultsApp(ClaimReader(self.claims), _authorize)
        self.put(RESULT)

    def put(
        self, data: bytes | str, place: Place = PLACE, owner: str = "run-1", content_type: str | None = None
    ) -> None:
        """Store a result."""
        origin = Origin(owner, place.execution, place.node, "search", place.call)
        if content_type is None:
            assert isinstance(ClaimWriter(self.claims, budget=60).put(data, origin), Stored)
            return
        raw = data.encode() if isinstance(data, str) else data
        reference, stored = self.claims.sealed(raw, origin, content_type=content_type, ttl=60)
        self.claims.store.put(reference.key, stored, 60)

    def ask(
        self, path: str = PATH, method: str = "GET", user: str = "alice", root_path: str = "", **headers: str
    ) -> httpx.Response:
        """Send a request."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, root_path=root_path)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                return await client.request(method, path, headers={"x-test-session": user, **named})

        return asyncio.run(send())


@pytest.fixture(params=["", base64.b64encode(b"k" * 32).decode()], ids=["plain", "encrypted"])
def site(request: pytest.FixtureRequest) -> Site:
    return Site(encryption_key=request.param)


def test_the_whole_result() -> None:
    answer = Site().ask()

    assert (200, RESULT) == (answer.status_code, answer.text)
    assert {
        "accept-ranges": "bytes",
        "cache-control": "private, no-store",
        "content-disposition": "attachment",
        "content-length": "280000",
        "content-security-policy": "default-src 'none'; sandbox",
        "content-type": "text/plain; charset=utf-8",
        "etag": ETAG,
        "x-content-type-options": "nosniff",
    } == dict(answer.headers)


def test_its_head(site: Site) -> None:
    answer = site.ask(method="HEAD")

    assert (200, b"") == (answer.status_code, answer.content)
    assert dict(site.ask().headers) == dict(answer.headers)


@each_row(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=70000-139999", 70_000, 140_000),
        ("bytes=279999-", 279_999, 280_000),
        ("bytes=-7", 279_993, 280_000),
        ("bytes=-999999", 0, 280_000),
        ("bytes=279990-999999", 279_990, 280_000),
        (" bytes=0-0 ", 0, 1),
    ],
)
def test_a_range(site: Site, asked: str, start: int, end: int) -> None:
    answer = site.ask(range=asked)

    assert (206, RESULT[start:end]) == (answer.status_code, answer.text)
    assert f"bytes {start}-{end - 1}/280000" == answer.headers["content-range"]
    assert str(end - start) == answer.headers["content-length"]


@each_row("asked", ["bytes=280000-", "bytes=999999-1000000", "bytes=-0"])
def test_a_range_that_there_is_not(site: Site, asked: str) -> None:
    answer = site.ask(range=asked)

    assert (416, b"", "bytes */280000") == (answer.status_code, answer.content, answer.headers["content-range"])


@each_row(
    "asked", ["", "bytes", "bytes=", "bytes=-", "bytes=2-1", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "bytes=+1-2"]
)
def test_a_range_that_is_none_is_left_out(site: Site, asked: str) -> None:
    answer = site.ask(range=asked)

    assert (200, RESULT) == (answer.status_code, answer.text)


def test_a_range_of_another_version_is_the_whole() -> None:
    site = Site()

    assert 206 == site.ask(range="bytes=0-0", if_range=ETAG).status_code
    assert 200 == site.ask(range="bytes=0-0", if_range='"another"').status_code


@pytest.mark.parametrize("data", [b"", b"\xff\0"])
def test_a_result_that_is_no_text(data: bytes) -> None:
    site = Site()
    site.put(data, content_type="image/png")

    answer = site.ask()

    assert (200, data, "image/png") == (answer.status_code, answer.content, answer.headers["content-type"])
    assert str(len(data)) == answer.headers["content-length"]


def test_a_page_is_not_shown_as_one() -> None:
    site = Site()
    site.put("<script>alert(1)</script>", content_type="text/html")

    headers = site.ask().headers

    assert ("attachment", "nosniff") == (headers["content-disposition"], headers["x-content-type-options"])
    assert "default-src 'none'; sandbox" == headers["content-security-policy"]


# --- who may not ---------------------------------------------------------------------------------------------------

DENIALS = [
    ({"user": ""}, "nobody"),
    ({"user": "mallory"}, "a stranger"),
    ({"user": "bob"}, "the owner of another execution"),
    ({"path": "/executions/run-2/tool-results/agent/call_0", "user": "alice"}, "another's result"),
    ({"path": "/executions/run-1/tool-results/agent/call_1"}, "no result"),
    ({"path": "/executions/run-2/tool-results/agent/call_1", "user": "bob"}, "no result of bob's"),
    ({"path": "/executions/run-1/tool-results/agent/call_0/"}, "another path"),
    ({"path": "/executions/run-1/tool-results/agent"}, "a shorter path"),
    ({"path": "/executions/run-1%2Ftool-results/agent/call_0"}, "an encoded path"),
    ({"path": "/executions/run-2/../run-1/tool-results/agent/call_0", "user": "bob"}, "a path that leads back"),
    ({"path": "/executions/run-2%2F..%2Frun-1/tool-results/agent/call_0"}, "an id that leads back"),
    ({"path": "/executions/run-1/tool-results/agent/%2E%2E%2Fcall_0"}, "a call that leads back"),
    ({"path": "/x/executions/run-1/tool-results/agent/call_0"}, "somewhere else"),
    ({"path": "/executions/run-2/executions/run-1/tool-results/agent/call_0"}, "a path in a path"),
    ({"path": "/executions/%FF/tool-results/agent/call_0"}, "no text"),
    ({"path": "/"}, "nothing"),
    ({"path": f"{PATH}?workflow=run-1", "user": "mallory"}, "a claim of the client"),
]


@each_row("method", ["GET", "HEAD"])
@each_row("headers", [{}, {"range": "bytes=0-0"}, {"range": "bytes=999999-"}], ids=["all", "part", "none"])
@each_row("asked", [asked for asked, _ in DENIALS], ids=[said for _, said in DENIALS])
def test_denied_is_as_not_found(site: Site, method: str, headers: dict[str, str], asked: dict[str, str]) -> None:
    site.put("bob's secret", Place("run-2", "agent", "call_0"), owner="run-2")

    answer = site.ask(method=method, **{**asked, **headers})

    assert (404, b"" if method == "HEAD" else b"not found", NOT_FOUND) == (
        answer.status_code,
        answer.content,
        dict(answer.headers),
    )


def test_whom_the_server_takes_for_somebody_else_reads_nothing() -> None:
    """An answer of ``authorize`` that is no owner's name, or not the one recorded, is no leave to read."""
    for owner in ("run-2", "", True, 1, object()):
        site = Site()
        site.app = ResultsApp(ClaimReader(site.claims), lambda _, __, owner=owner: owner)  # type: ignore[misc]
        assert 404 == site.ask().status_code


def test_who_may_read_can_be_looked_up_asynchronously() -> None:
    async def authorize(scope: Mapping[str, Any], execution: str) -> str | None:
        await asyncio.sleep(0)
        return _authorize(scope, execution)

    site = Site()
    site.app = ResultsApp(ClaimReader(site.claims), authorize)

    assert (200, 404) == (site.ask().status_code, site.ask(user="bob").status_code)


# --- paths ---------------------------------------------------------------------------------------------------------


@each_row("text", [text for text in HOSTILE if text not in (".", "..")])  # no client sends these
def test_any_id_has_a_path(text: str) -> None:
    site = Site()
    asked: list[str] = []

    def authorize(_: object, execution: str) -> str:
        asked.append(execution)
        return "run-1"

    site.app = ResultsApp(ClaimReader(site.claims), authorize)
    site.put(f"of {text!r}", Place(text, text, text))

    assert f"of {text!r}" == _serve(site, path(Place(text, text, text)))
    assert [text] == asked


@settings(deadline=None)
@given(st.tuples(*[st.text(st.characters())] * 3))
def test_a_path_leads_to_its_place(ids: tuple[str, str, str]) -> None:
    site = _SITE
    asked: list[str] = []
    site.app = ResultsApp(ClaimReader(site.claims), lambda _, execution: asked.append(execution) or "run-1")  # type: ignore[func-returns-value]
    site.put("it", Place(*ids))

    assert "it" == _serve(site, path(Place(*ids)))
    assert [ids[0]] == asked


_SITE = Site()


def _serve(site: Site, path: str, /, **scope: Any) -> str | int:
    """Send a request as a server does that leaves paths as they are; return the text, or the status of an error."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    asked = {"type": "http", "method": "GET", "headers": [], "path": "/", "raw_path": path.encode(), **scope}
    asyncio.run(site.app(asked, receive, send))
    start, body = sent
    assert str(len(body["body"])).encode() == dict(start["headers"])[b"content-length"]
    return str(body["body"].decode()) if start["status"] == 200 else int(start["status"])


@each_row(
    "scope",
    [
        {"raw_path": f"/mounted/here{PATH}".encode(), "root_path": "/mounted/here", "path": f"/mounted/here{PATH}"},
        {"raw_path": f"/mounted/h%65re{PATH}".encode(), "root_path": "/mounted/here/", "path": f"/mounted/here{PATH}"},
        {"raw_path": f"/mounted%20here{PATH}?a=b".encode(), "root_path": "/mounted here", "path": PATH},
        {"raw_path": None, "root_path": "/mounted", "path": f"/mounted{PATH}"},
        {"raw_path": None, "root_path": "/mounted", "path": PATH},
        {"raw_path": PATH.encode(), "root_path": "/proxy", "path": PATH},
    ],
)
def test_it_is_mounted_anywhere(scope: dict[str, Any]) -> None:
    site = Site()
    headers = [(b"x-test-session", b"alice")]

    assert RESULT == _serve(site, "", headers=headers, **scope)


# --- and the rest --------------------------------------------------------------------------------------------------


@each_row("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_else_can_be_done(method: str) -> None:
    answer = Site().ask(method=method)

    assert (405, "GET, HEAD") == (answer.status_code, answer.headers["allow"])


@each_row("headers", [{}, {"range": "bytes=0-0"}])
@each_row("method", ["GET", "HEAD"])
def test_a_store_that_is_down_is_no_secret(method: str, headers: dict[str, str]) -> None:
    store = Failing(None)
    site = Site(store)
    store.error = OSError("the password is hunter2")

    answer = site.ask(method=method, **headers)

    assert 503 == answer.status_code
    assert (b"" if method == "HEAD" else b"the store does not answer") == answer.content


def test_it_can_be_served_alone() -> None:
    events = iter(["lifespan.startup", "lifespan.shutdown"])
    sent: list[str] = []

    async def receive() -> Any:
        return {"type": next(events)}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(Site().app({"type": "lifespan"}, receive, send))

    assert ["lifespan.startup.complete", "lifespan.shutdown.complete"] == sent


def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Site().app({"type": "websocket"}, None, send))  # type: ignore[arg-type]

    assert [{"type": "websocket.close", "code": 1000}] == sent


def test_paths_are_percent_encoded() -> None:
    assert f"/executions/a%2Fb/tool-results/{quote('ä')}/%20" == path(Place("a/b", "ä", " "))
