"""Google's client, where requests leave for the model, its function calling, and the Agent Development Kit on it."""

# ruff: noqa: D102 - a test's name and body say it
from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agent_otel.testing.servers.providers import CACHED_TOKENS, GeminiServer, GeminiServerWithIds
from tests.contract.cases import (
    BROKEN,
    CANCELLED,
    DELEGATED,
    DELEGATED_BYTES,
    KEY,
    KEY_BYTES,
    WIRE,
    Case,
    Cut,
    Record,
    failed,
    looked_up,
)
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.toolbox import LOOKUP, LOOKUP_BYTES
from tests.rows import each_row

if TYPE_CHECKING:
    from tests.contract.cases import Json
    from tests.contract.suite import Runs

# {"functionDeclarations":[{"name":"lookup"}]}, and the list's brackets
TOOLS_BYTES = 44 + 2
# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="delegate")
# 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
SHORTENED = 195
# The arguments, {"rows":2}, are 10 bytes.
TABLE = Case(("table",), (("call_20", "table", {"rows": 2}),), (Record("table", "call_20", 28, args=10),))


class TestGoogle(Delivery):
    """google-genai 3 and a model that gives its calls no ids."""

    agent = "google_client"
    environment = "google-genai"
    server: ClassVar[type[GeminiServer]] = GeminiServer
    integrations: ClassVar = {
        "google-genai": ["google.genai._api_client:BaseApiClient.request", "google.genai._api_client:retry_args"]
    }
    attributes: ClassVar = {"gen_ai.conversation.id": "run-1"}
    knows_ids = False
    knows_names = True
    outer = False
    imports_us = True
    own: ClassVar = {
        "two megabytes": WHOLE,
        "structured": TABLE,
        "streamed": looked_up("lookup", "call_21", "sync", setting="stream"),
        "cut by the program": looked_up("lookup", "call_22", setting="cut"),
        "several of one tool": Case(
            ("big",),
            (("call_23", "big", {"n": 4000}), ("call_24", "big", {"n": 900}), ("call_25", "big", {"n": 2000})),
            (
                Record("big", "call_23", 4000, args=10),
                Record("big", "call_24", 900, args=9),
                Record("big", "call_25", 2000, args=10),
            ),
        ),
    }
    cuts: ClassVar = {"cut by the program": (Cut("lookup", "model_request", "shrunk", SHORTENED),)}

    @each_row("name", ["sync", "async", "stream", "streamed"])
    def test_each_part_of_a_request_is_measured_once(self, runs: Runs, name: str) -> None:
        prompt = len(self.cases()[name].plan()["prompt"].encode())
        declared = len(self.cases()[name].tools[0]) - len("lookup")
        found = {
            metric["attributes"]["part"]: (metric["count"], metric["sum"])
            for metric in runs.on["cases"][name]["metrics"]
            if metric["name"] == "agent_otel.model.request.size"
        }
        assert found == {
            "system": (2, 2 * 11),
            "user": (2, 2 * prompt),
            "tools": (2, 2 * (TOOLS_BYTES + declared)),
            "assistant": (2, 0),
            "tool_arguments": (2, KEY_BYTES),
            "tool_results": (2, LOOKUP_BYTES),
        }

    @each_row(("name", "whole"), [("sync", 2), ("async", 2), ("stream", 2)])
    def test_cached_tokens_are_counted(self, runs: Runs, name: str, whole: int) -> None:
        found = [m for m in runs.on["cases"][name]["metrics"] if m["name"] == "agent_otel.model.cached_tokens"]
        assert sum(metric["sum"] for metric in found) == whole * CACHED_TOKENS


class TestGoogleWithIds(TestGoogle):
    """A model that gives its calls ids."""

    server = GeminiServerWithIds
    knows_ids = True


@pytest.mark.weekly
class TestGoogle2(TestGoogle):
    """google-genai 2."""

    environment = "google-adk"


class TestGoogleOldest(TestGoogle):
    """google-genai 1.20, which has no retries."""

    environment = "google-genai-1.20"
    integrations: ClassVar = {"google-genai": ["google.genai._api_client:BaseApiClient.request"]}


class TestFunctions(Delivery):
    """Automatic function calling. It drops the ids, which the responses have."""

    agent = "google_functions"
    environment = "google-genai"
    server: ClassVar[type[GeminiServer]] = GeminiServerWithIds
    integrations: ClassVar = {
        "google-genai": [
            "google.genai._api_client:BaseApiClient.request",
            "google.genai._extra_utils:invoke_function_from_dict_args",
        ],
    }
    attributes: ClassVar = {"gen_ai.conversation.id": "run-1"}
    knows_names = True
    #: The text of a failure is inside an object.
    reformatted: ClassVar = ("raises in async", "raises in sync")
    outer = False
    reads_failures = True
    origin = None
    imports_us = True
    own: ClassVar = {"two megabytes": WHOLE, "structured": TABLE}

    def expected(self, record: Record, runs: Runs) -> Record:
        """Return a record whose failure has the bytes of the text, inside the object that the provider requires."""
        found = super().expected(record, runs)
        if record.handed_back != WIRE:
            return found
        return replace(found, handed_back=len(json.loads(runs.wire[str(record.call_id)])["error"].encode()))


@pytest.mark.weekly
class TestFunctions2(TestFunctions):
    """The same of google-genai 2."""

    environment = "google-adk"
    server = GeminiServer
    knows_ids = False


_NODES = ("as a node", "as a node that raises", "as a node that waits for approval")


