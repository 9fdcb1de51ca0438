"""OpenAI's SDK: chat completions and responses, sync, async, streamed, parsed and raw, OpenAI's and Azure's clients.

Read at ``request`` of the base clients, which every call style passes exactly once, before HTTP, as plain data.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from agent_otel._internal.object_kinds import fields, is_dict, is_text, listed, properties, text
from agent_otel.core.types import AgentRun, Invocation, RequestPart, RunReader, ToolReader, ToolResult
from agent_otel.integrations.model_sdks import stainless
from agent_otel.integrations.model_sdks.stainless import base_client, delay, refused, usage
from agent_otel.integrations.readers import call_at, delivering
from agent_otel.integrations.registry import Candidate, Integration, Site
from agent_otel.integrations.request_bodies import form_at
from agent_otel.messages.openai import hosted, passes
from agent_otel.semconv import TOOL_RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent_otel.core.types import Replacement


__all__ = ["ENTRY", "delay", "refused", "request"]

REALTIME = Site(
    Candidate("openai.resources.realtime.realtime", sent="AsyncRealtimeConnection.send RealtimeConnection.send"),
    minimum="3.0",
)
RESPONSES = Site(
    Candidate("openai.resources.responses.responses", sent="AsyncResponsesConnection.send ResponsesConnection.send"),
    minimum="3.45",
)

ENTRY = Integration(
    "openai",
    minimum="1.40",
    tested="2.54 and 3.52",
    uncovered="results of the tools that OpenAI runs, except for `mcp_call`; Realtime sessions and responses over "
    "WebSockets, except for sent results; `responses.compact`, tokens of background responses, assistants, batches, "
    "embeddings",
    sites=(
        base_client("openai"),
        REALTIME,
        RESPONSES,
        Site(
            Candidate(
                "openai.lib.responses_tool_runner",
                execute="ResponsesToolRunner._execute_function AsyncResponsesToolRunner._execute_function",
                runner_run="ResponsesToolRunner.iterate AsyncResponsesToolRunner.iterate",
            ),
            minimum="3.45",
        ),
    ),
)
GROQ = Integration(  # the same generator; a stream has its usage in a field of Groq's own
    "groq",
    minimum="0.13",
    tested="1.7",
    uncovered="embeddings, audio and batches",
    sites=(base_client("groq", "groq_request"),),
)
TOGETHER = Integration(  # the same generator and chat completions
    "together",
    minimum="2.0",
    tested="3.1",
    uncovered="completions of a text, embeddings and images",
    sites=(base_client("together"),),
)


def _changed(event: Any, changes: Mapping[str, Any], earlier: Sequence[Any]) -> Any:
    """Set the place of an event, and the items of earlier responses in a last event."""
    stainless.set_values(event, changes)
    if text(fields(event).get("type")) in stainless.ENDED:
        done = (item for item in earlier if text(fields(item).get("type")) == "response.output_item.done")
        event.response.output = [*(item.item for item in done), *event.response.output]
    return event


request = stainless.reader(lambda options: form_at(options.url), _changed, hosted=hosted, passes=passes)
groq_request = request._replace(
    usage=lambda response: usage(response) or usage(fields(response).get("x_groq")),
    passes=lambda item: fields(item).get("x_groq") is None and passes(item),
)

# The tool runner of OpenAI's SDK, which calls registered functions in a loop over the Responses API. Produced is read
# at ``_execute_function``, which returns the item that the model is sent. An exception of a function ends the run.


def _replace(_: Any, replacement: Replacement, invocation: Invocation) -> dict[str, Any]:
    """Return the item of a replacement; the runner has made the one that it stands for."""
    call_id = invocation.arg(1, "item").call_id
    return {"type": "function_call_output", "call_id": call_id, "output": replacement.text}


def _inject(invocation: Invocation, values: dict[str, Any]) -> None:
    """Put arguments into a copy of the run's state, from which the function gets them."""
    run, call_id = invocation.arg(0, "run"), invocation.arg(1, "item").call_id
    given = run.arguments[call_id]
    renewed = copy.copy(run)
    known = {**given, **values} if is_dict(given) else given.model_copy(update=values)
    renewed.arguments = {**run.arguments, call_id: known}
    invocation.put(0, "run", renewed)


def _parameters(invocation: Invocation) -> Iterable[str]:
    tool = invocation.instance._functions[invocation.arg(1, "item").name].tool
    return properties(fields(tool).get("parameters"))


execute = ToolReader(
    call_at(1, "item", "name", "arguments", "call_id"),
    lambda item: ToolResult(fields(item).get("output", "")),
    replace=_replace,
    parameters=_parameters,
    inject=_inject,
    validated=lambda invocation: fields(invocation.arg(0, "run").arguments[invocation.arg(1, "item").call_id]),
)
runner_run = RunReader(lambda _: AgentRun())  # a runner has no name

# OpenAI's APIs over WebSockets, Realtime and Responses: the results that a program sends. Read at ``send`` of each
# connection. Realtime keeps the conversation: no request repeats it.


def _results(invocation: Invocation) -> Iterator[RequestPart]:
    event = fields(invocation.arg(0, "event"))
    kind = text(event.get("type"))
    items = [event.get("item")] if kind == "conversation.item.create" else []
    for item in map(fields, listed(event.get("input")) if kind == "response.create" else items):
        if (text(item.get("type")) or "").endswith("_call_output") and is_text(item.get("output")):
            yield RequestPart(TOOL_RESULTS, item["output"], item.get("call_id"))


sent = delivering(_results)
