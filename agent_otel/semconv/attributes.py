"""Names of the attributes of spans and events; `agent_otel.semconv` hands them on.

Names under ``gen_ai.`` are OpenTelemetry's GenAI conventions.
"""

from __future__ import annotations

from typing import Final

from agent_otel.semconv.types import Attributes

ATTRIBUTES: Final = Attributes()
_attribute = ATTRIBUTES.add

# fmt: off
_GENAI = "as the GenAI conventions say"
OPERATION_NAME: Final = _attribute("gen_ai.operation.name", "string", "always",
    "`execute_tool`, `invoke_agent` or `invoke_workflow`")
GEN_AI_TOOL_NAME: Final = _attribute("gen_ai.tool.name", "string", "always", "the tool's name")
TOOL_DESCRIPTION: Final = _attribute("gen_ai.tool.description", "string",
    "when a model request or an MCP server has defined the tool", "the tool's description, its first 256 characters")
TOOL_CALL_ID: Final = _attribute("gen_ai.tool.call.id", "string", _GENAI, "the id the model gave this call")
TOOL_TYPE: Final = _attribute("gen_ai.tool.type", "string", _GENAI, "`function`, `extension` or `datastore`")
AGENT_NAME: Final = _attribute("gen_ai.agent.name", "string", _GENAI, "the agent on whose behalf the tool ran")
CONVERSATION_ID: Final = _attribute("gen_ai.conversation.id", "string", _GENAI,
    "the framework's thread or session, or the explicit execution")
TURN: Final = _attribute("agent_otel.conversation.turn", "int", "when model requests are seen",
    "the number of the model request, in its conversation, that came before the call; counted from 1")
_MCP = "on calls over the Model Context Protocol"
MCP_METHOD_NAME: Final = _attribute("mcp.method.name", "string", _MCP, "`tools/call`")
MCP_SESSION_ID: Final = _attribute("mcp.session.id", "string", f"{_MCP}, with a session over HTTP",
    "the id that the server gave the session")
MCP_SERVER_NAME: Final = _attribute("agent_otel.mcp.server.name", "string",
    "on calls of a client over the Model Context Protocol, where the server has introduced itself",
    "the name that the server gives itself (`serverInfo`)")
NETWORK_TRANSPORT: Final = _attribute("network.transport", "string", f"{_MCP}, where the transport is available",
    "`pipe` for standard input and output, `tcp` for HTTP")
TOOL_ARGUMENTS: Final = _attribute("gen_ai.tool.call.arguments", "string", "only with content capture",
    "compact JSON, the first 8 KiB (AGENT_OTEL_CAPTURE_BYTES)")
TOOL_RESULT: Final = _attribute("gen_ai.tool.call.result", "string", "only with content capture",
    "text of the result, the first 8 KiB (AGENT_OTEL_CAPTURE_BYTES)")
CONTENT_TRUNCATED: Final = _attribute("agent_otel.content.truncated", "string[]", "when a captured copy is shortened",
    "the attributes that hold only the beginning")
ERROR_TYPE: Final = _attribute("error.type", "string", "on failure",
    "the exception's qualified name, or `tool_error` where a flag is all there is")
TOOL_NAME: Final = _attribute("tool.name", "string", "always", "the tool's name")
ARGS_HASH: Final = _attribute("tool.args_hash", "string", "always",
    "12 hex digits of a blake2b over their canonical JSON, keyed by `AGENT_OTEL_HASH_KEY`, else by the key of the "
    "claim check, else anew by each process")
ARGS_BYTES: Final = _attribute("tool.args.bytes", "int", "always", "UTF-8 bytes of the arguments as compact JSON")
RESULT_BYTES: Final = _attribute("tool.result.bytes", "int", "always on success; absent when the call raised",
    "UTF-8 bytes of the text the handler produced; a structured result counts as compact JSON")
RESULT_STRUCTURED_BYTES: Final = _attribute(
    "tool.result.structured_bytes", "int", "when a structured copy or artifact travels beside the text",
    "compact-JSON bytes that the state carries and the model does not see")
RESULT_SEEN_AT: Final = _attribute("tool.result.seen_at", "string", "when no adapter saw the call",
    "`model_request`: `tool.result.bytes` are those that the request delivered, and the span has no duration; "
    "`model_response`: the provider ran the tool, and its response has the result")
