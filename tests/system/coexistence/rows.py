"""The table of other instrumentations and the frameworks that they instrument, one row for each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agent_otel.integrations.registry.table import INTEGRATIONS
from tests.contract.frameworks import (
    test_agno,
    test_anthropic,
    test_autogen,
    test_crewai,
    test_dspy,
    test_google,
    test_langchain,
    test_llama_index,
    test_mcp,
    test_openai_agents,
    test_pydantic_ai,
    test_smolagents,
)
from tests.contract.model_sdks import test_openai

if TYPE_CHECKING:
    from tests.contract.suite import Contract

#: The orders in which a program switches on the other instrumentation and this package, and imports the framework.
#: Where this package is first, the variable ``AGENT_OTEL`` switches it on.
ORDERS = {
    "peer, ours, framework": ("peer", "ours", "framework"),
    "ours, peer, framework": ("ours", "peer", "framework"),
    "ours, framework, peer": ("ours", "framework", "peer"),
    "framework, peer, ours": ("framework", "peer", "ours"),
}
#: Variable with the keys of rows, one a line, that run in all their orders.
EVERY = "AGENT_OTEL_TEST_COEXISTENCE"
#: The same program without this package.
ALONE = ("peer", "framework")


#: The rows that CI runs, in one order each.
_IN_CI = {
    "agno beside OpenTelemetry's own": "ours, framework, peer",
    "dspy beside OpenTelemetry's own": "framework, peer, ours",
    "langgraph beside OpenInference": "ours, framework, peer",
    "openai_agents beside OpenInference": "peer, ours, framework",
    "smolagents beside OpenInference": "framework, peer, ours",
    "langgraph beside OpenLLMetry": "framework, peer, ours",
    "agno beside OpenLLMetry": "framework, peer, ours",
    "openai_agents beside OpenTelemetry's own": "ours, peer, framework",
    "openai_agents beside Logfire": "ours, framework, peer",
    "pydantic_ai beside Logfire": "peer, ours, framework",
    "langgraph beside Traceloop": "ours, framework, peer",
    "langgraph beside MLflow": "peer, ours, framework",
    "langgraph beside ddtrace": "ours, peer, framework",
    "langgraph beside LangSmith": "ours, framework, peer",
}


class Row(NamedTuple):
    """A framework beside another instrumentation.

    ``traces`` is how the scopes of the other's spans begin, empty where they are not OpenTelemetry's. ``variables`` are
    set from the start. ``provides`` is true where the other sets the providers. ``span`` and ``scope`` are of the span
    that has the numbers of a call, where that is not the same as without the other. ``root`` is the span of a run where
    this package opens one. ``error`` is what the other's span says of an exception, in words of its own; ``is_inner``
    is true where that span ends before the framework makes a text of the exception. ``ends_cancelled`` is true where it
    ends as failed when the call is cancelled. ``timed`` is true where the other has the histogram of durations.
    ``lost`` names the cases whose span the other never ends: only the metrics have these calls. ``endings`` are what
    the names of the other's spans have behind ``span``. ``inner`` is the other's span inside of this package's, in
    which the tool's own spans are.
    """

    peer: str
    environment: str
    contract: type[Contract]
    switches: tuple[str, ...]
    distributions: tuple[str, ...]
    traces: str
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed
    provides: bool = False
    span: str = ""
    scope: str = ""
    root: str | None = None
    error: str = ""
    is_inner: bool = False
    ends_cancelled: bool = False
    timed: bool = False
    lost: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    inner: str = ""
    orders: tuple[str, ...] = tuple(ORDERS)

    @property
    def title(self) -> str:
        """Names of both."""
        return f"{self.contract.agent} beside {self.peer}"

    @property
    def key(self) -> str:
        """Name of the row, also where two rows share the orders of a pair."""
        return f"{self.title}: {self.orders[0]}"

    @property
    def framework(self) -> str:
        """The framework's distribution."""
        name = list(self.contract.integrations)[-1]
        return next(each.distribution for each in INTEGRATIONS if each.name == name)

    @property
    def in_ci(self) -> tuple[str, ...]:
        """The order that CI runs, where it runs one."""
        return tuple(order for order in self.orders if _IN_CI.get(self.title) == order)


