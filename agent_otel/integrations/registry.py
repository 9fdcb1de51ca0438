"""The table of integrations: which module triggers each, which versions, what is wrapped. Strings only.

It is read at interpreter start, so it imports nothing else; the adapter named in a row is loaded when the framework is.
The rows of durable runtimes are in ``durable.py``.
"""

from __future__ import annotations

from agent_otel.integrations.durable import RUNTIMES
from agent_otel.integrations.rows import Candidate, Integration, Wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TOOLS = "agent_otel.integrations.tools."
_MODELS = "agent_otel.integrations.models."

INTEGRATIONS = (
    Integration(
        "langchain",
        "langchain-core",
        "0.3",
        _TOOLS + "langchain",
        Candidate(
            "langchain_core.tools.base",
            Wrap("BaseTool.run", "run"),
            Wrap("BaseTool.arun", "run"),
            Wrap("_handle_tool_error", "swallowed"),
            Wrap("_handle_validation_error", "swallowed"),
        ),
    ),
    # The callbacks between which another instrumentation's span of the same call is open. These two make it current, so
    # that the numbers can be set on it. get_child is what a tool calls first when all have heard of its start.
    Integration(
        "langchain-callbacks",
        "langchain-core",
        "0.3",
        _TOOLS + "langchain",
        Candidate(
            "langchain_core.callbacks.manager",
            Wrap("CallbackManagerForToolRun.get_child", "started"),
            Wrap("AsyncCallbackManagerForToolRun.get_child", "started"),
            Wrap("CallbackManagerForToolRun.on_tool_end", "ending"),
            Wrap("CallbackManagerForToolRun.on_tool_error", "failing"),
            Wrap("AsyncCallbackManagerForToolRun.on_tool_end", "ending"),
            Wrap("AsyncCallbackManagerForToolRun.on_tool_error", "failing"),
        ),
        beside=("opentelemetry.instrumentation.langchain", "opentelemetry.instrumentation.genai.langchain"),
    ),
    Integration(
        "langgraph",
        "langgraph",
        "0.2.76",
        _TOOLS + "langchain",
        Candidate(
            "langgraph.prebuilt.tool_node",
            Wrap("ToolNode._run_one", "tool_node"),
            Wrap("ToolNode._arun_one", "tool_node"),
        ),
    ),
    Integration(
        "openai-agents",
        "openai-agents",
        "0.7",
        _TOOLS + "openai_agents",
        Candidate(  # 0.19 and later
            "agents.run_internal.tool_execution",
            Wrap("_invoke_function_tool_with_metadata", "invoke"),
            Wrap("_FunctionToolBatchExecutor._run_single_tool", "single_tool"),
        ),
        Candidate(  # 0.12 to 0.18
            "agents.run_internal.tool_execution",
            Wrap("invoke_function_tool", "invoke"),
            Wrap("_FunctionToolBatchExecutor._run_single_tool", "single_tool"),
        ),
        Candidate(  # 0.8 to 0.11: a closure in execute_function_tool_calls
            "agents.run_internal.tool_execution",
            Wrap("_execute_tool_input_guardrails", "calling"),
            Wrap("_execute_tool_output_guardrails", "returned"),
        ),
        Candidate(  # up to 0.7: a closure in RunImpl.execute_function_tool_calls
            "agents._run_impl",
            Wrap("RunImpl._execute_input_guardrails", "calling"),
            Wrap("RunImpl._execute_output_guardrails", "returned"),
        ),
    ),
    # Where exceptions become text for the model.
    Integration(
        "openai-agents-errors",
        "openai-agents",
        "0.7",
        _TOOLS + "openai_agents",
        Candidate(
            "agents.tool",
            Wrap("maybe_invoke_function_tool_failure_error_function", "swallowed"),
            Wrap("default_tool_timeout_error_message", "timed_out"),
        ),
        Candidate("agents.tool", Wrap("_extract_tool_argument_json_error", "swallowed")),  # up to 0.11
    ),
    Integration(
        "mcp",
        "mcp",
        "1.9",
        _TOOLS + "mcp",
        Candidate("mcp.client.session", Wrap("ClientSession.call_tool", "session")),
    ),
    # Clients that may go through the session several times for one call.
    Integration(
        "mcp-client",
        "mcp",
        "2.0",
        _TOOLS + "mcp",
        Candidate("mcp.client.client", Wrap("Client.call_tool", "client")),
    ),
    Integration(
        "fastmcp",
        "fastmcp",
        "3.0",
        _TOOLS + "mcp",
        Candidate("fastmcp.client.mixins.tools", Wrap("ClientToolsMixin.call_tool_mcp", "client")),
    ),
    Integration(
        "dapr-agents",
        "dapr-agents",
        "1.0",
        _TOOLS + "dapr_agents",
        Candidate("dapr_agents.agents.durable", Wrap("DurableAgent.run_tool", "activity")),
        tested="1.0.9, the agent against a stand-in for daprd",
    ),
    Integration(
        "dapr-agents-tools",
        "dapr-agents",
        "1.0",
        _TOOLS + "dapr_agents",
        Candidate(
            "dapr_agents.tool.executor",
            Wrap("AgentToolExecutor.run_tool", "run_tool"),
            Wrap("AgentTool._log_and_raise_error", "wrapping_error"),
        ),
        tested="1.0.9, the agent against a stand-in for daprd",
    ),
    Integration(
        "openai",
        "openai",
        "1.40",
        _MODELS + "openai",
        Candidate(
            "openai._base_client",
            Wrap("SyncAPIClient.request", "request"),
            Wrap("AsyncAPIClient.request", "request"),
        ),
    ),
    *RUNTIMES,
)


def triggers() -> dict[str, Callable[[str], None]]:
    """Map each module that an integration waits for to what applies it."""
    rows: dict[str, list[Integration]] = {}
    neighbours: dict[str, list[Integration]] = {}
    for integration in INTEGRATIONS:
        for module in integration.beside or {candidate.module for candidate in integration.candidates}:
            (neighbours if integration.beside else rows).setdefault(module, []).append(integration)
    return {
        **{module: _watcher(tuple(integrations)) for module, integrations in neighbours.items()},
        **{module: _applier(tuple(integrations)) for module, integrations in rows.items()},
    }


def _watcher(integrations: tuple[Integration, ...]) -> Callable[[str], None]:
    def watch(_: str) -> None:
        """Another instrumentation is here: now the modules of its rows are waited for."""
        from agent_otel import _importhook  # noqa: PLC0415 - installed already, or we would not be called

        for integration in integrations:
            _importhook.install({candidate.module: _applier((integration,)) for candidate in integration.candidates})

    return watch


def _applier(integrations: tuple[Integration, ...]) -> Callable[[str], None]:
    def apply(module: str) -> None:
        """Load the wrapping and apply; this runs inside the user's import and must not raise."""
        try:
            from agent_otel.integrations import wrapping  # noqa: PLC0415 - loads wrapt and OpenTelemetry's API
        except Exception as error:
            from agent_otel import _shield  # noqa: PLC0415 - only when something is wrong

            _shield.say_once(
                "load",
                f"agent_otel cannot measure anything: {type(error).__name__}: {error}. Is it installed with its "
                "dependencies?",
            )
            return
        for integration in integrations:
            wrapping.apply(integration, module)

    return apply
