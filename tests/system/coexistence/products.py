"""Rows of Langfuse, Logfire, Traceloop, MLflow, ddtrace, LangSmith and of frameworks' own instrumentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.system.coexistence import classes
from tests.system.coexistence.row import Row

if TYPE_CHECKING:
    from tests.contract.suite import Contract

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
_CANCELLED = ("cancelled",)
_OWN = "execute_tool {tool}"
#: Environments of more frameworks.
_SDKS, _LITELLM = "peers-and-sdks", "peers-litellm"
_STRANDS, _OLDER = "peers-strands", "other-peers-openai-2"


def _other(peer: str, contract: type[Contract], switch: str, traces: str = "", **more: Any) -> Row:
    """Return a row of ``switches.py``."""
    name = peer.lower()
    switches = (f"{_HERE}.switches:{switch}",) if switch else ()
    distribution = {"mlflow": "mlflow-skinny", "traceloop": "traceloop-sdk"}.get(name, name)
    return Row(peer, name, contract, switches, (distribution,), traces)._replace(**more)


def _logfire(contract: type[Contract], parts: str, **more: Any) -> Row:
    return _other("Logfire", contract, f"logfire={parts}", provides=True, **{"traces": "logfire", **more})


def _mlflow(contract: type[Contract], flavors: str, **more: Any) -> Row:
    return _other("MLflow", contract, f"mlflow={flavors}", variables=_MLFLOW, **{"root": contract.run_span, **more})


def _ddtrace(contract: type[Contract], libraries: str, **more: Any) -> Row:
    return _other("ddtrace", contract, f"ddtrace={libraries}", root=contract.run_span, variables=_DATADOG, **more)


_TRACELOOP_ROWS: tuple[tuple[Any, str, dict[str, Any]], ...] = (
    (
        classes.LANGCHAIN,
        "langchain",
        {
            "span": _OWN,
            "scope": "opentelemetry.instrumentation.langchain",
            "error": "BrokenError",
            "lost": _CANCELLED,
            "variables": _TRACELOOP,
        },
    ),
    (
        classes.AGNO,
        "agno",
        {"span": "{tool}.tool", "scope": "opentelemetry.instrumentation.agno", "variables": _TRACELOOP},
    ),
    (classes.OPENAI, "openai", {"variables": _TRACELOOP}),
    (classes.ANTHROPIC, "anthropic", {"variables": _TRACELOOP}),
    (classes.GOOGLE, "google_generativeai", {"variables": _TRACELOOP}),
)


ROWS = (
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
        for contract in (classes.LANGGRAPH, classes.LANGCHAIN)
    ),
    _other(
        "Logfire",
        classes.OPENAI_AGENTS,
        "logfire=openai_agents,openai",
        "logfire",
        span="Function: {{name}}",
        scope="logfire.openai_agents",
        provides=True,
        root="invoke_agent clerk",
    ),
    _other(
        "Logfire",
        classes.PYDANTIC_AI,
        "logfire=pydantic_ai,openai",
        "pydantic-ai",
        scope="pydantic-ai",
        span=_OWN,
        provides=True,
    ),
    Row(
        "its own instrumentation",
        "pydantic-ai",
        classes.PYDANTIC_AI,
        (f"{_HERE}.switches:pydantic_ai=",),
        ("pydantic-ai-slim",),
        "pydantic-ai",
        span=_OWN,
        scope="pydantic-ai",
    ),
    _logfire(classes.ANTHROPIC, "anthropic"),
    _logfire(classes.OPENAI, "openai"),
    _logfire(classes.LITELLM, "litellm", environment=_LITELLM, traces="openinference.instrumentation.litellm"),
    _logfire(classes.MCP_1, "mcp", environment="peers-older"),
    _other(
        "Traceloop",
        classes.LANGGRAPH,
        "traceloop=",
        "opentelemetry.instrumentation.langchain",
        span=_OWN,
        scope="opentelemetry.instrumentation.langchain",
        error="BrokenError",
        variables=_TRACELOOP,
    ),
    _other(
        "Traceloop",
        classes.OPENAI_AGENTS,
        "traceloop=",
        "opentelemetry.instrumentation.openai_agents",
        span="{tool}.tool",
        scope="opentelemetry.instrumentation.openai_agents",
        variables=_TRACELOOP,
    ),
    *(
        _other("Traceloop", contract, "traceloop=", f"opentelemetry.instrumentation.{scope}", **more)
        for contract, scope, more in _TRACELOOP_ROWS
    ),
    _mlflow(classes.LANGGRAPH, "langchain,openai"),
    _other(
        "MLflow",
        classes.LANGGRAPH,
        "mlflow=langchain,openai",
        variables={**_MLFLOW, "MLFLOW_USE_DEFAULT_TRACER_PROVIDER": "false"},
        lost=("async", "sync in async", "stream", "raises in async", "parallel", "cancelled", "unicode"),
        orders=("ours, peer, framework",),
    ),
    _mlflow(classes.OPENAI_AGENTS, "openai"),
    _mlflow(classes.ANTHROPIC, "anthropic"),
    _mlflow(classes.OPENAI, "openai"),
    _mlflow(classes.GOOGLE, "gemini"),
    _mlflow(classes.PYDANTIC_AI, "pydantic_ai", traces="pydantic-ai", scope="pydantic-ai", span=_OWN, root=None),
    _mlflow(classes.SMOLAGENTS, "smolagents"),
    _mlflow(classes.AUTOGEN, "autogen", environment=_OLDER),
    _mlflow(classes.DSPY, "dspy", environment=_OLDER),
    _mlflow(classes.LLAMA_INDEX, "llama_index", environment=_OLDER),
    _mlflow(classes.STRANDS, "strands", environment=_STRANDS),
    _mlflow(classes.SEMANTIC_KERNEL, "semantic_kernel", environment="peers-semantic-kernel"),
    _mlflow(classes.BEDROCK, "bedrock", environment=_SDKS),
    _mlflow(classes.GROQ, "groq", environment=_SDKS),
    _mlflow(classes.MISTRAL, "mistral", environment=_SDKS),
    _ddtrace(classes.LANGGRAPH, "langchain,openai,langgraph"),
    _ddtrace(classes.OPENAI_AGENTS, "openai_agents,openai"),
    _ddtrace(classes.PYDANTIC_AI, "pydantic_ai,openai"),
    _ddtrace(classes.ANTHROPIC, "anthropic"),
    _ddtrace(classes.OPENAI, "openai"),
    _ddtrace(classes.LANGCHAIN, "langchain,openai"),
    _ddtrace(classes.GOOGLE, "google_genai"),
    _ddtrace(classes.FUNCTIONS, "google_genai"),
    _ddtrace(classes.MCP_1, "mcp", environment="peers-older"),
    _ddtrace(classes.CREWAI, "crewai,openai", environment=_OLDER),
    _ddtrace(classes.LLAMA_INDEX, "llama_index,openai", environment=_OLDER),
    _ddtrace(classes.LITELLM, "litellm,openai", environment=_LITELLM),
    _ddtrace(classes.CLAUDE, "claude_agent_sdk", environment="peers-claude-agent-sdk", asks=False),
    _ddtrace(classes.MISTRAL, "mistralai", environment=_SDKS),
    _ddtrace(classes.BEDROCK, "botocore", environment=_SDKS),
    _other("LangSmith", classes.LANGGRAPH, "", "langsmith", root="invoke_agent clerk", variables=_LANGSMITH),
    _other("LangSmith", classes.LANGCHAIN, "", "langsmith", variables=_LANGSMITH),
    _other("LangSmith", classes.OPENAI, "langsmith=openai", "langsmith", variables=_LANGSMITH),
    _other(
        "LangSmith",
        classes.OPENAI_AGENTS,
        "langsmith=openai_agents",
        "langsmith",
        root="invoke_agent clerk",
        variables=_LANGSMITH,
    ),
    _other("Langfuse", classes.OPENAI, "langfuse_openai=", "langfuse-sdk", variables=_LANGFUSE),
)
