"""An exception whose text is long: what a framework makes of it is sized, counted and cut like any other result."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers.anthropic import AnthropicServer
from agent_otel.testing.servers.openai import OpenAIServer, ToolCall, call_once
from agent_otel.testing.servers.providers import GeminiServer
from tests.contract.frameworks.test_dspy import fields
from tests.contract.suite import QUIET

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.testing.servers.openai import Reply
    from tests.environments import Environment

pytestmark = pytest.mark.timeout(700)  # the environments may have to be made

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[3]
LONG = 300_000
LONGER = LONG + 1000
FRAMEWORKS = [
    ("langgraph", "langchain"),
    ("langgraph async", "langchain"),
    ("langgraph", "langchain-oldest"),
    ("langchain", "langchain"),
    ("openai-agents", "openai-agents"),
    ("mcp", "mcp-1"),
]
#: Loops with a place, beside those of FRAMEWORKS.
REPLACING = [
    ("agentscope", "agentscope"),
    ("agno", "agno"),
    ("anthropic_runner", "anthropic"),
    ("claude_agent_sdk", "claude-agent-sdk"),
    ("crewai", "crewai"),
    ("crewai text", "crewai"),
    ("dapr_agents", "dapr-agents"),
    ("dspy", "dspy"),
    ("dspy v2", "dspy"),
    ("google_adk", "google-adk"),
    ("google_functions", "google-genai"),
    ("haystack", "haystack"),
    ("llama_index", "llama-index"),
    ("openai_agents", "openai-agents"),
    ("pydantic_ai", "pydantic-ai"),
    ("semantic_kernel", "semantic-kernel"),
    ("smolagents", "smolagents"),
    ("strands", "strands"),
]
#: Older versions of some.
OLDER = [
    ("agno", "agno-oldest"),
    ("anthropic_runner", "anthropic-0.125"),
    ("anthropic_runner async", "anthropic-0.125"),
    ("openai_agents", "openai-agents-0.18"),
    ("openai_agents", "openai-agents-0.8"),
    ("openai_agents", "openai-agents-0.7"),
    ("pydantic_ai", "pydantic-ai-oldest"),
    ("strands", "strands-1.61"),
]
#: Loops in which the claim check is tried in CI, one of each form that a result takes on its way to the model; in the
#: others it stands where the ceiling does.
IN_CI = ("claude_agent_sdk", "crewai text", "dspy", "google_adk", "semantic_kernel", "smolagents")
STORING = [
    pytest.param(*row, marks=() if row in REPLACING and row[0] in IN_CI else pytest.mark.weekly)
    for row in (*REPLACING, *OLDER)
]
#: Frameworks that end their own span, on which the reading stands, before they hand the text of an exception back.
ENDING = ("semantic_kernel",)


def open_spans(told: Json, kind: str) -> list[Json]:
    """The spans on which what was handed back is written: of a call that fails, and of one that returns too much."""
    spans: list[Json] = told["spans"]
    return spans[1:] if kind in ENDING else spans


def run(environment: Callable[[str], Environment], kind: str, name: str, **variables: str) -> Json:
    """Run the program; of what was said, only what is about the long exception."""
    calls = [ToolCall("call_0", "fail", {"n": LONG}), ToolCall("call_1", "fail", {"n": 10})]
    program = Path(__file__).with_name("failures_program.py")
    with OpenAIServer(call_once(calls)) as server:
        done = environment(name).run(
            program,
            kind,
            server.base_url,
            env={"AGENT_OTEL": "1", "LANGSMITH_TRACING": "false", "PYTHONPATH": str(ROOT), **variables},
            check=True,
        )
    told: Json = json.loads(done.stdout.splitlines()[-1])
    assert told["errors"] == {}
    if not told["said"]:
        results = server.tool_results()
        told["said"] = [{"text": results[id_], "is_error": True} for id_ in ("call_0", "call_1")]
    assert len(told["said"]) == 2
    assert told["said"][1]["text"].endswith(("x" * 10, "\n Please fix your mistakes."))
    return told


def long_span(told: Json) -> Json:
    """The span of the long one: that of the call with the larger argument."""
    span: Json = max(told["spans"], key=lambda each: each["tool.args.bytes"])
    return span


@pytest.mark.parametrize(("kind", "name"), FRAMEWORKS)
def test_without_a_remedy_it_passes_and_is_counted(
    environment: Callable[[str], Environment], kind: str, name: str
) -> None:
    told = run(environment, kind, name)
    text = told["said"][0]["text"]
    assert "x" * LONG in text
    assert told["large"] == {"warn": 1}
    span = long_span(told)
    assert span.get("tool.result.bytes" if kind == "mcp" else "tool.result.handed_back_bytes") == len(text)
    assert span["error.type"] in ("ValueError", "langchain_core.tools.base.ToolException", "tool_error")


class Turns:
    """A model that asks for a call that raises, then for one that returns as much, and then answers."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        failing = [] if kind.endswith(" results") else [self.call("call_0", "fail", LONG)]
        answers = [self.answer()] * (2 if kind == "dspy" else 1)  # it asks for the answer once more at the end
        self.replies = iter([*failing, self.call("call_1", "give", LONGER), *answers])

    def call(self, call_id: str, name: str, size: int) -> Reply:
        """Return the call in the framework's way."""
        if self.kind == "crewai text":
            return f'Thought: I look it up.\nAction: {name}\nAction Input: {{"n": {size}}}'
        if self.kind == "dspy":
            return fields(next_thought="so", next_tool_name=name, next_tool_args=json.dumps({"n": size}))
        if self.kind == "dspy v2":
            return fields(next_thought="so", tool_calls=json.dumps([{"name": name, "args": {"n": size}}]))
        prefix = "mcp__toolbox__" if self.kind == "claude_agent_sdk" else ""
        return [ToolCall(call_id, prefix + name, {"n": size})]

    def answer(self) -> Reply:
        """Return the last answer."""
        if self.kind == "crewai text":
            return "Thought: I know.\nFinal Answer: done"
        if self.kind == "dspy":
            return fields(
                next_thought="so", next_tool_name="finish", next_tool_args="{}", reasoning="so", answer="done"
            )
        if self.kind == "dspy v2":
            return fields(next_thought="so", tool_calls='[{"name": "submit", "args": {"answer": "done"}}]')
        return [ToolCall("call_2", "final_answer", {"answer": "done"})] if self.kind == "smolagents" else "done"

    def __call__(self, request: Json) -> Reply:
        """Answer a request."""
        if "response_format" in request:  # Dapr Agents' summary of what was said, which is made at the end
            return json.dumps({"summary": "Letters."})
        return next(self.replies)


