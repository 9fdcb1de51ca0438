"""Hand-written tools: all the ways to call a denied tool, from a program and from an allowed tool."""

# ruff: noqa: ARG001, PERF203, SIM105 - attempts, written as a program would
from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import agent_otel
from agent_otel.remedies import ToolDeniedError, use_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

ran: list[str] = []


@agent_otel.tool
def delete(path: str = "/") -> str:
    """Note that the handler ran."""
    ran.append("delete")
    return "deleted"


@agent_otel.tool
async def adelete(path: str = "/") -> str:
    """Do the same, async."""
    ran.append("adelete")
    return "deleted"


@agent_otel.tool
def gdelete() -> Iterator[str]:
    """Do the same as a generator."""
    ran.append("gdelete")
    yield "deleted"


@agent_otel.tool
async def agdelete() -> AsyncIterator[str]:
    """Do the same as an async generator."""
    ran.append("agdelete")
    yield "deleted"


class Files:
    """Tools that are methods."""

    @agent_otel.tool(name="delete_all")
    def delete_all(self) -> str:
        """Note that the handler ran."""
        ran.append("delete_all")
        return "deleted"

    @agent_otel.tool(name="delete_one")
    @staticmethod
    def delete_one() -> str:
        """Note that the handler ran."""
        ran.append("delete_one")
        return "deleted"


@agent_otel.tool
def outer(function: Callable[[], Any]) -> Any:
    """Call a function; this tool is allowed."""
    return function()


@agent_otel.tool
async def aouter(function: Callable[[], Awaitable[Any]]) -> Any:
    """Await a function; this tool is allowed."""
    return await function()


@agent_otel.tool
def gouter(function: Callable[[], Any]) -> Iterator[Any]:
    """Yield the result of a function; this tool is allowed."""
    yield function()


def yielding() -> Iterator[str]:
    """Yield from a denied generator."""
    yield from gdelete()


def closed(generator: Iterator[str]) -> list[str]:
    """Continue a generator after its denial."""
    try:
        next(generator)
    except ToolDeniedError:
        pass
    return list(generator)


async def aclosed() -> list[str]:
    """Continue an async generator after its denial."""
    generator = agdelete()
    try:
        await generator.__anext__()
    except ToolDeniedError:
        pass
    return [item async for item in generator]


async def two_steps() -> Any:
    """Take two steps of an async generator at once."""
    generator = agdelete()
    return await asyncio.gather(generator.__anext__(), generator.__anext__(), return_exceptions=True)


def block(name: str = "delete") -> Any:
    """Ask as a hand-written loop does."""
    with agent_otel.tool_call(name, {"path": "/"}) as call:
        return call.refused() or call.result(delete.__wrapped__())  # type: ignore[attr-defined]


async def ablock() -> Any:
    """Ask as an async loop does."""
    with agent_otel.tool_call("delete", {}, call_id="call_1") as call:
        return await call.arefused() or call.result(delete.__wrapped__())  # type: ignore[attr-defined]


def in_block(function: Callable[[], Any]) -> Any:
    """Call a function inside the block of an allowed tool."""
    with agent_otel.tool_call("outer", {}, call_id="call_1") as call:
        return call.refused() or call.result(function())


def with_bare_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a thread without this one's context."""
    thread = threading.Thread(target=function)
    thread.start()
    return thread.join()


def in_pool(function: Callable[[], Any]) -> Any:
    """Call a function in a pool, in a copy of this context."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, function).result()


def retried(function: Callable[[], Any]) -> list[Any]:
    """Call a function again and again, whatever it raises."""
    answers = []
    for _ in range(3):
        try:
            answers.append(function())
        except ToolDeniedError as error:
            answers.append(str(error))
    return answers


def approves(call: Any) -> bool:
    """Approve after a call of a denied tool."""
    return "denied" not in str(delete())


async def gathered() -> Any:
    """Make several calls at once."""
    return await asyncio.gather(adelete(), adelete(), asyncio.to_thread(delete))


async def in_executor() -> Any:
    """Make a call in the loop's executor."""
    return await asyncio.get_running_loop().run_in_executor(None, delete)


async def in_task() -> Any:
    """Make a call in a separate task."""
    return await asyncio.create_task(adelete())


def suppressed(function: Callable[[], Any]) -> Any:
    """Call a function while the program suppresses instrumentation."""
    from opentelemetry import context

    token = context.attach(context.set_value("suppress_instrumentation", True))
    try:
        return function()
    finally:
        context.detach(token)


def run(function: Callable[[], Awaitable[Any]]) -> Any:
    """Await a function in an allowed tool."""
    return asyncio.run(aouter(function))