_OI, _OL, _GENAI = (
    "openinference.instrumentation",
    "opentelemetry.instrumentation",
    "opentelemetry.instrumentation.genai",
)
#: The classes of frameworks that take openai 3.
_LANGGRAPH, _LANGCHAIN = test_langchain.TestLangGraph, test_langchain.TestLangChain
_OPENAI_AGENTS, _AGNO = test_openai_agents.TestNewest, test_agno.TestAgno
_SMOLAGENTS, _ANTHROPIC = test_smolagents.TestSmolagents, test_anthropic.TestAnthropic
_RUNNER, _MCP, _OPENAI = test_anthropic.TestRunner, test_mcp.TestMcp2, test_openai.TestOpenAI
_PYDANTIC_AI = test_pydantic_ai.TestPydanticAI
#: Those that do not, and their environments.
_AUTOGEN, _CREWAI, _DSPY = test_autogen.TestAutoGen, test_crewai.TestCrewAI, test_dspy.TestDSPy
_LLAMA_INDEX = test_llama_index.TestLlamaIndex
_OI_OLDER, _OL_OLDER = "peers-openinference-openai-2", "peers-openllmetry-openai-2"
_GENAI_OLDER = "peers-genai-openai-2"
_GOOGLE, _FUNCTIONS = test_google.TestGoogle, test_google.TestFunctions


def _openinference(contract: type[Contract], *parts: str, **more: Any) -> Row:
    """Return a row of instrumentors, ``package:Class``; the traces are the first one's."""
    return _instrumentors("OpenInference", "peers-openinference", _OI, contract, parts, more)


def _openllmetry(contract: type[Contract], *parts: str, **more: Any) -> Row:
    return _instrumentors("OpenLLMetry", "peers-openllmetry", _OL, contract, parts, more)


def _genai(contract: type[Contract], *parts: str, **more: Any) -> Row:
    return _instrumentors("OpenTelemetry's own", "peers-genai", _GENAI, contract, parts, more)


def _instrumentors(  # noqa: PLR0913, PLR0917 - what differs between the three
    peer: str, environment: str, package: str, contract: type[Contract], parts: tuple[str, ...], more: dict[str, Any]
) -> Row:
    switches = tuple(f"{package}.{part}" for part in parts)
    first = switches[0].partition(":")[0]
    distribution = first.replace(".", "-").replace("_", "-")
    row = Row(peer, environment, contract, switches, (distribution,), first)
    changes: dict[str, Any] = {"scope": first, **more} if "span" in more else more
    return row._replace(**changes)


def _other(peer: str, contract: type[Contract], switch: str, traces: str = "", **more: Any) -> Row:
    """Return a row of ``switches.py``."""
    name = peer.lower()
    switches = (f"{_HERE}.switches:{switch}",) if switch else ()
    distribution = {"mlflow": "mlflow-skinny", "traceloop": "traceloop-sdk"}.get(name, name)
    return Row(peer, name, contract, switches, (distribution,), traces, **more)


_HERE = "tests.system.coexistence"
_LANGFUSE = {
    "LANGFUSE_BASE_URL": "{receiver}",
    "LANGFUSE_OTEL_TRACES_EXPORT_PATH": "v1/traces",
    "LANGFUSE_PUBLIC_KEY": "pk-lf-1",
    "LANGFUSE_SECRET_KEY": "sk-lf-1",
}
_LANGSMITH = {"LANGSMITH_TRACING": "true", "LANGSMITH_TRACING_MODE": "otel", "LANGSMITH_API_KEY": "scripted"}
_MLFLOW = {
    "MLFLOW_EXPERIMENT_ID": "0",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{receiver}/v1/traces",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
}
_TRACELOOP = {"TRACELOOP_BASE_URL": "{receiver}", "TRACELOOP_TELEMETRY": "false", "TRACELOOP_API_KEY": "scripted"}
_DATADOG = {"DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false", "DD_REMOTE_CONFIGURATION_ENABLED": "false"}
_CHAT = "openai:OpenAIInstrumentor"