def run_loop(environment: Callable[[str], Environment], kind: str, name: str, **variables: str) -> tuple[Json, str]:
    """Run an agent whose tools raise and return too much; return its report and the requests to the model."""
    kinds: dict[str, Any] = dict.fromkeys(
        ("anthropic_runner", "anthropic_runner async", "claude_agent_sdk"), AnthropicServer
    )
    kinds |= dict.fromkeys(("google_adk", "google_adk results", "google_functions"), GeminiServer)
    if kind == "claude_agent_sdk" and os.environ.get("CI") != "true":
        pytest.skip("370 MB to install, in CI only")
    with kinds.get(kind, OpenAIServer)(Turns(kind)) as server:
        done = environment(name).run(
            Path(__file__).with_name("failures_program.py"),
            kind,
            server.base_url,
            env={"AGENT_OTEL": "1", "PYTHONPATH": str(ROOT), **QUIET, **variables},
            check=True,
        )
    told: Json = json.loads(done.stdout.splitlines()[-1])
    assert told["errors"] == {}
    assert told["large"]["warn"] == len(told["spans"])
    return {**told, "stderr": done.stderr}, json.dumps(server.requests)


@pytest.mark.parametrize(("kind", "name"), [*REPLACING, *OLDER])
def test_the_ceiling_holds_for_it_in_these_loops(
    environment: Callable[[str], Environment], kind: str, name: str
) -> None:
    told, sent = run_loop(environment, kind, name, AGENT_OTEL_RESULT_CEILING_BYTES="10000")
    assert not re.search("x{1000}|y{1000}", sent)
    sizes = {int(size) for size in re.findall(r"size_bytes\W+(\d+)", sent)}
    assert len(sizes) == 2
    assert LONG <= min(sizes) < LONG + 900  # with the words of the framework
    assert max(sizes) == LONGER
    assert "AGENT_OTEL" not in told["stderr"]
    assert told["large"]["ceiling"] == 2
    for span in open_spans(told, kind):
        assert (span["tool.result.truncation.layer"], span["tool.result.truncation.reason"]) == ("remedy", "ceiling")
        assert 100 < span["tool.result.handed_back_bytes"] < 1000
    failed, given = told["spans"]
    assert failed["error.type"] != "result_too_large"
    assert given["error.type"] in ("result_too_large", "tool_error")
    assert given["tool.result.bytes"] == LONGER