CASES: dict[str, Callable[[], Any]] = {
    "at the top": delete,
    "sync in sync": lambda: outer(delete),
    "sync in a generator": lambda: list(gouter(delete)),
    "generator in sync": lambda: outer(lambda: list(gdelete())),
    "generator with send": lambda: outer(lambda: gdelete().send(None)),  # type: ignore[attr-defined]
    "generator after its denial": lambda: outer(lambda: closed(gdelete())),
    "generator after its denial, at the top": lambda: closed(gdelete()),
    "generator in a generator": lambda: outer(lambda: list(yielding())),
    "async in async": lambda: run(adelete),
    "async generator in async": lambda: run(aclosed),
    "async generator, two steps": lambda: run(two_steps),
    "async generator, two steps, at the top": lambda: asyncio.run(two_steps()),
    "gather": lambda: run(gathered),
    "executor": lambda: run(in_executor),
    "task": lambda: run(in_task),
    "sync in async": lambda: run(lambda: asyncio.to_thread(outer, delete)),
    "method": lambda: outer(Files().delete_all),
    "static method": lambda: outer(Files.delete_one),
    "nested twice": lambda: outer(lambda: outer(delete)),
    "nested five times": lambda: outer(lambda: outer(lambda: outer(lambda: outer(lambda: outer(delete))))),
    "block": block,
    "block in sync": lambda: outer(block),
    "block in async": lambda: run(ablock),
    "block in a block": lambda: in_block(block),
    "tool in a block": lambda: in_block(delete),
    "thread": lambda: outer(lambda: with_bare_thread(delete)),
    "pool with the context": lambda: outer(lambda: in_pool(delete)),
    "retries": lambda: outer(lambda: retried(delete)),
    "retries of a generator": lambda: outer(lambda: retried(lambda: list(gdelete()))),
    "suppressed": lambda: suppressed(delete),
    "suppressed in a tool": lambda: outer(lambda: suppressed(delete)),
    "suppressed around a tool": lambda: suppressed(lambda: outer(delete)),
    "new event loop in a tool": lambda: outer(lambda: asyncio.run(adelete())),
}


@agent_otel.tool
def allowed() -> str:
    """Note that the handler ran."""
    ran.append("allowed")
    return "read"


@agent_otel.tool
async def aallowed() -> str:
    """Note that the handler ran."""
    ran.append("aallowed")
    return "read"


@agent_otel.tool
def gallowed() -> Iterator[str]:
    """Note that the handler ran."""
    ran.append("gallowed")
    yield "read"


@agent_otel.tool
def again(times: int) -> str:
    """Call itself."""
    ran.append("again")
    return again(times - 1) if times else "done"


@agent_otel.tool
def tenant_of(tenant: str = "") -> str:
    """Return the first letters of the tenant that was injected."""
    return f"tenant {tenant[:4]}"


@agent_otel.tool(name="tenant_of")
def passing_on(tenant: str = "") -> str:
    """Pass the call on without the tenant."""
    return tenant_of()


@agent_otel.tool
def delete_each(first: str, *path: str) -> None:
    """Note that the handler ran."""
    ran.append("delete_each")


@agent_otel.tool
def delete_by(path: str, /, **options: str) -> None:
    """Note that the handler ran."""
    ran.append("delete_by")


class Deleting:
    """A tool that is an object with an async call."""

    async def __call__(self) -> None:
        """Note that the handler ran."""
        ran.append("deleting")


def retried_all(function: Callable[[], Any]) -> list[str]:
    """Call a function 50 times."""
    return [str(each) for _ in range(17) for each in retried(function)]


LIMITED: dict[str, Callable[[], Any]] = {
    "sync": lambda: outer(lambda: [allowed() for _ in range(50)]),
    "async": lambda: run(lambda: asyncio.gather(*(aallowed() for _ in range(50)))),
    "generator": lambda: outer(lambda: retried_all(lambda: list(gallowed()))),
    "recursion": lambda: again(50),
    "block": lambda: outer(lambda: [block("allowed") for _ in range(50)]),
    "threads": lambda: outer(lambda: [in_pool(allowed) for _ in range(50)]),
}


def outcome(call: Callable[[], Any]) -> Any:
    """Return the handlers that a call ran, and its answer."""
    ran.clear()
    try:
        answer = str(call())
    except ToolDeniedError as error:
        answer = str(error)
    return [list(ran), answer]


use_policy({"rules": [{"tools": ["outer", "aouter", "gouter"]}]})
report: dict[str, Any] = {name: outcome(call) for name, call in CASES.items()}
use_policy({"rules": [{"tools": ["outer"]}, {"tools": "again", "approve": approves}]})
report["tool called by an approval"] = outcome(lambda: again(0))
use_policy({"rules": [{"tools": ["*outer"]}, {"tools": "delete", "require": {"path": "/srv/*"}}]})
report["arguments inside"] = outcome(lambda: outer(lambda: delete("/etc/passwd")))
use_policy({"rules": [{"tools": "delete_*", "forbid": {"path": "/etc/*"}}]})
report["the second of many arguments"] = outcome(lambda: delete_each("x", "/srv/x", "/etc/passwd"))
report["a keyword of the same name"] = outcome(lambda: delete_by("/etc/passwd", path="/srv/x"))
report["an object with an async call"] = outcome(lambda: asyncio.run(agent_otel.tool(name="delete")(Deleting())()))
use_policy({"rules": [{"tools": ["*outer"]}, {"tools": "delete", "require": {"path": "/srv/*"}}]})
report["name of the tool around"] = outcome(lambda: in_block(lambda: delete(path="/etc/passwd")))
use_policy(
    {"rules": [{"tools": ["*outer"]}, {"tools": "tenant_of", "inject": {"tenant": {"call": lambda _: "acme-s3cret"}}}]}
)
report["injected"] = outcome(lambda: outer(lambda: [tenant_of(), tenant_of("evil"), in_pool(tenant_of), passing_on()]))
limits = {}
use_policy({"rules": [{"tools": "*"}]})
for name, call in LIMITED.items():
    with agent_otel.execution(f"run-{name}"):
        limits[name] = outcome(call)
print(json.dumps({"cases": report, "limits": limits}))