RESULT_TRUNCATED: Final = _attribute("tool.result.truncated", "bool", "always on success",
    "what was handed on is known to be less than what there was")
TRUNCATION_REASON: Final = _attribute("tool.result.truncation.reason", "string", "when cut",
    "`marker`, `cut_json`, `shrunk`, `offloaded`, `cleared`, `ceiling`, `claim_check`; "
    "`suspected` (a length equal to a known cap) leaves `truncated` false")
TRUNCATION_LAYER: Final = _attribute("tool.result.truncation.layer", "string", "when cut",
    "`tool`, `framework`, `model_request` or `remedy`")
RESULT_HANDED_BACK_BYTES: Final = _attribute("tool.result.handed_back_bytes", "int", "when it differs",
    "UTF-8 bytes that the framework kept of the result")
RESULT_ESTIMATED: Final = _attribute("tool.result.estimated", "bool", "only when true",
    "`tool.result.bytes` is a lower bound")
RESULT_BUDGET_BYTES: Final = _attribute("tool.result.budget_bytes", "int", "always",
    "the largest result that the weakest layer on its way accepts")
RESULT_BUDGET_LAYER: Final = _attribute("tool.result.budget_layer", "string", "always",
    "`ceiling`, `framework`, `host` (of MCP), `payload`, `transport`, `context` (the model's window); else `default`, "
    "AGENT_OTEL_LARGE_RESULT_BYTES")
RESULT_REF: Final = _attribute("tool.result.ref", "string", "when a claim check has stored it",
    "the reference under which the whole result is stored")

RESULT_DELIVERED_BYTES: Final = _attribute("tool.result.delivered_bytes", "int", "on `tool_result_truncated`",
    "UTF-8 bytes of the result's text in the request to the model")
HISTORY_IS_LOST: Final = _attribute("agent_otel.history.lost", "bool", "only when true, on the span around the request",
    "the request has none of the earlier turns' messages")
HISTORY_UNDELIVERED_CALLS: Final = _attribute("agent_otel.history.undelivered_calls", "string[]",
    "when the history is lost and tools ran",
    "ids of the calls (without an id, the tool) whose results no model request held; at most 16")
_CHANGE = "on the event `tool_schema_changed`"
PROPERTIES_ADDED: Final = _attribute("agent_otel.tool.properties_added", "string[]", _CHANGE, "new properties")
PROPERTIES_REMOVED: Final = _attribute("agent_otel.tool.properties_removed", "string[]", _CHANGE, "removed properties")
PROPERTIES_CHANGED: Final = _attribute("agent_otel.tool.properties_changed", "string[]", _CHANGE, "other type or need")
HISTORY_DROPPED_BYTES: Final = _attribute("agent_otel.history.dropped_bytes", "int", "on the event `history_dropped`",
    "bytes of messages that the request before held and this one leaves out, while it holds later ones")
HISTORY_DROPPED_TURNS: Final = _attribute("agent_otel.history.dropped_turns", "int", "on the event `history_dropped`",
    "messages of the model among them, each with the results of its calls")
TASK_IS_DROPPED: Final = _attribute("agent_otel.history.task_dropped", "bool",
    "only when true, on the span around the request and on the event",
    "the first of the user's messages, the task, is among them")
HISTORY_IS_SUMMARIZED: Final = _attribute("agent_otel.history.summarized", "bool",
    "only when true, on the span around the request",
    "a summary, or a provider's compaction, is new in the request, in the place of earlier messages")
TOOL_FOLLOWUP: Final = _attribute("tool.followup", "string", "on a call after a truncated result or a page of its tool",
    "`paginated`, `narrowed` or `repeated`; on the event `answer_incomplete`, `ignored`")
RESULT_ESTIMATED_TOKENS: Final = _attribute("tool.result.estimated_tokens", "int", "always on success",
    "an estimate: characters ÷ 4, rounded up")

_SENT = "on the span around a model request"
REQUEST_MODEL: Final = _attribute("gen_ai.request.model", "string", "on metrics of model requests",
    "the model's name in the request")
