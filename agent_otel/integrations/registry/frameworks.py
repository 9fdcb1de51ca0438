"""The rows of the table of integrations that are agent frameworks. Strings only; read at interpreter start."""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap

_TOOLS = "agent_otel.integrations.frameworks."
_ANTHROPIC_TESTED = "0.125 and 2.11"
_GOOGLE_GENAI_TESTED = "1.20, 2.34 and 3.4"
_SMOLAGENTS_TESTED = "1.24 and 1.26"
_AGNO_TESTED = "2.3 and 3.1"
_CLAUDE_TESTED = "0.2.186 with the program that comes with it"
_CREWAI_TESTED = "1.15"

FRAMEWORKS = (
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
    # The callbacks between which another instrumentation's span of the same call is open. These make it current, or
    # hold it where it can be found, so that the numbers can be set on it. get_child is what a tool calls first when
    # all have heard of its start.
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
        beside=(
            "langfuse.langchain.CallbackHandler",
            "opentelemetry.instrumentation.genai.langchain",
            "opentelemetry.instrumentation.langchain",
        ),
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
        Candidate(
            "mcp.client.session",
            Wrap("ClientSession.call_tool", "session"),
            Wrap("ClientSession.list_tools", "listing"),
        ),
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
        "mcp-server",
        "mcp",
        "1.9",
        _TOOLS + "mcp_server",
        Candidate("mcp.server.lowlevel.server", Wrap("Server.get_request_handler", "looking_up")),  # 2.0 and later
        Candidate(
            "mcp.server.lowlevel.server",
            Wrap("Server._handle_request", "handled"),
            Wrap("RequestResponder.respond", "responding"),
        ),
        tested="1.30 and 2.3",
    ),
    Integration(
        "mcp-server-requests",
        "mcp",
        "2.0",
        _TOOLS + "mcp_server",
        Candidate(
            "mcp.server.runner",
            Wrap("ServerRunner._on_request", "request"),
            Wrap("ServerRunner._serialize", "serialising"),
        ),
        tested="2.3",
    ),
    Integration(
        "fastmcp-server",
        "fastmcp",
        "3.0",
        _TOOLS + "mcp_server",
        Candidate("fastmcp.tools.base", Wrap("Tool._run", "tool")),  # 4.0 and later
        Candidate("fastmcp.tools.tool", Wrap("Tool._run", "tool")),
        tested="3.0 and 4.1",
    ),
    Integration(
        "pydantic-ai",
        "pydantic-ai-slim",
        "2.0",
        _TOOLS + "pydantic_ai",
        Candidate(
            "pydantic_ai.tool_manager",
            Wrap("ToolManager._raw_execute", "raw_execute"),
            Wrap("ToolManager.execute_tool_call", "execute_tool_call"),
        ),
        tested="2.0 and 2.68",
    ),
    Integration(
        "strands",
        "strands-agents",
        "1.30",
        _TOOLS + "strands",
        Candidate(  # 1.62
            "strands.tools.executors._executor",
            Wrap("_run_tool", "run_tool"),
            Wrap("ToolExecutor._stream", "stream"),
        ),
        Candidate(
            "strands.tools.executors._executor",
            Wrap("ToolExecutor._stream", "stream_alone"),
            Wrap("AfterToolCallEvent.__init__", "returned"),
        ),
        tested="1.30, 1.61 and 1.62",
    ),
    Integration(
        "crewai",
        "crewai",
        "1.15",
        _TOOLS + "crewai",
        Candidate(
            "crewai.agents.agent_executor",
            Wrap("AgentExecutor._execute_single_native_tool_call", "native"),
        ),
        tested=_CREWAI_TESTED,
    ),
    Integration(
        "crewai-steps",
        "crewai",
        "1.15",
        _TOOLS + "crewai",
        Candidate("crewai.agents.step_executor", Wrap("execute_single_native_tool_call", "step")),
        tested=_CREWAI_TESTED,
    ),
    Integration(
        "crewai-tools",
        "crewai",
        "1.15",
        _TOOLS + "crewai",
        Candidate("crewai.tools.base_tool", Wrap("Tool.run", "run"), Wrap("BaseTool.run", "run")),
        tested=_CREWAI_TESTED,
    ),
    # Where the model writes what it wants to do.
    Integration(
        "crewai-text",
        "crewai",
        "1.15",
        _TOOLS + "crewai",
        Candidate("crewai.tools.tool_usage", Wrap("ToolUsage.use", "use"), Wrap("ToolUsage.ause", "use")),
        tested=_CREWAI_TESTED,
    ),
    Integration(
        "crewai-structured-tools",
        "crewai",
        "1.15",
        _TOOLS + "crewai",
        Candidate(
            "crewai.tools.structured_tool",
            Wrap("CrewStructuredTool.invoke", "invoke"),
            Wrap("CrewStructuredTool.ainvoke", "invoke"),
        ),
        tested=_CREWAI_TESTED,
    ),
    Integration(
        "smolagents",
        "smolagents",
        "1.24",
        _TOOLS + "smolagents",
        Candidate(
            "smolagents.agents",
            Wrap("ToolCallingAgent.execute_tool_call", "execute"),
            Wrap("MultiStepAgent.__call__", "managed"),
        ),
        tested=_SMOLAGENTS_TESTED,
    ),
    Integration(
        "smolagents-tools",
        "smolagents",
        "1.24",
        _TOOLS + "smolagents",
        Candidate("smolagents.tools", Wrap("Tool.__call__", "tool")),
        tested=_SMOLAGENTS_TESTED,
    ),
    # The thread in which a CodeAgent's code runs.
    Integration(
        "smolagents-code",
        "smolagents",
        "1.24",
        _TOOLS + "smolagents",
        Candidate("smolagents.local_python_executor", Wrap("timeout", "in_thread")),
        tested=_SMOLAGENTS_TESTED,
    ),
    Integration(
        "agno",
        "agno",
        "2.3",
        _TOOLS + "agno",
        Candidate(
            "agno.tools.function",
            Wrap("FunctionCall.execute", "execute"),
            Wrap("FunctionCall.aexecute", "execute"),
            Wrap("log_exception", "logged"),
        ),
        tested=_AGNO_TESTED,
    ),
    # The items of generator tools.
    Integration(
        "agno-messages",
        "agno",
        "2.3",
        _TOOLS + "agno",
        Candidate("agno.models.base", Wrap("Model.create_function_call_result", "message")),
        tested=_AGNO_TESTED,
    ),
    Integration(
        "claude-agent-sdk",
        "claude-agent-sdk",
        "0.2",
        _TOOLS + "claude_agent_sdk",
        Candidate("claude_agent_sdk._internal.query", Wrap("Query._handle_sdk_mcp_request", "request")),
        tested=_CLAUDE_TESTED,
    ),
    Integration(
        "claude-agent-sdk-messages",
        "claude-agent-sdk",
        "0.2",
        _TOOLS + "claude_agent_sdk",
        Candidate("claude_agent_sdk._internal.message_parser", Wrap("parse_message", "parsing")),
        tested=_CLAUDE_TESTED,
    ),
    # The same function under the name by which it was imported; it is wrapped by now, unless we come late.
    Integration(
        "claude-agent-sdk-query",
        "claude-agent-sdk",
        "0.2",
        _TOOLS + "claude_agent_sdk",
        Candidate("claude_agent_sdk._internal.client", Wrap("parse_message", "parsing")),
        tested=_CLAUDE_TESTED,
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
        "anthropic-runner",
        "anthropic",
        "0.72",
        _TOOLS + "anthropic",
        Candidate(  # 1.12 and later
            "anthropic.lib.tools._beta_runner",
            Wrap("BaseSyncToolRunner._run_tool", "run_tool"),
            Wrap("BaseAsyncToolRunner._run_tool", "run_tool"),
            Wrap("BaseSyncToolRunner._run_toolset_member", "run_member"),
            Wrap("BaseAsyncToolRunner._run_toolset_member", "run_member"),
            Wrap("tool_error_content", "swallowed"),
        ),
        Candidate(
            "anthropic.lib.tools._beta_runner",
            Wrap("BaseToolRunner.__init__", "tools"),
            Wrap("BaseSyncToolRunner._get_last_assistant_message_content", "asked"),
            Wrap("BaseAsyncToolRunner._get_last_assistant_message_content", "asked"),
        ),
        tested=_ANTHROPIC_TESTED,
    ),
    # Automatic function calling.
    Integration(
        "google-genai-functions",
        "google-genai",
        "1.20",
        _TOOLS + "google_genai",
        Candidate(
            "google.genai._extra_utils",
            Wrap("invoke_function_from_dict_args", "invoke"),
            Wrap("invoke_function_from_dict_args_async", "invoke"),
        ),
        tested=_GOOGLE_GENAI_TESTED,
    ),
    Integration(
        "google-adk",
        "google-adk",
        "1.15",
        _TOOLS + "google_adk",
        Candidate(  # 2.10 and later
            "google.adk.flows.llm_flows.tools._caller",
            Wrap("_call_tool_async", "call_tool"),
            Wrap("_execute_single_prepared_call", "prepared_call"),
            Wrap("_build_response_event", "building"),
        ),
        Candidate(
            "google.adk.flows.llm_flows.functions",
            Wrap("__call_tool_async", "call_tool"),
            Wrap("_execute_single_function_call_async", "single_call"),
            Wrap("__build_response_event", "building"),
        ),
        tested="1.15 and 2.13, with Gemini",
    ),
    # The answers of error callbacks, for remedies.
    Integration(
        "google-adk-errors",
        "google-adk",
        "2.10",
        _TOOLS + "google_adk",
        Candidate("google.adk.flows.llm_flows.tools._error_handler", Wrap("run_on_tool_error_callbacks", "answering")),
        tested="2.13, with Gemini",
    ),
)
