"""Both ways of measuring a structure: with a fast encoder in the process, and without one."""

from __future__ import annotations

import sys

import orjson
import pytest


@pytest.fixture(params=[None, orjson], ids=["walked", "encoded"])
def encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> object:
    """Measure without and with the fast encoder."""
    monkeypatch.setitem(sys.modules, "orjson", request.param)
    return request.param
