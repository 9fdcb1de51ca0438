"""Rows of the instrumentors of OpenInference, OpenLLMetry and OpenTelemetry itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.system.coexistence import classes
from tests.system.coexistence.row import Row

if TYPE_CHECKING:
    from tests.contract.suite import Contract

_OI, _OL, _GENAI = (
    "openinference.instrumentation",
    "opentelemetry.instrumentation",
    "opentelemetry.instrumentation.genai",
)
#: Environments of frameworks that do not take openai 3.
_OI_OLDER, _OL_OLDER = "peers-openinference-openai-2", "peers-openllmetry-openai-2"
_GENAI_OLDER = "peers-genai-openai-2"
#: Environments of more frameworks.
_SDKS, _ADK, _LITELLM = "peers-and-sdks", "peers-google-adk", "peers-litellm"
_OLDER = "peers-older"


def _openinference(contract: type[Contract], *parts: str, **more: Any) -> Row:
    """Return a row of instrumentors, ``package:Class``; the traces are the first one's."""
    return _instrumentors("OpenInference", "peers-openinference", _OI, contract, parts, more)


def _openllmetry(contract: type[Contract], *parts: str, **more: Any) -> Row:
    return _instrumentors("OpenLLMetry", "peers-openllmetry", _OL, contract, parts, more)


def _genai(contract: type[Contract], *parts: str, **more: Any) -> Row:
    return _instrumentors("OpenTelemetry's own", "peers-genai", _GENAI, contract, parts, more)


def _otel(contract: type[Contract], *parts: str, **more: Any) -> Row:
    """Return a row of an instrumentor whose package has another name than OpenTelemetry's other ones."""
    return _instrumentors("OpenTelemetry's own", "peers-genai", _OL, contract, parts, more)


def _processor(contract: type[Contract], path: str, *switches: str, **more: Any) -> Row:
    """Return a row of a processor that rewrites the framework's own spans."""
    switch = f"tests.system.coexistence.switches:processor={_OI}.{path}"
    distribution = f"openinference-instrumentation-{path.partition('.')[0].replace('_', '-')}"
    row = Row("OpenInference", "peers-openinference", contract, (switch, *switches), (distribution,), contract.scope)
    return row._replace(**more)


def _instrumentors(  # noqa: PLR0913, PLR0917 - what differs between the three
    peer: str, environment: str, package: str, contract: type[Contract], parts: tuple[str, ...], more: dict[str, Any]
) -> Row:
    switches = tuple(f"{package}.{part}" for part in parts)
    first = switches[0].partition(":")[0]
    distribution = first.replace(".", "-").replace("_", "-")
    row = Row(peer, environment, contract, switches, (distribution,), first)
    changes: dict[str, Any] = {"scope": first, **more} if "span" in more else more
    return row._replace(**changes)


_CHAT = "openai:OpenAIInstrumentor"

_CANCELLED = ("cancelled",)
_OWN = "execute_tool {tool}"

