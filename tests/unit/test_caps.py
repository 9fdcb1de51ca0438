"""The table of caps and cliffs, and which cap holds."""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel import settings
from agent_otel._internal import errors
from agent_otel.caps import payload_caps
from agent_otel.core.payload_cap import EffectiveCap, cap_for, discover
from tests.rows import each_row

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = importlib.import_module("agent_otel.core.payload_cap")
TABLES = tomllib.loads((Path(agent_otel.__file__).parent / "caps.toml").read_text(encoding="utf-8"))
CAPS: list[dict[str, Any]] = TABLES["cap"]
CLIFFS: list[dict[str, Any]] = TABLES["cliff"]

# --- the table, row by row ---------------------------------------------------------------------------------------

RUNTIMES = {
    "aws-durable",
    "aws-step-functions",
    "agentcore",
    "azure-durable",
    "azure-durable-task-scheduler",
    "azure-storage",
    "celery",
    "cloudflare-workflows",
    "dapr",
    "dbos",
    "durabletask",
    "google-workflows",
    "hatchet",
    "inngest",
    "langgraph",
    "mistral-workflows",
    "prefect",
    "openai-agents",
    "restate",
    "temporal",
    "trigger-dev",
    "vercel-workflow",
}
PROJECTS = {
    "AWS Lambda",
    "Agno",
    "Amazon API Gateway",
    "Application Load Balancer",
    "AutoGen",
    "CAMEL",
    "Claude Code",
    "Cloudflare",
    "CrewAI",
    "DSPy",
    "FastMCP",
    "Gemini CLI",
    "Google ADK",
    "Google Cloud Run functions",
    "LangChain",
    "LangSmith",
    "OpenAI Agents SDK",
    "OpenAI Codex",
    "OpenHands SDK",
    "OpenTelemetry Collector",
    "OpenTelemetry SDK",
    "Strands",
    "Vercel Functions",
    "ag2",
    "browser-use",
    "deepagents",
    "gptme",
    "mcp-server-fetch",
    "mini-swe-agent",
    "n8n",
    "nginx",
    "open-interpreter",
    "smolagents",
}
BOUNDARIES = {
    "activity_input",
    "activity_output",
    "workflow_input",
    "workflow_output",
    "state",
    "history",
    "message",
    "memo",
    "event",
}
TEXT = {"runtime": str, "boundary": str, "confidence": str, "error": str, "setting": str, "source": str}
CAP_KEYS: dict[str, type] = {
    **TEXT,
    "bytes": int,
    "warn_bytes": int,
    "versions": str,
    "variant": str,
    "cumulative": bool,
    "share_of": str,
    "share": float,
}
CLIFF_TEXT = ("project", "version", "where", "unit", "setting", "keeps", "confidence", "source")
CLIFF_KEYS: dict[str, type] = {
    **dict.fromkeys((*CLIFF_TEXT, "marker", "mcp_client", "variable"), str),
    "limit": int,
}
CLAUSE = r"(>=|<=|==|!=|>|<)\d+(\.\d+)*"


def _cap_id(row: dict[str, Any]) -> str:
    return "-".join(str(row.get(key, "")) for key in ("runtime", "boundary", "variant", "versions"))


def _cliff_id(row: dict[str, Any]) -> str:
    return f"{row.get('project')}-{row.get('where')}"


def _has_types(row: dict[str, Any], types: dict[str, type]) -> bool:
    return all(type(value) is types.get(key) and value not in ("", 0, False) for key, value in row.items())


def _has_origin(row: dict[str, Any]) -> bool:
    """A document of the owner, or a package with its version; never a page of ours."""
    owners = re.match(r"https://[\w.-]+/\S|@?[\w/-]+ \d+(\.\d+)+( and \d+(\.\d+)+)?, ", row["source"])
    return owners is not None and "reference/runtimes" not in row["source"]


def test_nothing_else_is_in_the_file() -> None:
    assert {"cap", "cliff"} == TABLES.keys()


@each_row("row", CAPS, ids=_cap_id)
def test_a_cap_is_complete_and_nothing_more(row: dict[str, Any]) -> None:
    assert TEXT.keys() <= row.keys() <= CAP_KEYS.keys()
    assert _has_types(row, CAP_KEYS)
    assert row["runtime"] in RUNTIMES
    assert row["boundary"] in BOUNDARIES
    assert row["confidence"] in {"ran", "read", "inferred"}
    assert row.get("versions", "*") == "*" or all(re.fullmatch(CLAUSE, part) for part in row["versions"].split(","))
    assert _has_origin(row)
    assert 0 < row.get("warn_bytes", 1) < row.get("bytes", 2**40) <= 2**40