_CANCELLED = ("cancelled",)
_OWN = "execute_tool {tool}"

ROWS = (
    _openinference(_LANGGRAPH, "langchain:LangChainInstrumentor", _CHAT, span="{tool}", lost=_CANCELLED),
    _openinference(_LANGCHAIN, "langchain:LangChainInstrumentor", _CHAT, span="{tool}", lost=_CANCELLED),
    _openinference(_OPENAI_AGENTS, "openai_agents:OpenAIAgentsInstrumentor", _CHAT, span="{tool}"),
    _openinference(_AGNO, "agno:AgnoInstrumentor", _CHAT, span="{tool}", lost=_CANCELLED),
    _openinference(_SMOLAGENTS, "smolagents:SmolagentsInstrumentor", _CHAT, span="Native", is_inner=True),
    _openinference(_OPENAI, _CHAT),
    _openinference(_ANTHROPIC, "anthropic:AnthropicInstrumentor"),
    _openinference(_RUNNER, "anthropic:AnthropicInstrumentor"),
    _openinference(_GOOGLE, "google_genai:GoogleGenAIInstrumentor"),
    _openinference(_FUNCTIONS, "google_genai:GoogleGenAIInstrumentor"),
    _openinference(_MCP, "mcp:MCPInstrumentor", traces="mcp-python-sdk"),  # it has no spans: the SDK's own
    _openllmetry(_LANGGRAPH, "langchain:LangchainInstrumentor", _CHAT, span=_OWN, error="BrokenError"),
    _openllmetry(_LANGCHAIN, "langchain:LangchainInstrumentor", _CHAT, span=_OWN, error="BrokenError", lost=_CANCELLED),
    _openllmetry(_OPENAI_AGENTS, "openai_agents:OpenAIAgentsInstrumentor", _CHAT, span="{tool}.tool"),
    _openllmetry(_AGNO, "agno:AgnoInstrumentor", _CHAT, span="{tool}.tool"),
    _openllmetry(_OPENAI, _CHAT),
    _openllmetry(_ANTHROPIC, "anthropic:AnthropicInstrumentor"),
    _openllmetry(_RUNNER, "anthropic:AnthropicInstrumentor"),
    _genai(_LANGGRAPH, "langchain:LangChainInstrumentor", _CHAT, span=_OWN, ends_cancelled=True, timed=True),
    _genai(_LANGCHAIN, "langchain:LangChainInstrumentor", _CHAT, span=_OWN, ends_cancelled=True, timed=True),
    _genai(_OPENAI_AGENTS, "openai_agents:OpenAIAgentsInstrumentor", _CHAT, span=_OWN, error="_OTHER", timed=True),
    _genai(_AGNO, "agno:AgnoInstrumentor", _CHAT, span=_OWN, error="_OTHER", ends_cancelled=True, timed=True),
    _genai(_SMOLAGENTS, "smolagents:SmolagentsInstrumentor", _CHAT),
    _genai(_OPENAI, _CHAT),
    _genai(_ANTHROPIC, "anthropic:AnthropicInstrumentor"),
    _genai(_RUNNER, "anthropic:AnthropicInstrumentor"),
    _openinference(_AUTOGEN, "autogen_agentchat:AutogenAgentChatInstrumentor", _CHAT, environment=_OI_OLDER),
    _openinference(
        _CREWAI,
        "crewai:CrewAIInstrumentor",
        _CHAT,
        environment=_OI_OLDER,
        span="{tool}",
        endings=(".run",),
        is_inner=True,
    ),
    _openinference(
        _DSPY,
        "dspy:DSPyInstrumentor",
        environment=_OI_OLDER,
        span="{tool}",
        endings=(".acall", ".__call__"),
        is_inner=True,
    ),
    # Their span of a call begins in the framework's tool, inside of this package's.
    _openinference(
        _LLAMA_INDEX, "llama_index:LlamaIndexInstrumentor", environment=_OI_OLDER, inner="FunctionTool.acall"
    ),
    _openllmetry(_CREWAI, "crewai:CrewAIInstrumentor", _CHAT, environment=_OL_OLDER, traces=_OL),
    _openllmetry(
        _LLAMA_INDEX, "llamaindex:LlamaIndexInstrumentor", _CHAT, environment=_OL_OLDER, inner="FunctionTool.task"
    ),
    _genai(
        _DSPY,
        "dspy:DSPyInstrumentor",
        environment=_GENAI_OLDER,
        span=_OWN,
        is_inner=True,
        ends_cancelled=True,
        timed=True,
    ),
    _genai(
        _LLAMA_INDEX,
        "llama_index:LlamaIndexInstrumentor",
        _CHAT,
        environment=_GENAI_OLDER,
        span=_OWN,
        root="invoke_agent clerk",
        timed=True,
    ),
    *(
        Row(
            "Langfuse",
            "langfuse",
            contract,
            (f"{_HERE}.langfuse_everywhere:Everywhere",),
            ("langfuse",),
            "langfuse-sdk",
            variables=_LANGFUSE,
            span="{tool}",
            scope="langfuse-sdk",
            root=contract.run_span,
            lost=_CANCELLED,
        )
        for contract in (_LANGGRAPH, _LANGCHAIN)
    ),
    _other(
        "Logfire",
        _OPENAI_AGENTS,
        "logfire=openai_agents,openai",
        "logfire",
        span="Function: {{name}}",
        scope="logfire.openai_agents",
        provides=True,
        root="invoke_agent clerk",
    ),
    _other(
        "Logfire",
        _PYDANTIC_AI,
        "logfire=pydantic_ai,openai",
        "pydantic-ai",
        scope="pydantic-ai",
        span=_OWN,
        provides=True,
    ),
    Row(
        "its own instrumentation",
        "pydantic-ai",
        _PYDANTIC_AI,
        (f"{_HERE}.switches:pydantic_ai=",),
        ("pydantic-ai-slim",),
        "pydantic-ai",
        span=_OWN,
        scope="pydantic-ai",
    ),
    _other("Logfire", _ANTHROPIC, "logfire=anthropic", "logfire", provides=True),
    _other("Logfire", _OPENAI, "logfire=openai", "logfire", provides=True),
    _other(
        "Traceloop",
        _LANGGRAPH,
        "traceloop=",
        f"{_OL}.langchain",
        span=_OWN,
        scope=f"{_OL}.langchain",
        error="BrokenError",
        variables=_TRACELOOP,
    ),
    _other(
        "Traceloop",
        _OPENAI_AGENTS,
        "traceloop=",
        f"{_OL}.openai_agents",
        span="{tool}.tool",
        scope=f"{_OL}.openai_agents",
        variables=_TRACELOOP,
    ),
    _other("MLflow", _LANGGRAPH, "mlflow=langchain,openai", root="invoke_agent clerk", variables=_MLFLOW),
    _other(
        "MLflow",
        _LANGGRAPH,
        "mlflow=langchain,openai",
        variables={**_MLFLOW, "MLFLOW_USE_DEFAULT_TRACER_PROVIDER": "false"},
        lost=("async", "sync in async", "stream", "raises in async", "parallel", "cancelled", "unicode"),
        orders=("ours, peer, framework",),
    ),
    _other("MLflow", _OPENAI_AGENTS, "mlflow=openai", root="invoke_agent clerk", variables=_MLFLOW),
    _other("ddtrace", _LANGGRAPH, "ddtrace=langchain,openai,langgraph", root="invoke_agent clerk", variables=_DATADOG),
    _other("ddtrace", _OPENAI_AGENTS, "ddtrace=openai_agents,openai", root="invoke_agent clerk", variables=_DATADOG),
    _other("ddtrace", _PYDANTIC_AI, "ddtrace=pydantic_ai,openai", root="invoke_agent clerk", variables=_DATADOG),
    _other("ddtrace", _ANTHROPIC, "ddtrace=anthropic", variables=_DATADOG),
    _other("ddtrace", _OPENAI, "ddtrace=openai", variables=_DATADOG),
    _other("LangSmith", _LANGGRAPH, "", "langsmith", root="invoke_agent clerk", variables=_LANGSMITH),
    _other("LangSmith", _LANGCHAIN, "", "langsmith", variables=_LANGSMITH),
)