CONTEXT_TOKENS: Final = _attribute("agent_otel.context.tokens", "int", _SENT, "tokens of the request")
CONTEXT_ESTIMATED: Final = _attribute("agent_otel.context.estimated", "bool", "only when true",
    "the provider reports no tokens: the request's bytes ÷ the bytes of a token in earlier ones, else ÷ 4")
CONTEXT_WINDOW: Final = _attribute("agent_otel.context.window", "int", "where it is known", "context window, in tokens")
CONTEXT_TURNS_TO_LIMIT: Final = _attribute("agent_otel.context.turns_to_limit", "int", "from the third request on",
    "further requests that fit into the window at the recent growth")
CONTEXT_LARGEST_TOOL: Final = _attribute("agent_otel.context.largest_tool", "string", "when the request holds results",
    "the tool whose results have most bytes in it")
CONTEXT_LARGEST_TOOL_BYTES: Final = _attribute("agent_otel.context.largest_tool_bytes", "int",
    "when the request holds results", "bytes of its results")
CONTEXT_LARGEST_PART: Final = _attribute("agent_otel.context.largest_part", "string", _SENT,
    "the part with most bytes: `system`, `tools`, `user`, `assistant`, `tool_arguments` or `tool_results`")
CONTEXT_REJECTED: Final = _attribute("agent_otel.context.rejected", "bool", "only when true",
    "the provider refused the request because it is longer than the context window")

CONTEXT_DUPLICATE_BYTES: Final = _attribute("agent_otel.context.duplicate_bytes", "int", "when there are some",
    "bytes of texts of 1 KiB and more that the request holds a second time, such as equal results of two calls")
_OFFERING = "when the request offers tools"
CONTEXT_TOOLS: Final = _attribute("agent_otel.context.tools", "int", _OFFERING, "tools that it offers")
CONTEXT_TOOLS_BYTES: Final = _attribute("agent_otel.context.tools_bytes", "int", _OFFERING,
    "bytes of their definitions")
CONTEXT_TOOLS_TOKENS: Final = _attribute("agent_otel.context.tools_tokens", "int", f"{_OFFERING}, from its response on",
    "tokens of their definitions")
CONTEXT_UNCALLED_TOOLS: Final = _attribute("agent_otel.context.uncalled_tools", "int", _OFFERING,
    "those of the tools that this process has never called")
CONTEXT_UNCALLED_BYTES: Final = _attribute("agent_otel.context.uncalled_tools_bytes", "int", "when there are some",
    "bytes of their definitions")
CONTEXT_UNCALLED_TOKENS: Final = _attribute("agent_otel.context.uncalled_tools_tokens", "int", "when there are some",
    "tokens of their definitions")
CONTEXT_LARGEST_DEFINITION: Final = _attribute("agent_otel.context.largest_definition", "string", _OFFERING,
    "the tool whose definition has most bytes")
_CHANGED = "when the request continues the one before, and begins otherwise"
CONTEXT_CHANGED_PART: Final = _attribute("agent_otel.context.changed_part", "string", _CHANGED,
    "the first part that changed, as in `agent_otel.context.largest_part`: no prompt cache serves what follows it")
CONTEXT_CHANGED_MESSAGE: Final = _attribute("agent_otel.context.changed_message", "int", f"{_CHANGED}, in its messages",
    "the place of that part in the request before, without tools and system prompt, counted from 1")
CONTEXT_CHANGED_TOOL: Final = _attribute("agent_otel.context.changed_tool", "string", f"{_CHANGED}, in a tool's part",
    "the tool to which it belongs")
CONTEXT_CHANGED_BYTES: Final = _attribute("agent_otel.context.changed_bytes", "int", _CHANGED,
    "bytes of the request before from that part on")

_RUN = "on the span of an execution, when providers report tokens"
EXECUTION_REQUESTS: Final = _attribute("agent_otel.execution.model_requests", "int", _RUN,
    "model requests whose response had tokens")
EXECUTION_INPUT_TOKENS: Final = _attribute("agent_otel.execution.input_tokens", "int", _RUN, "tokens of the requests")
EXECUTION_CACHED_TOKENS: Final = _attribute("agent_otel.execution.cached_tokens", "int", _RUN,
    "those of them that were read from the provider's cache")
EXECUTION_OUTPUT_TOKENS: Final = _attribute("agent_otel.execution.output_tokens", "int", _RUN,
    "tokens of the responses")