@each_row("row", CLIFFS, ids=_cliff_id)
def test_a_cliff_is_complete_and_nothing_more(row: dict[str, Any]) -> None:
    assert set(CLIFF_TEXT) <= row.keys() <= CLIFF_KEYS.keys()
    assert _has_types(row, CLIFF_KEYS)
    assert row["project"] in PROJECTS
    assert row["unit"] in {"characters", "bytes", "tokens", "lines", "items"}
    assert row["confidence"] in {"ran", "read", "inferred"}
    assert _has_origin(row)


def test_every_runtime_and_project_is_there() -> None:
    assert RUNTIMES == {row["runtime"] for row in CAPS}
    assert PROJECTS == {row["project"] for row in CLIFFS}


def test_no_two_rows_speak_of_the_same() -> None:
    assert len(CAPS) == len({_cap_id(row) for row in CAPS})
    assert len(CLIFFS) == len({_cliff_id(row) for row in CLIFFS})


@each_row("row", [row for row in CAPS if "share_of" in row or "share" in row], ids=_cap_id)
def test_a_share_is_a_share_of_the_same_runtime_s_message(row: dict[str, Any]) -> None:
    assert "message" == row["share_of"] != row["boundary"]
    assert 0 < row["share"] <= 1
    (message,) = (
        other["bytes"]
        for other in CAPS
        if other["runtime"] == row["runtime"]
        and other["boundary"] == "message"
        and other.get("variant") == row.get("variant")
    )
    assert row["bytes"] == int(row["share"] * message)


def test_rows_come_typed_and_cannot_be_changed() -> None:
    assert len(CAPS) == len(payload_caps())
    activity_input = next(cap for cap in payload_caps() if cap.runtime == "dapr")
    assert (">=1.15", "activity_input", 2097152, None, "ran", False, "", "") == (
        activity_input.versions,
        activity_input.boundary,
        activity_input.bytes,
        activity_input.warn_bytes,
        activity_input.confidence,
        activity_input.cumulative,
        activity_input.variant,
        activity_input.share_of,
    )
    with pytest.raises(AttributeError):
        activity_input.bytes = 1  # type: ignore[misc]


