"""Values of attributes and labels, and the names of spans and events; `agent_otel.semconv` hands them on.

They are apart only for the length of the modules: users write ``semconv.CEILING`` as they write ``semconv.TOOL_NAME``.
"""

from __future__ import annotations

from typing import Final

EXECUTE_TOOL: Final = "execute_tool"
TOOL_ERROR: Final = "tool_error"
RESULT_TOO_LARGE: Final = "result_too_large"
LARGE_RESULT: Final = "tool.large_result"  # the log record
TRACE_ID: Final = "trace_id"
EVENT_NAME: Final = "event.name"
LIMIT_REACHED: Final = "limit_reached"
OTHER: Final = "_other"
UNMATCHED: Final = "unmatched"
WARN: Final = "warn"

SYSTEM: Final = "system"
TOOLS: Final = "tools"
USER: Final = "user"
ASSISTANT: Final = "assistant"
TOOL_CALL_ARGUMENTS: Final = "tool_arguments"
TOOL_RESULTS: Final = "tool_results"
REQUEST_PARTS: Final = (SYSTEM, TOOLS, USER, ASSISTANT, TOOL_CALL_ARGUMENTS, TOOL_RESULTS)

MEDIA: Final = "media"  # of a request's tokens

LAYER_TOOL: Final = "tool"
LAYER_FRAMEWORK: Final = "framework"
LAYER_MODEL_REQUEST: Final = "model_request"
SEEN_AT_MODEL_RESPONSE: Final = "model_response"
LAYER_REMEDY: Final = "remedy"
CEILING: Final = "ceiling"
CLAIM_CHECK: Final = "claim_check"
TRIM: Final = "trim"
COMPACT: Final = "compact"
DEFAULT: Final = "default"
HOST: Final = "host"
PAYLOAD: Final = "payload"
TRANSPORT: Final = "transport"
CONTEXT: Final = "context"
BUDGET_LAYERS: Final = (CEILING, LAYER_FRAMEWORK, HOST, PAYLOAD, TRANSPORT, CONTEXT, DEFAULT)
# Operations and results whose counters exist at 0 when the claim check is on, so that alerts see the first increase.
CLAIM_CHECK_CASES: Final = (
    *(("put", result) for result in ("ok", "error", "timeout", "open")),
    *(("get", result) for result in ("ok", "error", "not_found", "expired", "corrupt", "denied")),
)
LIMIT_TOOL_CALLS: Final = "tool_calls"
LIMIT_CONVERSATION: Final = "conversation_tool_calls"
PARALLEL: Final = "parallel"
LIMIT_BYTES: Final = "result_bytes"
LIMIT_TOKENS: Final = "result_tokens"
LIMIT_EXECUTION: Final = "execution_tokens"
WAIT_EVENT: Final = "backpressure"
WAIT_SECONDS: Final = "wait.seconds"
WAIT_TOKENS: Final = "tokens"
WAIT_RATE_LIMIT: Final = "rate_limit"
TOOL_DENIED: Final = "tool_denied"
POLICY_DENIED_EVENT: Final = "policy_denied"
ARGUMENT: Final = "argument"
ENFORCE: Final = "enforce"
MONITOR: Final = "monitor"
RULE_TOOLS: Final = "tools"
RULE_REQUIRE: Final = "require"
RULE_FORBID: Final = "forbid"
RULE_ARGUMENTS: Final = "arguments"
RULE_APPROVE: Final = "approve"
RULE_INJECT: Final = "inject"
RULE_UNREADABLE: Final = "unreadable"
TOOL_CALL_EVENT: Final = "tool_call"
PHASE: Final = "phase"
SKIPPED: Final = "skipped"
ANSWERED: Final = "answered"  # with the result of an earlier attempt
TRIMMED: Final = "[trimmed "  # the beginning of the line that replaces a trimmed result
SUMMARIZE: Final = "summarize"
CONTEXT_SUMMARIZE: Final = "context_summarize"
#: The tool that reads on in a stored result.
GET_TOOL_RESULT: Final = "get_tool_result"
REMOVED_BYTES: Final = "removed.bytes"
REMOVED_MESSAGES: Final = "removed.messages"
TOKENS_BEFORE: Final = "tokens.before"
TOKENS_AFTER: Final = "tokens.after"
MADE: Final = "made"
FAILED: Final = "failed"
#: The name of a part of a request that holds a provider's own summary.
COMPACTION: Final = "compaction"
CLEARED: Final = "cleared"
OFFLOADED: Final = "offloaded"
PAGINATED: Final = "paginated"
NARROWED: Final = "narrowed"
REPEATED: Final = "repeated"
IGNORED: Final = "ignored"
PAGE: Final = "page"
UNDELIVERED: Final = "undelivered"
ANSWER_INCOMPLETE: Final = "answer_incomplete"
HISTORY_DROPPED_EVENT: Final = "history_dropped"
SHAPE_CHANGED: Final = "tool_result_shape_changed"
TOOL_SCHEMA_CHANGED: Final = "tool_schema_changed"
KEYS_ADDED: Final = "keys.added"
KEYS_REMOVED: Final = "keys.removed"
SHRUNK: Final = "shrunk"
SUSPECTED: Final = "suspected"
CUT_JSON: Final = "cut_json"
CUT_CHILD: Final = "tool_result_truncated"
MCP_METHOD: Final = "tools/call"
PIPE: Final = "pipe"
TCP: Final = "tcp"
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"
EXECUTE_ACTIVITY: Final = "execute_activity"
PAYLOAD_CHILD: Final = "workflow_payload"
INPUT: Final = "input"
OUTPUT: Final = "output"
STATE: Final = "state"
HISTORY: Final = "history"
MESSAGE: Final = "message"

# Layers and reasons whose counters exist at 0 from a tool's first call, so that the first truncation is an increase.
TRUNCATION_CASES: Final = (
    *((LAYER_TOOL, reason) for reason in ("marker", CUT_JSON, "offloaded")),
    *((LAYER_FRAMEWORK, reason) for reason in (SHRUNK, "marker", "offloaded")),
    *((LAYER_MODEL_REQUEST, reason) for reason in (SHRUNK, "marker", CUT_JSON, "offloaded")),
)
