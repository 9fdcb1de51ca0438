"""A program in a bundle of PyInstaller's, which does not see the adapters and exporters that are named in strings."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.environments import ROOT
from tests.patience import communicate
from tests.servers.otlp import OtlpReceiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.environments import Environment

_APP = """
import agent_otel  # first: it activates, because start-up files do not run in a bundle
from langchain_core.tools import tool

@tool
def search(query: str) -> str:
    "Search."
    return query * 150

import json
from prometheus_client import REGISTRY

search.invoke({"query": "ab"})
labels = {"error_type": "", "gen_ai_tool_name": "search"}
size = REGISTRY.get_sample_value("agent_otel_tool_result_size_bytes_sum", labels)
from agent_otel.remedies.claim_check.stores.base import library

retries = library("redis.retry", "redis").Retry.__name__
print(json.dumps([size, len(agent_otel.payload_caps()) > 30, retries]))
"""
_LIBRARY = re.compile(r'library\("([\w.]+)"')


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as running:
        yield running


def test_the_hook_names_each_library_that_is_imported_by_name() -> None:
    hook = (ROOT / "agent_otel" / "_pyinstaller" / "hook-agent_otel.py").read_text()
    texts = [path.read_text() for path in (ROOT / "agent_otel" / "remedies").rglob("*.py")]
    imported = {name for text in texts for name in _LIBRARY.findall(text)}
    assert "redis.retry" in imported
    assert set() == {name for name in imported if f'"{name}"' not in hook}


@pytest.mark.weekly  # a bundle takes minutes of two cores, and the test above has what is forgotten most easily
def test_a_bundle_is_measured_without_options(
    environment: Callable[[str], Environment], receiver: OtlpReceiver, tmp_path: Path
) -> None:
    bundle = environment("bundle")
    (tmp_path / "app.py").write_text(_APP)
    command = (str(bundle.program("pyinstaller")), "--log-level", "WARN", "--noconfirm", "--distpath", "out", "app.py")
    with bundle.start(*command, cwd=tmp_path) as building:
        _, complaints = communicate(building, 600)
    assert 0 == building.returncode, complaints

    env = {"PATH": "/nowhere", "AGENT_OTEL": "1", **receiver.environment()}
    program = tmp_path / "out" / "app" / "app"
    measured = subprocess.run((program,), env=env, capture_output=True, text=True, check=True)
    assert ([300.0, True, "Retry"], "") == (json.loads(measured.stdout), measured.stderr)
    (span,) = receiver.wait_for_spans(1)
    assert (300, "search") == (span.attributes["tool.result.bytes"], span.attributes["tool.name"])

    off = subprocess.run((program,), env={"PATH": "/nowhere"}, capture_output=True, text=True, check=True)
    assert [None, True, "Retry"] == json.loads(off.stdout)
