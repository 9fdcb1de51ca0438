"""An agent's conversation: tools are called, the model is asked, the state is carried.

Everything goes through the doors that adapters use.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import agent_otel
from agent_otel import semconv
from agent_otel.core import handler, step_handler
from agent_otel.core.cost.usage import Usage
from agent_otel.core.types import (
    HANDED_BACK,
    AskedCall,
    Invocation,
    ModelReader,
    ModelRequest,
    Payload,
    RequestPart,
    Step,
    ToolCall,
    ToolReader,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: The model of all agents, and its context window in tokens.
MODEL = "gpt-4o"
WINDOW = 128_000

_INNER = ToolReader(lambda invocation: invocation.args[0], ToolResult)
_OUTER = ToolReader(lambda invocation: invocation.args[0], ToolResult, station=HANDED_BACK, awaits=_INNER)
_REFUSING = ToolReader(
    lambda invocation: invocation.args[0],
    lambda text: ToolResult(text, error_type=semconv.TOOL_ERROR, raised=True, is_refused=True),
)
_MODEL = ModelReader(
    lambda invocation: invocation.args[0],
    lambda response: response["usage"],
    lambda response: [AskedCall("tool")] if response["asks"] else [],
)
_TOOLS = [{"name": f"tool_{number}", "description": "Does something. " * 12} for number in range(8)]


class Transcript:
    """One execution of a workflow, which its agent's messages make up."""

    def __init__(self, runtime: str, workflow: str, agent: str, execution: str) -> None:
        self._runtime = runtime
        self._workflow = workflow
        self._agent = agent
        self._execution = execution
        self._calls = 0
        self._head = [
            RequestPart(semconv.SYSTEM, f"You are {agent}. " * 60),
            RequestPart(semconv.TOOLS, _TOOLS),
            RequestPart(semconv.USER, f"{execution}: please help. " * 20),
        ]
        self.parts = list(self._head)
        #: What the runtime carries from turn to turn.
        self.state: dict[str, Any] = {"messages": [{"role": "user", "content": self._head[-1].value}]}

    def use(  # noqa: PLR0913 - what a call has
        self,
        tool: str,
        arguments: dict[str, Any],
        result: object,
        *,
        seconds: float = 0.0,
        delivered: Callable[[str], str] | None = None,
        twice: bool = False,
    ) -> None:
        """Call a tool; ``delivered`` is what the request to the model makes of its text, ``twice`` carries it twice."""
        call_id = self._next_id()
        with agent_otel.tool_call(tool, arguments, call_id=call_id, agent=self._agent) as call:
            time.sleep(seconds)
            kept = call.result(result)
        self._answer(tool, call_id, arguments, _text(kept), delivered)
        if twice:
            self.state.setdefault("documents", []).append(_text(kept))

    def fail(self, tool: str, arguments: dict[str, Any], error: Exception, *, seconds: float = 0.0) -> None:
        """Call a tool that raises."""
        call_id = self._next_id()
        try:
            with agent_otel.tool_call(tool, arguments, call_id=call_id, agent=self._agent):
                time.sleep(seconds)
                raise error
        except type(error):
            self._answer(tool, call_id, arguments, f"Error: {error}", None)

    def refuse(self, tool: str, arguments: dict[str, Any]) -> None:
        """Ask for a call with arguments that the framework refuses."""
        call = ToolCall(tool, arguments, self._next_id(), self._agent)
        visit = handler.enter_tool(_REFUSING, Invocation(None, (call,), {}))
        assert isinstance(visit, handler.Visit)
        with visit:
            visit.returned("Error: query is missing")
        self._answer(tool, str(call.call_id), arguments, "Error: query is missing", None)

    def use_framework(self, tool: str, arguments: dict[str, Any], produced: str, handed_back: str) -> None:
        """Call a tool through a framework that keeps less of its result than there was."""
        call = ToolCall(tool, arguments, self._next_id(), self._agent)
        outer = handler.enter_tool(_OUTER, Invocation(None, (call,), {}))
        assert isinstance(outer, handler.Visit)
        with outer:
            inner = handler.enter_tool(_INNER, Invocation(None, (call,), {}))
            assert isinstance(inner, handler.Visit)
            with inner:
                inner.returned(produced)
            outer.returned(handed_back)
        self._answer(tool, str(call.call_id), arguments, handed_back, None)

    def ask(self, cached_tokens: int = 0, *, is_final: bool = False) -> None:
        """Send the conversation to a model, which answers with a short text; unless it is final, with calls, too."""
        self._request(self._asked(), cached_tokens, is_final=is_final)
        self.parts.append(RequestPart(semconv.ASSISTANT, "Let me look further into that. " * 4))

    def ask_with_everything_twice(self) -> None:
        """Send the conversation with each message two times in it."""
        self._request(self._asked(doubled=True), 0)

    def redefine(self, properties: dict[str, Any]) -> None:
        """Begin with tools of which one has these properties."""
        definition = {"name": "web_search", "input_schema": {"type": "object", "properties": properties}}
        parts = [self._head[0], RequestPart(semconv.TOOLS, [definition]), self._head[2]]
        self._request(ModelRequest(parts, agent=self._agent), 0, is_final=True)

    def forget(self) -> None:
        """Send only what the user says next, without the results of the latest calls and what went before."""
        for number in range(2):
            with agent_otel.tool_call(
                "web_search", {"late": number}, call_id=self._next_id(), agent=self._agent
            ) as call:
                call.result(f"Ticket {number} of {self._execution} is open.")
        says = RequestPart(semconv.USER, f"And what about the rest, after {self._calls} calls?")
        self._request(ModelRequest([*self._head[:2], says], agent=self._agent), 0)

    def chat_in_a_window(self) -> None:
        """Ask three questions, and for the third one leave all but the last three messages out."""
        self.ask(is_final=True)
        for number in (2, 3):
            self.parts.append(RequestPart(semconv.USER, f"Question {number} of {self._execution}?"))
            self.parts = [*self._head[:2], *self.parts[-3:]] if number > 2 else self.parts
            self.ask(is_final=True)

    def clear(self) -> None:
        """Put a placeholder in place of the last result, which the model has got already."""
        at = max(at for at, part in enumerate(self.parts) if part.part == semconv.TOOL_RESULTS)
        self.parts[at] = self.parts[at]._replace(value="[cleared]")

    def answer_a_stranger(self) -> None:
        """Put a result into the conversation that no tool call led to."""
        self.parts.append(RequestPart(semconv.TOOL_RESULTS, "from another process", f"stranger-{self._execution}"))

    def carry(self, activity: str | None, direction: str) -> int:
        """Hand the state to the runtime; return its bytes."""
        agent_otel.payload(
            self.state, runtime=self._runtime, direction=direction, workflow=self._workflow, activity=activity
        )
        return len(json.dumps(self.state, separators=(",", ":")))

    def note_history(self, history_bytes: int) -> None:
        """Tell how large the runtime's own history of this execution is."""
        step_handler.payload(self._step(None), Payload(semconv.HISTORY, history_bytes))

    def refused(self, activity: str, direction: str, payload_bytes: int, message: str) -> None:
        """Have the runtime refuse what it was given to carry; more than once, it retries."""
        carried = Payload(direction, payload_bytes, again=True)
        step_handler.payload(self._step(activity), carried, refused=message)

    def _step(self, activity: str | None) -> Step:
        return Step(self._runtime, activity, self._workflow, self._execution)

    def _next_id(self) -> str:
        self._calls += 1
        return f"{self._execution}-{self._calls}"

    def _answer(
        self, tool: str, call_id: str, arguments: dict[str, Any], text: str, delivered: Callable[[str], str] | None
    ) -> None:
        sent = text if delivered is None else delivered(text)
        self.parts.append(RequestPart(semconv.TOOL_CALL_ARGUMENTS, json.dumps(arguments)))
        self.parts.append(RequestPart(semconv.TOOL_RESULTS, sent, call_id))
        self.state["messages"].append({"role": "tool", "tool_call_id": call_id, "name": tool, "content": text})

    def exceed(self) -> None:
        """Send the conversation to a model that refuses it because of its length."""
        refusal = ValueError(f"This model's maximum context length is {WINDOW} tokens.")
        visit = handler.enter_model(_MODEL, Invocation(None, (self._asked(),), {}))
        assert visit is not None
        with contextlib.suppress(ValueError), visit:
            raise refusal

    def _asked(self, **more: Any) -> ModelRequest:
        return ModelRequest(list(self.parts), agent=self._agent, model=MODEL, **more)

    def _request(self, request: ModelRequest, cached_tokens: int, *, is_final: bool = False) -> None:
        visit = handler.enter_model(_MODEL, Invocation(None, (request,), {}))
        assert visit is not None
        tokens = sum(len(_text(part.value)) for part in request.parts) // 4
        with visit:
            visit.returned({"usage": Usage(tokens, min(cached_tokens, tokens), 40), "asks": not is_final})


def _text(result: object) -> str:
    return result if isinstance(result, str) else json.dumps(result)
