"""Tools that OpenAI runs on a server of MCP: its response has the results, and no request needs to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_otel.testing.servers import openai
from agent_otel.testing.servers.openai import OpenAIServer
from agent_otel.testing.servers.scripted import Answer, answer
from tests.contract.cases import KEY_BYTES
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_otel.testing.servers.openai import Json
    from agent_otel.testing.servers.scripted import Endpoint
    from tests.environments import Environment

PROGRAM = """
import asyncio, json, sys
from tests.contract.child import Messages, Telemetry
messages, telemetry = Messages(), Telemetry()
import agent_otel, openai

given = dict(base_url=sys.argv[1], api_key="scripted", max_retries=0)
tool = {"type": "mcp", "server_label": "records", "server_url": "https://records.invalid/mcp"}
sent = dict(model="scripted", input="go", tools=[{**tool, "require_approval": "never"}])

async def later():
    return (await openai.AsyncOpenAI(**given).responses.create(**sent)).output_text

def streamed():
    with openai.OpenAI(**given).responses.stream(**sent) as stream:
        return stream.get_final_response().output_text

def again():
    client = openai.OpenAI(**given)
    first = client.responses.create(**sent)
    history = [{"role": "user", "content": "go"}, *(item.model_dump(exclude_none=True) for item in first.output)]
    return client.responses.create(**{**sent, "input": [*history, {"role": "user", "content": "and"}]}).output_text

STYLES = {
    "sync": lambda: openai.OpenAI(**given).responses.create(**sent).output_text,
    "async": lambda: asyncio.run(later()),
    "raw": lambda: openai.OpenAI(**given).responses.with_raw_response.create(**sent).parse().output_text,
    "stream": streamed,
    "the history again": again,
}
found = {}
for name, style in STYLES.items():
    with agent_otel.execution(f"run {name}", workflow="office"):
        said = style()
    found[name] = {"said": said, "spans": telemetry.spans(), "metrics": telemetry.metrics()}
from agent_otel._internal import errors
print(json.dumps([found, messages.take(), dict(errors.errors)]))
"""
#: Style -> the number of responses that have a call of their own.
STYLES = {"sync": 1, "async": 1, "raw": 1, "stream": 1, "the history again": 2}


class HostedServer(OpenAIServer):
    """A model that has called two tools of a server: one gave a result, the other failed."""

    calls = 0

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the one API."""
        return {"/v1/responses": self._answer}

    def _answer(self, request: Json, _: Any) -> Answer:
        type(self).calls += 1
        common = {"type": "mcp_call", "server_label": "records", "arguments": '{"key":"größe"}'}
        items: list[Json] = [
            {**common, "id": f"mcp_{self.calls}a", "name": "lookup", "output": LOOKUP, "error": None},
            {**common, "id": f"mcp_{self.calls}b", "name": "broken", "output": None, "error": "no record"},
            *openai._items("done"),
        ]
        whole = openai._response(request, "done", items)
        return answer(request, whole, openai.numbered(_events(request, items)))


def _events(request: Json, items: list[Json]) -> Iterator[Json]:
    """Yield the events of a stream; the calls' own have no deltas."""
    begun = openai._response(request, "done", [], "in_progress")
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
        if item["type"] == "message":
            yield from openai._message_events(item, {"item_id": item["id"], "output_index": index})
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {**openai._response(request, "done", items), "id": begun["id"]}}


@pytest.mark.parametrize("name", ["openai-agents", "openai-2"])
def test_each_result_that_the_response_has_is_one_call(environment: Callable[[str], Environment], name: str) -> None:
    with HostedServer(lambda _: "done") as server:
        done = environment(name).run(PROGRAM, server.base_url, env={"AGENT_OTEL": "1"}, check=True)
    found, messages, errors = json.loads(done.stdout.splitlines()[-1])
    assert (messages, errors) == ([], {})
    for style, responses in STYLES.items():
        spans = [span for span in found[style]["spans"] if span["name"].startswith("execute_tool")]
        assert [span["name"] for span in spans] == ["execute_tool lookup", "execute_tool broken"] * responses, style
        for number, span in enumerate(spans):
            attributes = span["attributes"]
            assert attributes["tool.result.seen_at"] == "model_response"
            assert attributes["gen_ai.tool.type"] == "extension"
            assert attributes["tool.args.bytes"] == KEY_BYTES
            assert attributes["tool.result.bytes"] == (len("no record") if number % 2 else LOOKUP_BYTES)
            assert attributes.get("error.type") == ("tool_error" if number % 2 else None)
        assert _sum(found[style], "agent_otel.tool.result.size", "lookup") == responses * LOOKUP_BYTES
        assert _sum(found[style], "agent_otel.tool.result.delivered", "lookup") == responses * LOOKUP_BYTES
        calls = [m["sum"] for m in found[style]["metrics"] if m["name"] == "agent_otel.execution.tool_calls"]
        assert calls == [2 * responses]


def _sum(report: Json, name: str, tool: str) -> Any:
    return sum(
        metric["sum"]
        for metric in report["metrics"]
        if metric["name"] == name and metric["attributes"].get("gen_ai.tool.name") == tool
    )
