"""Handlers of a Restate service, served by hypercorn and known to a real server."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,unused-ignore"
from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config
from restate import (
    Context,
    InvocationRetryPolicy,
    ObjectContext,
    RunOptions,
    Service,
    VirtualObject,
)

from tests.contract.runtimes import steps
from tests.system.engines import starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

agent = Service("agent")
memory = VirtualObject("memory")

# What the SDK logs of every failed attempt, which is what several cases are about.
logging.getLogger("restate").setLevel(logging.CRITICAL)

Given = dict[str, Any]

THREE_TIMES = InvocationRetryPolicy(initial_interval=timedelta(milliseconds=10), max_attempts=3, on_max_attempts="kill")
# How often the handler of each invocation was begun: once more for every replay.
begun: Counter[str] = Counter()

ONCE: RunOptions[Any] = RunOptions(max_attempts=1)
TWICE: RunOptions[Any] = RunOptions(max_attempts=2, initial_retry_interval=timedelta(milliseconds=10))


class Sealed(getattr(restate, "JournalValueCodec", object)):  # it is there from 1.1 on
    """Makes every payload unreadable, and six bytes longer."""

    def encode(self, buf: bytes) -> bytes:
        """Turn it round, after a word that begins no JSON."""
        return b"sealed" + buf[::-1]

    async def decode(self, buf: bytes) -> bytes:
        """Turn it back."""
        return buf[:5:-1]


def keep(texts: list[str]) -> list[str]:
    """Hand on what has been gathered so far: the only way into the journal is out of a step."""
    return texts


@agent.handler()
async def one(ctx: Context, given: Given) -> int:
    """Run one step; how long its result is."""
    step = getattr(steps, given["activity"])
    return len(await ctx.run_typed(given["activity"], step, ONCE, given["n"]))


@agent.handler()
async def retried(ctx: Context, given: Given) -> int:
    """Run one step, twice at most."""
    step = getattr(steps, given["activity"])
    return len(await ctx.run_typed(given["activity"], step, TWICE, given["n"]))


@agent.handler()
async def parallel(ctx: Context, given: Given) -> int:
    """Run two steps at once."""
    started = [ctx.run_typed("produce", steps.produce_later, ONCE, given["n"] + more) for more in (0, 1)]
    done = await restate.gather(*started)
    return sum([len(await text) for text in done])


@agent.handler()
async def turns(ctx: Context, given: Given) -> int:
    """Carry every turn's text into the next turn."""
    texts: list[str] = []
    for turn in range(given["turns"]):
        texts.append(await ctx.run_typed("produce", steps.produce, ONCE, given["n"] + turn))
        texts = await ctx.run_typed("consume", keep, ONCE, texts)
    return steps.consume(texts)


@agent.handler()
async def slept(ctx: Context, given: Given) -> int:
    """Sleep between two steps for longer than the server waits; how often this function was begun."""
    begun[ctx.request().id] += 1
    await ctx.run_typed("produce", steps.produce, ONCE, given["n"])
    await ctx.sleep(timedelta(seconds=given["seconds"]))
    await ctx.run_typed("produce", steps.produce, ONCE, given["n"])
    return begun[ctx.request().id]


@agent.handler(invocation_retry_policy=THREE_TIMES)
async def refused(ctx: Context, given: Given) -> int:
    """Run one step whose result the server refuses as often as it is asked."""
    return len(await ctx.run_typed("produce", steps.produce, ONCE, given["n"]))


@agent.handler(invocation_retry_policy=THREE_TIMES)
async def returned(ctx: Context, given: Given) -> str:
    """Return what the server refuses as often as it is asked."""
    del ctx
    return steps.produce(given["n"])


@agent.handler(invocation_retry_policy=THREE_TIMES)
async def crashes(ctx: Context, given: Given) -> int:
    """Fail before anything is in the journal."""
    del ctx
    raise steps.BrokenError(given["n"])


@memory.handler()
async def remember(ctx: ObjectContext, given: Given) -> int:
    """Keep a text, and hand back how long it is after a step."""
    ctx.set("notes", steps.produce(given["n"]))
    return len(await ctx.run_typed("produce", steps.produce, ONCE, given["n"]))


@contextlib.contextmanager
def running(engine: dict[str, Any]) -> Iterator[Callable[[str, Any], Any]]:
    """Serve the handlers and make them known; yield what calls one through the server."""
    port = starting.free_port()
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.errorlog = None
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    codec = Sealed() if engine["sealed"] else None
    app: Any = restate.app([agent, memory], **({"journal_value_codec": codec} if codec else {}))
    served = threading.Thread(
        target=loop.run_until_complete, args=(serve(app, config, shutdown_trigger=ended.wait),), daemon=True
    )
    served.start()
    with httpx.Client(timeout=60) as client:
        asked = {"uri": f"http://127.0.0.1:{port}", "force": True, "use_http_11": engine["http_11"]}
        client.post(f"{engine['admin']}/deployments", json=asked).raise_for_status()

        def start(workflow: str, given: Any) -> Any:
            content = json.dumps(given).encode()
            called = client.post(
                f"{engine['ingress']}/{workflow.replace('memory/', 'memory/mine/')}",
                content=codec.encode(content) if codec else content,
                headers={"content-type": "application/json"},
            )
            assert called.is_success, called.text
            return json.loads(asyncio.run(codec.decode(called.content)) if codec else called.content)

        yield start
    loop.call_soon_threadsafe(ended.set)
    served.join(10)
