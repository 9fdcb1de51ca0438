"""A handler of one step: ``with_restate.py <ingress> <admin>``; prints what it answers."""

# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return,unused-ignore"
# The SDK is not installed where types are checked.

import asyncio
import sys

import httpx
import hypercorn
import restate
from hypercorn.asyncio import serve

from tests.system.engines import starting
from tests.system.engines.restate import Restate

greeter = restate.Service("greeter")


@greeter.handler()
async def greet(context: restate.Context, name: str) -> str:
    """Greet, in a step whose result is kept."""
    return await context.run_typed("greeting", lambda: f"Hello, {name}!")


async def main(engine: Restate) -> None:
    """Serve the handler until it has answered."""
    config, port, answered = hypercorn.Config(), starting.free_port(), asyncio.Event()
    config.bind, config.errorlog = [f"127.0.0.1:{port}"], None
    serving = asyncio.create_task(serve(restate.app([greeter]), config, shutdown_trigger=answered.wait))
    await asyncio.to_thread(starting.wait_for_port, port)
    await asyncio.to_thread(engine.register, f"http://127.0.0.1:{port}")
    async with httpx.AsyncClient() as client:
        print((await client.post(f"{engine.ingress}/greeter/greet", json="World")).text)
    answered.set()
    await serving


if __name__ == "__main__":
    asyncio.run(main(Restate(*sys.argv[1:])))
