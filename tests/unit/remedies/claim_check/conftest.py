"""The two ways to write a claim."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.remedies.claim_check.writer import ClaimWriter, NotStored, Stored


@pytest.fixture(params=["put", "aput"])
def put(request: pytest.FixtureRequest) -> Callable[..., Stored | NotStored]:
    """Each way to write, as one that blocks."""

    def call(writer: ClaimWriter, *args: Any, **named: Any) -> Stored | NotStored:
        if request.param == "put":
            return writer.put(*args, **named)
        return asyncio.run(writer.aput(*args, **named))

    return call
