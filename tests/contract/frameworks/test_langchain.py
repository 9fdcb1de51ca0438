"""LangChain's tools in a hand-written loop, and LangGraph's agents; newest and oldest."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.contract.cases import DELEGATED, DELEGATED_BYTES, KEY, Case, Record, failed, looked_up, of_one_agent
from tests.contract.delivery import WHOLE, Delivery
from tests.contract.suite import Contract
from tests.contract.toolbox import LOOKUP_BYTES

TOOL_EXCEPTION = "langchain_core.tools.base.ToolException"

# The call of the agent behind the tool.
ASSISTANT = Record("lookup", "call_30", LOOKUP_BYTES, agent="assistant")


class TestLangChain(Contract):
    """Tools of langchain-core, called by a loop of the program's own."""

    agent = "langchain"
    environment = "langchain"
    integrations: ClassVar = {
        "langchain": [
            "langchain_core.tools.base:BaseTool.run",
            "langchain_core.language_models.chat_models:BaseChatModel._iter_v2_events",
        ],
    }
    outer = False
    reads_failures = True
    own: ClassVar = {
        "outside of an agent": Case(
            ("lookup",),
            (("call", "lookup", KEY),),
            (Record("lookup", None, LOOKUP_BYTES),),
            "sync",
            "outside",
            said="größe: " + "ß" * 1000,
            unsent=("call",),
        ),
        "nested": looked_up("nested", "call_20"),
        "content and artifact": Case(
            ("with_artifact",),
            (("call_21", "with_artifact", KEY),),
            (Record("with_artifact", "call_21", LOOKUP_BYTES, structured=28),),
        ),
        "converted": failed("handled", "call_22", error=TOOL_EXCEPTION),
        "converted into a fixed text": failed("handled_with_text", "call_23", "sync", error=TOOL_EXCEPTION),
        "a message of its own": looked_up("message", "call_25"),
    }


@pytest.mark.weekly
class TestLangChainOlder(TestLangChain):
    """The last langchain-core 0.3."""

    environment = "langchain-oldest"
    integrations: ClassVar = {
        "langchain": [
            "langchain_core.tools.base:BaseTool.run",
            "langchain_core.language_models.chat_models:BaseChatModel._convert_cached_generations",
        ],
    }


class TestLangChainOldest(TestLangChain):
    """langchain-core 0.3.0."""

    environment = "langchain-0.3.0"
    integrations: ClassVar = {
        "langchain": [
            "langchain_core.tools.base:BaseTool.run",
            "langchain_core.language_models.chat_models:BaseChatModel._generate_with_cache",
        ],
    }
    # This version makes a text of a tool's own message.
    own: ClassVar = {name: case for name, case in TestLangChain.own.items() if name != "a message of its own"}


class TestLangGraph(Delivery):
    """``create_agent`` of LangChain 1.x."""

    tells_failures = True
    agent = "langgraph"
    environment = "langchain"
    integrations: ClassVar = {
        **TestLangChain.integrations,
        "langgraph": ["langgraph.prebuilt.tool_node:ToolNode._run_one"],
    }
    agent_name: ClassVar[str | None] = "clerk"
    has_runs = True
    run_span: ClassVar[str | None] = "invoke_agent clerk"
    run_spans: ClassVar = {"functional": "invoke_agent"}
    attributes: ClassVar = {"gen_ai.conversation.id": "thread-1"}
    own: ClassVar = {
        **{name: TestLangChain.own[name] for name in TestLangChain.own if name != "outside of an agent"},
        "converted by a middleware": failed("broken_later", "call_24", setting="forgive"),
        "interrupted": Case(
            ("asks",),
            (("call_26", "asks", KEY),),
            (Record("asks", "call_26"),),
            setting="interrupt",
            said="interrupted",
            unsent=("call_26",),
        ),
        "agent as a tool": Case(
            ("delegate",),
            (("call_29", "delegate", {"input": DELEGATED}),),
            (Record("delegate", "call_29", 4, args=DELEGATED_BYTES), ASSISTANT),
        ),
        # 100 letters: g r ö ß e : and a blank are 9 bytes, 93 times ß 186.
        "shortened by a middleware": Case(
            ("lookup",),
            (("call_27", "lookup", KEY),),
            (Record("lookup", "call_27", LOOKUP_BYTES, handed_back=195, cut=("framework", "shrunk")),),
            setting="shorten",
        ),
        # größe: and a blank are 9 bytes, then two line ends and 1,000 letters; the arguments are {"query":"größe"}.
        "a retriever": Case(
            ("shelf",), (("call_31", "shelf", {"query": "größe"}),), (Record("shelf", "call_31", 1011, args=19),)
        ),
        "functional": Case(
            ("lookup", "big"),
            (("call_32", "lookup", KEY), ("call_33", "big", {"n": 4321})),
            (Record("lookup", "call_32", LOOKUP_BYTES, agent=""), Record("big", "call_33", 4321, args=10, agent="")),
            "sync",
            "functional",
        ),
        "two megabytes": WHOLE,
        "tried again by a middleware": looked_up("flaky", "call_28", setting="retry"),
    }


class TestLangGraphOldest(TestLangGraph):
    """``create_react_agent`` of LangGraph 0.2, whose node turns every exception into text.

    It does not tell tools which agent calls them.
    """

    environment = "langchain-oldest"
    integrations: ClassVar = {**TestLangGraph.integrations, **TestLangChainOlder.integrations}
    origin = None
    own: ClassVar = {
        **{name: case for name, case in TestLangGraph.own.items() if "middleware" not in name},
        "agent as a tool": of_one_agent(TestLangGraph.own["agent as a tool"]),
    }


del Contract, Delivery
