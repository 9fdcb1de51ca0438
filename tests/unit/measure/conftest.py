"""All ways of measuring a structure: with each fast encoder in the process, and without one."""

from __future__ import annotations

import sys

import msgspec
import orjson
import pydantic_core
import pytest

ENCODERS = {"orjson": orjson, "msgspec": msgspec, "pydantic_core": pydantic_core}


@pytest.fixture(params=["none", *ENCODERS])
def encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Measure without and with one of the fast encoders, and return its name."""
    for name, module in ENCODERS.items():
        monkeypatch.setitem(sys.modules, name, module if name == request.param else None)
    return str(request.param)