def test_the_ceiling_holds_for_results_where_exceptions_end_the_run(environment: Callable[[str], Environment]) -> None:
    told, sent = run_loop(environment, "google_adk results", "google-adk-1.15", AGENT_OTEL_RESULT_CEILING_BYTES="10000")
    assert not re.search("y{1000}", sent)
    assert re.findall(r"size_bytes\W+(\d+)", sent) == [str(LONGER)]
    assert told["large"]["ceiling"] == 1


@pytest.mark.parametrize(("kind", "name"), STORING)
def test_the_claim_check_stores_it_in_these_loops(
    environment: Callable[[str], Environment], kind: str, name: str
) -> None:
    told, sent = run_loop(environment, kind, name, AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_BUDGET="60")
    assert not re.search("x{40000}|y{40000}", sent)
    assert "without effect" not in told["stderr"]
    for span in open_spans(told, kind):
        assert span["tool.result.ref"] in sent
        assert span["tool.result.truncation.reason"] == "claim_check"


@pytest.mark.parametrize(("kind", "name"), FRAMEWORKS)
def test_the_ceiling_holds_for_it(environment: Callable[[str], Environment], kind: str, name: str) -> None:
    told = run(environment, kind, name, AGENT_OTEL_RESULT_CEILING_BYTES="60000")
    said = told["said"][0]
    found = json.loads(said["text"])
    assert (found["error"], found["tool"], found["limit_bytes"]) == ("result_too_large", "fail", 60_000)
    assert LONG <= found["size_bytes"] < LONG + 200
    assert said["is_error"]
    assert told["large"] == {"warn": 1, "ceiling": 1}
    span = long_span(told)
    assert span["error.type"] != "result_too_large"
    assert (span["tool.result.truncation.layer"], span["tool.result.truncation.reason"]) == ("remedy", "ceiling")
    assert span["tool.result.handed_back_bytes"] == len(said["text"])


@pytest.mark.parametrize(("kind", "name"), FRAMEWORKS)
def test_the_claim_check_stores_it(environment: Callable[[str], Environment], kind: str, name: str) -> None:
    told = run(environment, kind, name, AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_BUDGET="60")
    said = told["said"][0]
    stored = re.search(r'\n\[\d+ of (\d+) bytes of fail\'s result shown; .*ref="(claim:[^"]+)"', said["text"])
    assert stored is not None
    assert LONG <= int(stored[1]) < LONG + 200
    assert said["is_error"]
    span = long_span(told)
    assert span["tool.result.ref"] == stored[2]
    assert span["tool.result.truncation.reason"] == "claim_check"