ROWS = (
    _openinference(classes.LANGGRAPH, "langchain:LangChainInstrumentor", _CHAT, span="{tool}", lost=_CANCELLED),
    _openinference(classes.LANGCHAIN, "langchain:LangChainInstrumentor", _CHAT, span="{tool}", lost=_CANCELLED),
    _openinference(classes.OPENAI_AGENTS, "openai_agents:OpenAIAgentsInstrumentor", _CHAT, span="{tool}"),
    _openinference(classes.AGNO, "agno:AgnoInstrumentor", _CHAT, span="{tool}", lost=_CANCELLED),
    _openinference(classes.SMOLAGENTS, "smolagents:SmolagentsInstrumentor", _CHAT, span="Native", is_inner=True),
    _openinference(classes.OPENAI, _CHAT),
    _openinference(classes.ANTHROPIC, "anthropic:AnthropicInstrumentor"),
    _openinference(classes.RUNNER, "anthropic:AnthropicInstrumentor"),
    _openinference(classes.GOOGLE, "google_genai:GoogleGenAIInstrumentor"),
    _openinference(classes.FUNCTIONS, "google_genai:GoogleGenAIInstrumentor"),
    _openinference(classes.MCP, "mcp:MCPInstrumentor", traces="mcp-python-sdk"),  # it has no spans: the SDK's own
    _openllmetry(classes.LANGGRAPH, "langchain:LangchainInstrumentor", _CHAT, span=_OWN, error="BrokenError"),
    _openllmetry(
        classes.LANGCHAIN, "langchain:LangchainInstrumentor", _CHAT, span=_OWN, error="BrokenError", lost=_CANCELLED
    ),
    _openllmetry(classes.OPENAI_AGENTS, "openai_agents:OpenAIAgentsInstrumentor", _CHAT, span="{tool}.tool"),
    _openllmetry(classes.AGNO, "agno:AgnoInstrumentor", _CHAT, span="{tool}.tool"),
    _openllmetry(classes.OPENAI, _CHAT),
    _openllmetry(classes.ANTHROPIC, "anthropic:AnthropicInstrumentor"),
    _openllmetry(classes.RUNNER, "anthropic:AnthropicInstrumentor"),
    _genai(classes.LANGGRAPH, "langchain:LangChainInstrumentor", _CHAT, span=_OWN, ends_cancelled=True, timed=True),
    _genai(classes.LANGCHAIN, "langchain:LangChainInstrumentor", _CHAT, span=_OWN, ends_cancelled=True, timed=True),
    _genai(
        classes.OPENAI_AGENTS, "openai_agents:OpenAIAgentsInstrumentor", _CHAT, span=_OWN, error="_OTHER", timed=True
    ),
    _genai(classes.AGNO, "agno:AgnoInstrumentor", _CHAT, span=_OWN, error="_OTHER", ends_cancelled=True, timed=True),
    _genai(classes.SMOLAGENTS, "smolagents:SmolagentsInstrumentor", _CHAT),
    _genai(classes.OPENAI, _CHAT),
    _genai(classes.ANTHROPIC, "anthropic:AnthropicInstrumentor"),
    _genai(classes.RUNNER, "anthropic:AnthropicInstrumentor"),
    _openinference(classes.AUTOGEN, "autogen_agentchat:AutogenAgentChatInstrumentor", _CHAT, environment=_OI_OLDER),
    _openinference(
        classes.CREWAI,
        "crewai:CrewAIInstrumentor",
        _CHAT,
        environment=_OI_OLDER,
        span="{tool}",
        endings=(".run",),
        is_inner=True,
    ),
    _openinference(
        classes.DSPY,
        "dspy:DSPyInstrumentor",
        environment=_OI_OLDER,
        span="{tool}",
        endings=(".acall", ".__call__"),
        is_inner=True,
    ),
    _openinference(
        classes.LLAMA_INDEX,
        "llama_index:LlamaIndexInstrumentor",
        environment=_OI_OLDER,
        span="FunctionTool.acall",
        is_inner=True,
    ),
    _openllmetry(classes.CREWAI, "crewai:CrewAIInstrumentor", _CHAT, environment=_OL_OLDER, traces=_OL),
    # Its span of a call is that of any task, inside of this package's.
    _openllmetry(
        classes.LLAMA_INDEX,
        "llamaindex:LlamaIndexInstrumentor",
        _CHAT,
        environment=_OL_OLDER,
        inner="FunctionTool.task",
    ),
    _genai(
        classes.DSPY,
        "dspy:DSPyInstrumentor",
        environment=_GENAI_OLDER,
        span=_OWN,
        is_inner=True,
        ends_cancelled=True,
        timed=True,
    ),
    _genai(
        classes.LLAMA_INDEX,
        "llama_index:LlamaIndexInstrumentor",
        _CHAT,
        environment=_GENAI_OLDER,
        span=_OWN,
        root="invoke_agent clerk",
        timed=True,
    ),
    # It has spans of pipelines, and none of an agent that is in none.
    _openinference(
        classes.HAYSTACK,
        "haystack:HaystackInstrumentor",
        _CHAT,
        environment=_SDKS,
        traces=f"{_OI}.openai",
        root=classes.HAYSTACK.run_span,
    ),
    _openinference(classes.PIPECAT, "pipecat:PipecatInstrumentor", _CHAT, environment=_SDKS),
    _openinference(classes.ADK, "google_adk:GoogleADKInstrumentor", environment=_ADK, span=_OWN),
    *(
        _openinference(contract, instrumentor, environment=_SDKS)
        for contract, instrumentor in (
            (classes.BEDROCK, "bedrock:BedrockInstrumentor"),
            (classes.COHERE, "cohere:CohereInstrumentor"),
            (classes.GROQ, "groq:GroqInstrumentor"),
            (classes.MISTRAL, "mistralai:MistralAIInstrumentor"),
            (classes.OLLAMA, "ollama:OllamaInstrumentor"),
            (classes.TOGETHER, "together:TogetherInstrumentor"),
        )
    ),
    _openinference(classes.LITELLM, "litellm:LiteLLMInstrumentor", environment=_LITELLM),
    # Its spans of tools are never current. It traces a program that imports `query` after it.
    _openinference(
        classes.CLAUDE,
        "claude_agent_sdk:ClaudeAgentSDKInstrumentor",
        environment="peers-claude-agent-sdk",
        roots={"stream": "invoke_agent"},
        asks=False,
        orders=("peer, ours, framework", "ours, peer, framework"),
    ),
    _openllmetry(classes.MCP_1, "mcp:McpInstrumentor", environment=_OLDER),
    _openllmetry(classes.MISTRAL_1, "mistralai:MistralAiInstrumentor", environment=_OLDER),
    _openllmetry(classes.GOOGLE, "google_generativeai:GoogleGenerativeAiInstrumentor"),
    _openllmetry(classes.FUNCTIONS, "google_generativeai:GoogleGenerativeAiInstrumentor"),
    _openllmetry(classes.BEDROCK, "bedrock:BedrockInstrumentor", environment=_SDKS),
    _openllmetry(classes.GROQ, "groq:GroqInstrumentor", environment=_SDKS),
    _openllmetry(classes.OLLAMA, "ollama:OllamaInstrumentor", environment=_SDKS),
    _openllmetry(classes.LITELLM, "litellm:LiteLLMInstrumentor", environment=_LITELLM),
    _genai(classes.BEDROCK, "bedrock:BedrockInstrumentor", environment=_SDKS),
    _otel(classes.BEDROCK, "botocore:BotocoreInstrumentor", environment=_SDKS),
    _otel(classes.GOOGLE_2, "google_genai:GoogleGenAiSdkInstrumentor", environment=_ADK),
    _processor(
        classes.PYDANTIC_AI,
        "pydantic_ai.OpenInferenceSpanProcessor",
        "tests.system.coexistence.switches:pydantic_ai=",
        traces="pydantic-ai",
        span=_OWN,
        scope="pydantic-ai",
    ),
    _processor(classes.STRANDS, "strands_agents.StrandsAgentsToOpenInferenceProcessor", environment="peers-strands"),
    _processor(classes.AGENT_FRAMEWORK, "agent_framework.AgentFrameworkToOpenInferenceProcessor", environment=_SDKS),
    _otel(classes.FUNCTIONS_2, "google_genai:GoogleGenAiSdkInstrumentor", environment=_ADK),
)