# --- which cap holds ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _anew() -> Iterator[Callable[[str], None]]:
    """Forget what was found, said and discovered; return a function that sets AGENT_OTEL_CAPS."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "_said", set())
        patch.setattr(MODULE, "_discovered", {})

        def set_caps(text: str) -> None:
            patch.setenv("AGENT_OTEL_CAPS", text)
            patch.setattr(MODULE, "_found", {})
            settings.current.cache_clear()

        set_caps("")
        yield set_caps
    settings.current.cache_clear()


@pytest.fixture(autouse=True)
def configure() -> Iterator[Callable[[str], None]]:
    """Return a function that sets AGENT_OTEL_CAPS."""
    with _anew() as set_caps:
        yield set_caps


@each_row(
    ("key", "expected"),
    [
        (("temporal", "activity_input"), EffectiveCap(2097152, "table")),
        (("temporal", "history"), EffectiveCap(52428800, "table")),
        (("temporal", "message"), EffectiveCap(4194304, "table")),
        (("temporal", "state"), None),
        (("dapr", "activity_input"), EffectiveCap(2097152, "table")),
        (("dapr", "activity_output"), EffectiveCap(3984588, "table")),
        (("dapr", "history"), EffectiveCap(3984588, "table")),
        (("restate", "activity_output"), EffectiveCap(33554432, "table")),
        (("aws-step-functions", "state"), EffectiveCap(262144, "table")),
        (("aws-durable", "activity_output"), EffectiveCap(262144, "table")),
        (("aws-durable", "activity_output", "chained-invoke"), EffectiveCap(1048576, "table")),
        (("azure-durable-task-scheduler", "activity_output"), EffectiveCap(1048576, "table")),
        (("azure-storage", "message"), None),
        (("inngest", "event"), EffectiveCap(262144, "table")),
        (("inngest", "event", "paid"), EffectiveCap(3145728, "table")),
        (("inngest", "state"), EffectiveCap(33554432, "table")),
        (("prefect", "workflow_input"), EffectiveCap(524288, "table")),
        (("prefect", "activity_output"), None),
        (("celery", "message"), None),
        (("celery", "message", "sqs"), EffectiveCap(1048576, "table")),
        (("celery", "message", "amqp"), EffectiveCap(16777216, "table")),
        (("celery", "message", "memory"), None),
        (("celery", "activity_input", "sqs"), EffectiveCap(587202, "inferred")),
        (("langgraph", "state"), None),
        (("langgraph", "state", "postgres"), EffectiveCap(268435455, "table")),
        (("langgraph", "state", "sqlite"), EffectiveCap(1000000000, "table")),
        (("langgraph", "state", "memory"), None),
        (("dbos", "activity_output", "postgres"), EffectiveCap(1073741823, "table")),
        (("google-workflows", "state"), EffectiveCap(512000, "table")),
        (("trigger-dev", "workflow_input"), EffectiveCap(3145728, "table")),
        (("vercel-workflow", "activity_output"), EffectiveCap(50000000, "table")),
        (("nobody", "activity_output"), None),
    ],
    around=_anew,
)
def test_without_settings_the_table_holds(key: tuple[str, str], expected: EffectiveCap | None) -> None:
    assert expected == cap_for(*key)
    assert expected == cap_for(*key)


def test_every_row_is_some_answer() -> None:
    """No row is hidden by another: each holds for its own variant."""
    for cap in payload_caps():
        if cap.versions == "*":
            held = cap_for(cap.runtime, cap.boundary, cap.variant or None)
            assert cap.bytes == (held.bytes if held else None), cap


DAPR_16_MIB = {
    "message": EffectiveCap(16777216, "configured"),
    "history": EffectiveCap(15938355, "configured"),
    "activity_output": EffectiveCap(15938355, "configured"),
    "workflow_input": EffectiveCap(15938355, "configured"),
    "workflow_output": EffectiveCap(16777216, "configured"),
    "activity_input": EffectiveCap(2097152, "table"),
}


@each_row(("boundary", "expected"), DAPR_16_MIB.items(), around=_anew)
def test_dapr_s_caps_scale_with_its_message_but_that_of_activity_input(
    configure: Callable[[str], None], boundary: str, expected: EffectiveCap
) -> None:
    configure("dapr.message=16MiB")
    assert expected == cap_for("dapr", boundary)


@each_row(
    ("text", "key", "expected"),
    [
        ("dapr.activity_input=3MiB", ("dapr", "activity_input"), EffectiveCap(3145728, "configured")),
        ("dapr.message=16MiB,dapr.history=1MiB", ("dapr", "history"), EffectiveCap(1048576, "configured")),
        ("dapr.message=1MiB", ("dapr", "history"), EffectiveCap(996147, "configured")),
        ("dapr.message=16MiB,dapr.payload=1MiB", ("dapr", "activity_output"), EffectiveCap(15938355, "configured")),
        ("dapr.message=16MiB,dapr.payload=1MiB", ("dapr", "activity_input"), EffectiveCap(1048576, "configured")),
        ("dapr.payload=1MiB", ("dapr", "history"), EffectiveCap(3984588, "table")),
        ("dapr.message=16MiB", ("durabletask", "message"), EffectiveCap(4194304, "table")),
        ("temporal.payload=4MiB", ("temporal", "activity_input"), EffectiveCap(4194304, "configured")),
        ("temporal.payload=4MiB", ("temporal", "memo"), EffectiveCap(4194304, "configured")),
        ("temporal.payload=4MiB", ("temporal", "history"), EffectiveCap(52428800, "table")),
        ("temporal.payload=4MiB,temporal.memo=1KiB", ("temporal", "memo"), EffectiveCap(1024, "configured")),
        ("temporal.memo=1KiB,temporal.payload=4MiB", ("temporal", "memo"), EffectiveCap(1024, "configured")),
        ("inngest.payload=1MiB", ("inngest", "state"), EffectiveCap(33554432, "table")),
        ("langgraph.payload=1MiB", ("langgraph", "state", "memory"), EffectiveCap(1048576, "configured")),
        ("celery.message=256KiB", ("celery", "message", "sqs"), EffectiveCap(262144, "configured")),
        ("celery.message=256KiB", ("celery", "activity_input", "sqs"), EffectiveCap(146800, "configured")),
        ("myruntime.payload=1MiB", ("myruntime", "activity_output"), EffectiveCap(1048576, "configured")),
        ("myruntime.payload=1MiB", ("myruntime", "history"), None),
        ("myruntime.history=9MiB", ("myruntime", "history"), EffectiveCap(9437184, "configured")),
        (" MyRuntime.State = 1.5 KiB ,, ", ("myruntime", "state"), EffectiveCap(1536, "configured")),
        ("temporal.memo=1KiB,temporal.memo=2KiB", ("temporal", "memo"), EffectiveCap(2048, "configured")),
        ("restate.state=1024GiB", ("restate", "state"), EffectiveCap(1099511627776, "configured")),
    ],
    around=_anew,
)
def test_what_is_configured_goes_first(
    configure: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
    text: str,
    key: tuple[str, str],
    expected: EffectiveCap | None,
) -> None:
    configure(text)
    assert expected == cap_for(*key)
    assert [] == caplog.messages


@each_row(
    "entry",
    [
        "dapr.message=0",
        "dapr.message=0.4B",
        "dapr.message=-1",
        "dapr.message=-16MiB",
        "dapr.message=1025GiB",
        "dapr.message=1" + "0" * 400,
        "dapr.message=lots",
        "dapr.message=16XiB",
        "dapr.message=",
        "dapr.message",
        "dapr.messages=16MiB",
        "dapr.=16MiB",
        "dapr=16MiB",
        "message=16MiB",
        ".message=16MiB",
        "=16MiB",
        "da pr.message=16MiB",
        "dapr.message=16MiB=1",
    ],
    around=_anew,
)
def test_a_bad_entry_is_one_warning_and_only_it_is_left_out(
    configure: Callable[[str], None], caplog: pytest.LogCaptureFixture, entry: str
) -> None:
    caplog.set_level(logging.WARNING, "agent_otel")
    for _ in range(2):
        configure(f"restate.state=1MiB,{entry},hatchet.payload=2MiB")
        assert EffectiveCap(4194304, "table") == cap_for("dapr", "message")
        assert EffectiveCap(3984588, "table") == cap_for("dapr", "history")
        assert EffectiveCap(1048576, "configured") == cap_for("restate", "state")
        assert EffectiveCap(2097152, "configured") == cap_for("hatchet", "activity_output")
    assert 1 == len(caplog.records)
    assert caplog.messages[0].startswith(f"AGENT_OTEL_CAPS: {entry!r} is not ")


def test_each_bad_entry_is_a_warning_of_its_own(
    configure: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    configure("temporal.payload=0,temporal.payload=-1,temporal.payload=0")
    assert EffectiveCap(2097152, "table") == cap_for("temporal", "activity_output")
    assert 2 == len(caplog.records)


@each_row(("name", "default"), [("payload_warn_ratio", 0.5), ("payload_near_ratio", 0.8)], around=_anew)
@each_row(
    ("text", "expected"),
    [("0.25", 0.25), (" .9 ", 0.9), ("1", 1.0), ("", None)]
    + [(wrong, None) for wrong in ("0", "-0.1", "1.01", "nan", "inf", "80%", "half")],
)
def test_ratios(caplog: pytest.LogCaptureFixture, name: str, default: float, text: str, expected: float | None) -> None:
    variable = f"AGENT_OTEL_{name.upper()}"
    for _ in range(2):
        chosen = settings.load({"AGENT_OTEL_PAYLOAD_NEAR_RATIO": "1"} | {variable: text})
        assert (expected or default) == getattr(chosen, name)
    assert (0 if expected or not text else 1) == len(caplog.records)


def test_what_the_runtime_tells_goes_before_the_table() -> None:
    assert EffectiveCap(2097152, "table") == cap_for("temporal", "activity_output")
    discover("temporal", "activity_output", 1048576)
    assert EffectiveCap(1048576, "discovered") == cap_for("temporal", "activity_output")
    assert EffectiveCap(2097152, "table") == cap_for("temporal", "activity_input")
    discover("temporal", "activity_output", 524288)
    assert EffectiveCap(524288, "discovered") == cap_for("temporal", "activity_output")


def test_what_is_configured_goes_before_what_the_runtime_tells(configure: Callable[[str], None]) -> None:
    configure("temporal.payload=3MiB")
    discover("temporal", "activity_output", 1048576)
    discover("temporal", "history", 1048576)
    assert EffectiveCap(3145728, "configured") == cap_for("temporal", "activity_output")
    assert EffectiveCap(1048576, "discovered") == cap_for("temporal", "history")


def test_a_message_cap_that_the_runtime_tells_scales_its_shares() -> None:
    discover("dapr", "message", 8388608)
    assert EffectiveCap(7969177, "discovered") == cap_for("dapr", "history")
    assert EffectiveCap(2097152, "table") == cap_for("dapr", "activity_input")


def test_what_is_told_of_a_variant_goes_before_what_is_told_of_all() -> None:
    discover("langgraph", "state", 1000, "sqlite")
    discover("langgraph", "state", 2000)
    assert EffectiveCap(1000, "discovered") == cap_for("langgraph", "state", "sqlite")
    assert EffectiveCap(2000, "discovered") == cap_for("langgraph", "state", "postgres")
    assert EffectiveCap(2000, "discovered") == cap_for("langgraph", "state")


@each_row("impossible", [0, -1, 2**40 + 1, None, "2097152", 1.5], around=_anew)
def test_an_impossible_size_is_not_believed(impossible: Any) -> None:
    discover("temporal", "memo", impossible)
    assert EffectiveCap(2097152, "table") == cap_for("temporal", "memo")


def test_an_unknown_boundary_is_not_discovered() -> None:
    discover("temporal", "payload", 1048576)
    discover("temporal", "elsewhere", 1048576)
    assert EffectiveCap(2097152, "table") == cap_for("temporal", "activity_output")
    assert cap_for("temporal", "elsewhere") is None


def test_an_answer_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[Any] = []
    real = MODULE._look_up

    def counted(*key: Any) -> Any:
        looked_up.append(key)
        return real(*key)

    monkeypatch.setattr(MODULE, "_look_up", counted)
    for _ in range(3):
        cap_for("temporal", "activity_output")
        cap_for("nobody", "state")
        discover("temporal", "memo", 1048576)
    # The first discovery is news and makes both look again; the same told again is not.
    assert 4 == len(looked_up)


def test_an_answer_found_while_the_runtime_tells_another_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MODULE._look_up

    def overtaken(*key: Any) -> EffectiveCap | None:
        held: EffectiveCap | None = real(*key)
        discover("temporal", "activity_output", 1048576)
        return held

    monkeypatch.setattr(MODULE, "_look_up", overtaken)
    assert EffectiveCap(2097152, "table") == cap_for("temporal", "activity_output")
    assert EffectiveCap(1048576, "discovered") == cap_for("temporal", "activity_output")


# --- the public name ---------------------------------------------------------------------------------------------


@each_row(
    "code",
    [
        "import agent_otel",
        "from agent_otel.core.payload_cap import cap_for; import agent_otel",
        "import agent_otel; agent_otel.payload_caps(); import agent_otel.caps",
    ],
    around=_anew,
)
def test_the_public_name_can_be_called_whoever_imports_what_first(code: str) -> None:
    said = (
        "from agent_otel.core.payload_cap import cap_for\n"
        "print(len(agent_otel.payload_caps()), cap_for('temporal', 'memo').bytes)"
    )
    done = subprocess.run((sys.executable, "-c", f"{code}; {said}"), capture_output=True, text=True, check=True)
    assert f"{len(CAPS)} 2097152\n" == done.stdout


def test_the_public_name_is_typed_as_what_can_be_called_and_looked_into() -> None:
    """Mypy reads this one."""
    sizes: list[int | None] = [cap.bytes for cap in agent_otel.payload_caps()]
    held: EffectiveCap | None = cap_for("temporal", "memo")
    assert sizes == [row.get("bytes") for row in CAPS]
    assert held == cap_for("temporal", "memo")


def test_the_table_is_read_from_no_file() -> None:
    """An event loop may ask for the first cap."""
    code = (
        "import sys, agent_otel.caps; opened = []; sys.addaudithook(lambda name, _: opened.append(name));"
        "print(len(agent_otel.caps.payload_caps()), 'open' in opened, sys.modules.keys() & {'tomllib', 'tomli'})"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert f"{len(CAPS)} False set()\n" == done.stdout
