"""``agent-otel explain`` needs less than 16 MB of memory beyond the program's, however large a file of JSON is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FILE_BYTES = 20_000_000
TURNS = 80
RESULT = json.dumps([{"id": row, "customer": f"customer {row % 977}"} for row in range(7_500)])

PROGRAM = """
import re
import sys
from pathlib import Path

from agent_otel.cli.explain import explain as command

def memory():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

before = memory()
command([sys.argv[1], "--json"], standalone_mode=False)
print(memory() - before, file=sys.stderr)
"""


def _messages() -> list[dict[str, Any]]:
    """Return the messages of turns with large results, as LangChain has them."""
    found: list[dict[str, Any]] = [{"type": "human", "content": "Which orders are late?"}]
    for turn in range(TURNS):
        call = {"name": "search_orders", "args": {"page": turn}, "id": f"call_{turn}", "type": "tool_call"}
        found.append({"type": "ai", "content": "", "tool_calls": [call]})
        found.append({"type": "tool", "content": RESULT, "name": "search_orders", "tool_call_id": call["id"]})
    return found


def _conversation(path: Path) -> None:
    path.write_text(json.dumps({"messages": _messages()}))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "file"
    _conversation(path)
    assert path.stat().st_size > FILE_BYTES
    done = subprocess.run((sys.executable, "-c", PROGRAM, str(path)), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert TURNS == len(found["turns"])
    assert {"search_orders"} == set(found["breakdown"]["tools"])
    assert int(done.stderr.splitlines()[-1]) < 16_000_000
