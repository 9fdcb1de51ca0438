"""Every value ends at every door, with any remedy on, for a bounded number of lines of the caller's thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: Lines of the package in the caller's thread that one value may cost: 50 ms at 40 ns each.
MOST: int = 1_250_000
CEILING = {"AGENT_OTEL_RESULT_CEILING_BYTES": "64KiB"}
CAPTURE = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
LIMITS = {"AGENT_OTEL_MAX_RESULT_BYTES": "100GiB", "AGENT_OTEL_MAX_RESULT_TOKENS": "10000000"}

#: Values that have no size, or whose size is not found within the steps of a walk.
UNSIZED = {
    *("a generator", "generators in a list", "iterators", "functions", "an iterator of the program's"),
    *("data classes, deep", "attributes, deep", "lists, deep", "dictionaries, deep", "tuples, deep"),
    *("an integer of 200,000 digits", "YAML lists by anchors, 2**40", "lists by aliases, 4**24"),
}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("remedies", ["ceiling", "file", "capture", "limits", "all"])
def test_every_value_ends_at_every_door(remedies: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = {"AGENT_OTEL_CLAIM_CHECK": tmp_path.as_uri(), "AGENT_OTEL_CLAIM_CHECK_KEY": "k" * 32}
    chosen = {
        "ceiling": CEILING,
        "file": file,
        "capture": CAPTURE,
        "limits": LIMITS,
        "all": {**CEILING, **file, **CAPTURE, **LIMITS, "AGENT_OTEL_ANSWER_RETRIES": "1"},
    }[remedies]
    counts = remedies in ("ceiling", "all")  # to count takes ten times as long
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.remedies.values_program", *(() if counts else ("--times",))],
        env={"PATH": os.environ["PATH"], "AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "otel", **chosen},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 50 * 5, done.stderr
    too_much = {(line["value"], line["door"]): line["cost"] for line in lines if counts and line["cost"] > MOST}
    assert {} == too_much
    assert [] == [line for line in lines if line["ran"]]
    changed = [line for line in lines if not line["same"] and line["door"] in ("argument", "payload", "part")]
    assert [] == changed
    results = {line["value"]: line for line in lines if line["door"] == "result"}
    if remedies == "ceiling":
        assert [] == [name for name, line in results.items() if not (line["same"] or line["withheld"])]
        assert UNSIZED <= {name for name, line in results.items() if line["withheld"]}
    if remedies in ("capture", "limits"):
        assert [] == [name for name, line in results.items() if not line["same"]]
