"""Changes of what tools return and of how they are defined, over real frameworks, SDKs and servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_otel.testing.servers.openai import ToolCall
from tests.contract import script
from tests.system.scripted_child import report_of

if TYPE_CHECKING:
    from agent_otel.testing.servers.openai import Decider, Reply
    from tests.contract.cases import Json
    from tests.forks import Forks

_PROGRAMS = "tests.system.drift.programs"
_SERVER = "openai:OpenAIServer"


def _done(_: object) -> Reply:
    return "done"


def _report(forks: Forks, name: str, program: str, decide: Decider = _done, server: str = _SERVER) -> Json:
    return report_of(_PROGRAMS, program, forks, name, server, decide)


@pytest.mark.shows("000.result_drift")
@pytest.mark.parametrize(("program", "name", "path"), [("langchain", "langchain", "[]"), ("mcp", "mcp-1", "rows[]")])
def test_a_field_of_records_is_renamed(forks: Forks, program: str, name: str, path: str) -> None:
    assert _report(forks, name, program) == {
        "counted": {"result.shape_changes search": 1},
        "events": [
            {
                "span": "execute_tool search",
                "event": "tool_result_shape_changed",
                "keys.added": [f"{path}.title"],
                "keys.removed": [f"{path}.name"],
            }
        ],
        "messages": [],
    }


@pytest.mark.shows("000.definition_drift")
def test_the_definition_of_a_tool_changes(forks: Forks) -> None:
    def event(span: str, **paths: list[str]) -> Json:
        properties = {
            f"agent_otel.tool.properties_{kind}": paths.get(kind, []) for kind in ("added", "removed", "changed")
        }
        return {"span": span, "event": "tool_schema_changed", "gen_ai.tool.name": "search", **properties}

    # The second definition has the size of the first, and the change is found within 16 requests. The last is that of
    # the beginning, which is no news. A fingerprint is `printf 'limit integer\nmail string!\n...' | b2sum -l 32`.
    assert _report(forks, "langchain", "definitions") == {
        "counted": {"schema_changes search": 2},
        "events": [
            event("execute_tool search", added=["post"], removed=["mail"]),
            event(
                "request",
                added=["periods", "periods[].begin", "periods[].end"],
                removed=["period", "period.begin", "period.end"],
                changed=["limit"],
            ),
        ],
        "messages": [],
        "definitions": ["34a89f9e", "52305806", "05e8ac62"],
    }


def test_agents_with_tools_of_the_same_name(forks: Forks) -> None:
    assert _report(forks, "langchain", "agents") == {
        "counted": {},
        "events": [],
        "messages": [],
        "definitions": ["8438388f", "2a213d68"],  # of `query string` and `title string`
    }


@pytest.mark.shows("000.definition_drift")
@pytest.mark.parametrize(
    ("agent", "name", "server"),
    [
        ("langgraph", "langchain", _SERVER),
        ("openai_agents", "openai-agents", _SERVER),
        ("pydantic_ai", "pydantic-ai", _SERVER),
        ("crewai", "crewai", _SERVER),
        ("google_adk", "google-adk", "providers:GeminiServerWithIds"),
        ("strands", "strands", _SERVER),
        ("smolagents", "smolagents", _SERVER),
        ("agno", "agno", _SERVER),
        ("anthropic_runner", "anthropic", "anthropic:AnthropicServer"),
    ],
)
def test_arguments_that_the_framework_refuses(forks: Forks, agent: str, name: str, server: str) -> None:
    asked: set[str] = set()

    def decide(request: Json) -> Reply:
        """Ask for each call of the prompt once, whatever became of it."""
        messages = request.get("messages") or request.get("input") or ()
        calls = [ToolCall(*call) for call in script.calls_of(messages) if call[0] not in asked]
        asked.update(call.id for call in calls)
        return calls or "done"

    report = _report(forks, name, f"refused {agent}", decide, server)
    assert report["counted"] == {"invalid_arguments lookup": 1}