def _node(tool: str, call_id: str, produced: int | None = None, error: str | None = None, **more: Any) -> Case:
    """Return a case of a tool that is a node of a workflow."""
    records = (Record(tool, None, produced, error=error, agent="flow"),)
    return Case((tool,), ((call_id, tool, KEY),), records, setting="node", unsent=(call_id,), **more)


class TestAdk(Delivery):
    """An agent of the kit, whose own span of a call is open around the tool; the kit makes up ids for itself."""

    agent = "google_adk"
    environment = "google-adk"
    server: ClassVar[type[GeminiServer]] = GeminiServer
    integrations: ClassVar = {
        "google-genai": ["google.genai._api_client:BaseApiClient.request"],
        "google-adk": [
            "google.adk.runners:Runner.run_async",
            "google.adk.flows.llm_flows.tools._caller:_call_tool_async",
            "google.adk.flows.llm_flows.base_llm_flow:BaseLlmFlow._call_llm_async",
            "google.adk.flows.llm_flows.tools._error_handler:run_on_tool_error_callbacks",
            "google.adk.workflow._tool_node:_ToolNode._run_tool_with_plugin_callbacks",
        ],
    }
    agent_name = "clerk"
    has_runs = True
    waiting: ClassVar = {"waiting for approval": 1, "as a node that waits for approval": 1}
    span = "execute_tool {tool}"
    scope = "gcp.vertex.agent"
    knows_ids = False
    knows_names = True
    flagged = "BrokenError"
    own: ClassVar = {
        "two megabytes": WHOLE,
        "structured": TABLE,
        "in the model's object": looked_up("wrapped", "call_21"),
        "answered by a callback": looked_up("lookup", "call_22", setting="answer"),
        "shortened by a callback": Case(
            ("lookup",),
            (("call_23", "lookup", KEY),),
            (Record("lookup", "call_23", LOOKUP_BYTES, handed_back=SHORTENED, cut=("framework", "shrunk")),),
            setting="shorten",
        ),
        "shortened in the request": looked_up("lookup", "call_24", setting="trim"),
        "converted by a callback": failed("broken_later", "call_25", error="TOOL_ERROR", setting="forgive"),
        "two turns": looked_up("lookup", "call_26", setting="twice"),
        "waiting for approval": Case(
            ("approved",), (("call_27", "approved", KEY),), (), said="1 to approve", unsent=("call_27",)
        ),
        "answered another time": Case(
            ("pending",),
            (("call_28", "pending", KEY),),
            (Record("pending", "call_28", 4),),
            said="unanswered",
            unsent=("call_28",),
        ),
        "agent as a tool": Case(
            ("delegate",),
            # {"request":"…"} in place of {"input":"…"}
            (("call_29", "delegate", {"request": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES + 2), ASSISTANT),
        ),
        "unknown": Case(("big",), (("call_31", "made_up", KEY),), ()),
        # No model asks for these, and none gets what they return.
        "as a node": _node("lookup", "call_32", LOOKUP_BYTES, said=LOOKUP),
        "as a node that raises": _node("broken", "call_33", error=BROKEN, said=None, origin=0),
        "as a node that waits for approval": Case(
            ("approved",), (("call_34", "approved", KEY),), (), setting="node", said="", unsent=("call_34",)
        ),
    }
    scopes: ClassVar = dict.fromkeys(_NODES, "agent_otel")
    cuts: ClassVar = {
        "shortened in the request": (Cut("lookup", "model_request", "shrunk", SHORTENED),),
    }

    def read(self, attributes: Json) -> Record:
        record = super().read(attributes)
        made_up = str(record.call_id).startswith(("adk-", "<not specified>")) or str(record.call_id).count("-") == 4
        return replace(record, call_id=None) if made_up else record

    def on_span(self, record: Record) -> Record:
        unanswered = record.error in ("BrokenError", CANCELLED) or record.tool == "pending"
        return super().on_span(replace(record, call_id=None) if unanswered else record)

    def test_each_call_is_timed_once(self, runs: Runs, case_name: str) -> None:
        """By the kit itself, which times what a human is asked about and what there is no tool for as well."""
        metrics = runs.on["cases"][case_name]["metrics"]
        calls = [m["count"] for m in metrics if m["name"] == "gen_ai.execute_tool.duration"]
        case = self.cases()[case_name]
        # The kit times a call that waits, too, but no node.
        assert sum(calls) == max(0 if case.setting == "node" else len(case.calls), len(case.records))


class TestAdkWithIds(TestAdk):
    """A model that gives its calls ids, which are kept from end to end."""

    server = GeminiServerWithIds
    knows_ids = True


class TestAdkOldest(TestAdk):
    """The kit's 1.15, which has no metrics of its own."""

    environment = "google-adk-1.15"
    integrations: ClassVar = {
        "google-genai": ["google.genai._api_client:BaseApiClient.request"],
        "google-adk": [
            "google.adk.flows.llm_flows.functions:__call_tool_async",
            "google.adk.flows.llm_flows.base_llm_flow:BaseLlmFlow._call_llm_async",
        ],
    }
    flagged = BROKEN
    newer: ClassVar[tuple[str, ...]] = (
        "raises in sync",
        "converted by a callback",
        "waiting for approval",
        "unknown",
        *_NODES,
    )
    test_each_call_is_timed_once = Delivery.test_each_call_is_timed_once

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases of what there is already; its synchronous runner keeps exceptions to itself."""
        return {name: case for name, case in super().cases().items() if name not in cls.newer}


del Delivery