EXECUTION_RETRIES: Final = _attribute("agent_otel.execution.model_retries", "int", "when there are some",
    "model requests that repeat the one before in their conversation, as retries do")
EXECUTION_CALLS: Final = _attribute("agent_otel.execution.tool_calls", "int", "on the span of an execution",
    "tool calls")
EXECUTION_COST: Final = _attribute("agent_otel.execution.cost", "double", "when a price is known",
    "US dollars of the model requests")

_STEP = "on a runtime's step"
_ANALYSED = "from the warn ratio up, when the payload could be read"
_READ = f"{_ANALYSED} and model requests of the execution were seen"
WORKFLOW_NAME: Final = _attribute("gen_ai.workflow.name", "string",
    "on a runtime's step, and on runs and calls that belong to a workflow",
    "the workflow's type or name")
RUNTIME: Final = _attribute("workflow.runtime", "string", _STEP, "the durable runtime, as in `payload_caps()`")
ACTIVITY: Final = _attribute("workflow.activity", "string", _STEP, "the activity, step, task or node")
ACTIVITY_ATTEMPT: Final = _attribute("workflow.activity.attempt", "int", "from the second on", "counted from 1")
EXECUTION_ID: Final = _attribute("workflow.execution.id", "string", "on a step and on a run", "the id of this run")
PAYLOAD_BYTES: Final = _attribute("workflow.payload.bytes", "int", _STEP,
    "size of the serialised payload: of a step's two, the one nearer to its cap")
PAYLOAD_DIRECTION: Final = _attribute("workflow.payload.direction", "string", _STEP,
    "`input`, `output`, `state`, `history` or `message`")
PAYLOAD_CAP_BYTES: Final = _attribute("workflow.payload.cap_bytes", "int", "where there is a cap", "the cap it meets")
PAYLOAD_UTILIZATION: Final = _attribute("workflow.payload.utilization", "double", "where there is a cap",
    "payload bytes ÷ cap bytes")
PAYLOAD_CAP_SOURCE: Final = _attribute("workflow.payload.cap_source", "string", "where there is a cap",
    "`configured`, `discovered`, `table` or `inferred`")
PAYLOAD_TURNS_TO_CAP: Final = _attribute("workflow.payload.turns_to_cap", "int", "from the third turn on",
    "turns that still fit at the recent growth")
PAYLOAD_REJECTED: Final = _attribute("workflow.payload.rejected", "bool", "only when true", "the runtime refused it")
PAYLOAD_LARGEST_PATH: Final = _attribute("workflow.payload.largest_path", "string", _ANALYSED,
    "JSON path with most bytes, list indexes folded to `[]`, keys that may be data to `*`")
PAYLOAD_LARGEST_PATH_BYTES: Final = _attribute("workflow.payload.largest_path_bytes", "int", _ANALYSED, "its bytes")
PAYLOAD_LARGEST_TOOL: Final = _attribute("workflow.payload.largest_tool", "string", _ANALYSED,
    "the tool whose results fill most of it")
PAYLOAD_LARGEST_TOOL_BYTES: Final = _attribute("workflow.payload.largest_tool_bytes", "int", _ANALYSED, "its bytes")
PAYLOAD_DUPLICATE_BYTES: Final = _attribute("workflow.payload.duplicate_bytes", "int", _ANALYSED,
    "bytes that are there a second time")
PAYLOAD_DUPLICATE_PATHS: Final = _attribute("workflow.payload.duplicate_paths", "string[]", _ANALYSED,
    "the two paths with most bytes in common")
PAYLOAD_UNREAD_BYTES: Final = _attribute("workflow.payload.unread_bytes", "int", _READ,
    "bytes that no model request of the execution held")
PAYLOAD_UNREAD_PATH: Final = _attribute("workflow.payload.unread_path", "string", _READ,
    "the JSON path with most of these bytes")
PAYLOAD_TURNS_WITHOUT_UNREAD: Final = _attribute("workflow.payload.turns_to_cap_without_unread", "int", _READ,
    "`workflow.payload.turns_to_cap`, were the payloads without their unread share")
PAYLOAD_AMPLIFICATION: Final = _attribute("workflow.payload.amplification", "double", _ANALYSED,
    "payload bytes ÷ bytes of the results inside, each once")
# fmt: on
