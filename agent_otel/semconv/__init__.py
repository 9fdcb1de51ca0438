"""All attributes, metrics, units, labels and buckets of this package; no other module writes these names.

Names under ``gen_ai.`` are OpenTelemetry's GenAI conventions (github.com/open-telemetry/semantic-conventions-genai,
development status, state of November 2026); they are defined here because the constants of the
``opentelemetry-semantic-conventions`` package are deprecated. Sizes are UTF-8 bytes, durations are seconds.
"""

from __future__ import annotations

from typing import Final

from agent_otel.semconv.attributes import *  # noqa: F403 - handed on, so that users read one module
from agent_otel.semconv.attributes import (
    ACTIVITY,
    AGENT_NAME,
    ERROR_TYPE,
    GEN_AI_TOOL_NAME,
    REQUEST_MODEL,
    RUNTIME,
    WORKFLOW_NAME,
)
from agent_otel.semconv.types import (
    COUNT_BUCKETS,
    COUNTER,
    DURATION_BUCKETS,
    GAUGE,
    HISTOGRAM,
    MONEY_BUCKETS,
    SHARE_BUCKETS,
    SIZE_BUCKETS,
    TOKEN_BUCKETS,
    UTILIZATION_BUCKETS,
    Metrics,
)

SCOPE: Final = "agent_otel"

# --- metrics ---------------------------------------------------------------------------------------------------

METRICS: Final = Metrics()
_metric = METRICS.add

LAYER: Final = "layer"
REASON: Final = "reason"
THRESHOLD: Final = "threshold"
PART: Final = "part"
WHERE: Final = "where"
INTEGRATION: Final = "integration"
VERSION: Final = "version"
TARGET: Final = "target"
PYTHON: Final = "python"
SCALES_TO_ZERO: Final = "scales_to_zero"
DIRECTION: Final = "direction"
COMPONENT: Final = "component"
OUTCOME: Final = "outcome"
OPERATION: Final = "operation"
RESULT: Final = "result"
STRATEGY: Final = "strategy"
LIMIT: Final = "limit"
RULE: Final = "rule"
MODE: Final = "mode"
FINGERPRINT: Final = "fingerprint"

_TOOL = (GEN_AI_TOOL_NAME,)

# fmt: off
TOOL_DURATION: Final = _metric(
    "gen_ai.execute_tool.duration", HISTOGRAM, "s", (GEN_AI_TOOL_NAME, AGENT_NAME, ERROR_TYPE),
    "Duration of a tool call. Not emitted where another instrumentation in the process already does.", DURATION_BUCKETS)
RESULT_SIZE: Final = _metric("agent_otel.tool.result.size", HISTOGRAM, "By", _TOOL,
    "Size of what a tool's handler produced.", SIZE_BUCKETS)
ARGS_SIZE: Final = _metric("agent_otel.tool.args.size", HISTOGRAM, "By", _TOOL,
    "Size of the arguments of a tool call.", SIZE_BUCKETS)
RESULTS_LARGE: Final = _metric("agent_otel.tool.results.large", COUNTER, "{result}", (GEN_AI_TOOL_NAME, THRESHOLD),
    "Results above a threshold: `warn` is AGENT_OTEL_LARGE_RESULT_BYTES.")
RESULTS_OVER_BUDGET: Final = _metric("agent_otel.tool.results.over_budget", COUNTER, "{result}",
    (GEN_AI_TOOL_NAME, LAYER),
    "Results larger than the weakest layer on their way accepts, by that layer, after remedies.")
RESULTS_TRUNCATED: Final = _metric(
    "agent_otel.tool.results.truncated", COUNTER, "{result}", (GEN_AI_TOOL_NAME, LAYER, REASON),
    "Results found cut, by the layer that cut and how it is known.")
RESULTS_SUSPECTED: Final = _metric("agent_otel.tool.results.suspected", COUNTER, "{result}", _TOOL,
    "Results that may be cut: only their length equals a known limit. They are not in `.truncated`.")
RESULTS_CLEARED: Final = _metric("agent_otel.tool.results.cleared", COUNTER, "{result}", _TOOL,
    "Results that a layer removed from a model request to save context. They are not in `.truncated`.")
RESULT_DELIVERED: Final = _metric("agent_otel.tool.result.delivered", COUNTER, "By", _TOOL,
    "Bytes of tools' results that models were sent, each result once.")
RESULT_RESENT: Final = _metric("agent_otel.tool.result.resent", COUNTER, "By", _TOOL,
    "Bytes of tools' results that models were sent again, after the first delivery.")
RESULTS_UNMATCHED: Final = _metric("agent_otel.tool.results.unmatched", COUNTER, "{result}", (),
    "Results in model requests that belong to no tool call seen.")
TOOL_FOLLOWUPS: Final = _metric("agent_otel.tool.followups", COUNTER, "{call}", (GEN_AI_TOOL_NAME, OUTCOME),
    "What was done after a cut result or a page: `paginated`, `narrowed`, `repeated` or `ignored`.")
ANSWERS_INCOMPLETE: Final = _metric("agent_otel.answers.incomplete", COUNTER, "{answer}", (GEN_AI_TOOL_NAME, REASON),
    "Final answers while the model had a part of a result only, and no call had followed it up. `page` is a page that "
    "names a further one, `undelivered` a result that no request held; the others are reasons of truncation.")
SHAPE_CHANGES: Final = _metric("agent_otel.tool.result.shape_changes", COUNTER, "{change}", _TOOL,
    "Results with keys that the tool's results did not have before, or without keys that they had.")
SCHEMA_CHANGES: Final = _metric("agent_otel.tool.schema_changes", COUNTER, "{change}", _TOOL,
    "Definitions in model requests with other properties, types or required ones than the agent's requests before.")
DEFINITION_INFO: Final = _metric("agent_otel.tool.definition_info", GAUGE, "",
    (GEN_AI_TOOL_NAME, AGENT_NAME, FINGERPRINT),
    "1 for each definition of a tool in an agent's model requests, by a hash of its properties, their types and the "
    "required ones, which is the same in all processes; at most 8 by tool and agent.")
INVALID_ARGUMENTS: Final = _metric("agent_otel.tool.invalid_arguments", COUNTER, "{call}", _TOOL,
    "Calls whose arguments the framework or the server refused before the handler.")
TOOL_REPEATS: Final = _metric("agent_otel.tool.repeats", COUNTER, "{call}", _TOOL,
    "Calls with the same arguments again in one execution.")
REQUEST_SIZE: Final = _metric("agent_otel.model.request.size", HISTOGRAM, "By", (PART,),
    "Text bytes of a model request by part: `system`, `tools`, `user`, `assistant`, `tool_arguments`, `tool_results`.",
    SIZE_BUCKETS)
REQUEST_STABLE: Final = _metric("agent_otel.model.request.stable_prefix", HISTOGRAM, "1", (),
    "Bytes at the beginning of a request that are those of the one before ÷ bytes of the request. A request without "
    "an earlier turn has none.",
    SHARE_BUCKETS)
CACHED_TOKENS: Final = _metric("agent_otel.model.cached_tokens", COUNTER, "{token}", (),
    "Tokens of prompts that providers say they had cached.")
_MODEL = (REQUEST_MODEL,)
CONTEXT_UTILIZATION: Final = _metric("agent_otel.model.context.utilization", HISTOGRAM, "1", _MODEL,
    "Tokens of a request ÷ the model's context window, where it is known.", UTILIZATION_BUCKETS)
CONTEXT_NEAR: Final = _metric("agent_otel.model.context.near", COUNTER, "{request}", _MODEL,
    "Requests of AGENT_OTEL_PAYLOAD_NEAR_RATIO of the context window or more.")
CONTEXTS_REJECTED: Final = _metric("agent_otel.model.context.rejected", COUNTER, "{request}", _MODEL,
    "Requests that the provider refused because they are longer than the context window.")
_CARRIED = (GEN_AI_TOOL_NAME, REQUEST_MODEL, PART)
CONTEXT_TOKENS_OF: Final = _metric("agent_otel.tool.context.tokens", COUNTER, "{token}", _CARRIED,
    "Input tokens of model requests, divided among their parts by bytes; without a tool where the part has none. "
    "The part `media` is what the provider counts as images and audio, `_other` what stands in no part.")
CONTEXT_COST: Final = _metric("agent_otel.tool.context.cost", COUNTER, "{USD}", _CARRIED,
    "US dollars of the same, where the model has a price.")
EXECUTION_TOKENS: Final = _metric("agent_otel.execution.tokens", HISTOGRAM, "{token}", (WORKFLOW_NAME, AGENT_NAME),
    "Input and output tokens of a finished execution, where providers report them.", TOKEN_BUCKETS)
EXECUTION_PRICE: Final = _metric("agent_otel.execution.cost", HISTOGRAM, "{USD}", (WORKFLOW_NAME, AGENT_NAME),
    "US dollars of the model requests of a finished execution, where the model has a price.", MONEY_BUCKETS)
_NAMED = (WORKFLOW_NAME, AGENT_NAME)
EXECUTION_CACHED: Final = _metric("agent_otel.execution.cached_tokens", HISTOGRAM, "{token}", _NAMED,
    "Input tokens of a finished execution that were read from a provider's cache.", TOKEN_BUCKETS)
EXECUTION_MODEL_REQUESTS: Final = _metric("agent_otel.execution.model_requests", HISTOGRAM, "{request}", _NAMED,
    "Model requests of a finished execution whose response had tokens.", COUNT_BUCKETS)
EXECUTION_MODEL_RETRIES: Final = _metric("agent_otel.execution.model_retries", HISTOGRAM, "{request}", _NAMED,
    "Model requests of a finished execution that repeat the one before, as retries do.", COUNT_BUCKETS)
TOOL_OFFERED: Final = _metric("agent_otel.tool.offered", COUNTER, "{request}", _TOOL,
    "Model requests that offer a tool; counted for several requests at once.")
DEFINITION_SENT: Final = _metric("agent_otel.tool.definition.sent", COUNTER, "By", _TOOL,
    "Bytes of the definitions of tools in model requests; counted for several requests at once.")
DEFINITION_TOKENS: Final = _metric("agent_otel.tool.definition.tokens", COUNTER, "{token}", _TOOL,
    "Tokens of the definitions of tools in model requests; counted for several requests at once.")
PREFIX_CHANGES: Final = _metric("agent_otel.model.prefix.changes", COUNTER, "{request}", (PART,),
    "Requests that continue the one before and begin otherwise, by the first part that changed: no prompt cache serves "
    "what follows it.")
HISTORY_LOST: Final = _metric("agent_otel.model.history.lost", COUNTER, "{request}", (AGENT_NAME,),
    "Requests from the second turn on that have none of the earlier turns' messages.")
HISTORY_DOUBLED: Final = _metric("agent_otel.model.history.doubled", COUNTER, "{request}", (AGENT_NAME,),
    "Requests that hold the same message or tool result twice.")
HISTORY_DROPPED: Final = _metric("agent_otel.model.history.dropped", COUNTER, "By", (AGENT_NAME,),
    "Bytes of earlier messages that a window left out of a request.")
TURNS_DROPPED: Final = _metric("agent_otel.model.history.dropped_turns", COUNTER, "{turn}", (AGENT_NAME,),
    "Messages of the model, each with the results of its calls, that a window left out of a request.")
TASKS_DROPPED: Final = _metric("agent_otel.model.history.dropped_tasks", COUNTER, "{task}", (AGENT_NAME,),
    "Conversations whose first user message, the task, a window left out.")
EXECUTION_TOOL_CALLS: Final = _metric(
    "agent_otel.execution.tool_calls", HISTOGRAM, "{call}", (WORKFLOW_NAME, AGENT_NAME),
    "Tool calls of a finished execution.", COUNT_BUCKETS)
EXECUTION_RESULT_SIZE: Final = _metric("agent_otel.execution.result.size", HISTOGRAM, "By", (WORKFLOW_NAME, AGENT_NAME),
    "Bytes that the tools of a finished execution produced.", SIZE_BUCKETS)
EXECUTION_PAYLOAD_SIZE: Final = _metric(
    "agent_otel.execution.payload.size", HISTOGRAM, "By", (WORKFLOW_NAME, AGENT_NAME),
    "Largest payload of a finished execution.", SIZE_BUCKETS)
_WORKFLOW = (RUNTIME, WORKFLOW_NAME)
_BOUNDARY = (RUNTIME, WORKFLOW_NAME, ACTIVITY, DIRECTION)
PAYLOAD_SIZE: Final = _metric("agent_otel.workflow.payload.size", HISTOGRAM, "By", _BOUNDARY,
    "Size of serialised payloads.", SIZE_BUCKETS)
UTILIZATION: Final = _metric(
    "agent_otel.workflow.payload.utilization", HISTOGRAM, "1", (RUNTIME, WORKFLOW_NAME, DIRECTION),
    "Payload bytes ÷ cap bytes, where there is a cap.", UTILIZATION_BUCKETS)
PAYLOAD_CAP: Final = _metric("agent_otel.workflow.payload.cap", GAUGE, "By", (RUNTIME, DIRECTION),
    "The smallest cap that payloads are held against.")
PAYLOAD_NEAR_CAP: Final = _metric("agent_otel.workflow.payload.near_cap", COUNTER, "{payload}", _BOUNDARY,
    "Payloads from AGENT_OTEL_PAYLOAD_NEAR_RATIO of their cap up to the cap.")
PAYLOAD_OVER_CAP: Final = _metric("agent_otel.workflow.payload.over_cap", COUNTER, "{payload}", _BOUNDARY,
    "Payloads above their cap.")
PAYLOADS_REJECTED: Final = _metric("agent_otel.workflow.payload.rejected", COUNTER, "{payload}", _BOUNDARY,
    "Payloads that the runtime refused.")
STUCK_RETRIES: Final = _metric("agent_otel.workflow.payload.stuck_retries", COUNTER, "{payload}", _BOUNDARY,
    "Refusals of what the same execution had refused before: a retry that cannot succeed.")
PAYLOAD_GROWTH: Final = _metric("agent_otel.workflow.payload.growth", HISTOGRAM, "By", _WORKFLOW,
    "Growth from one turn to the next of the payload nearest to its cap; a turn is the next payload of the same kind.",
    SIZE_BUCKETS)
FEW_TURNS_LEFT: Final = _metric("agent_otel.workflow.payload.few_turns_left", COUNTER, "{execution}", _WORKFLOW,
    "Executions whose payload has room for fewer than 3 more turns at its recent growth.")
PAYLOAD_COMPONENT: Final = _metric("agent_otel.workflow.payload.component", COUNTER, "By", (WORKFLOW_NAME, COMPONENT),
    "Bytes of analysed payloads by JSON path.")
PAYLOAD_UNREAD: Final = _metric("agent_otel.workflow.payload.unread", COUNTER, "By", (WORKFLOW_NAME, COMPONENT),
    "Bytes of analysed payloads that no model request of their execution held, by JSON path.")
PAYLOAD_DUPLICATE: Final = _metric("agent_otel.workflow.payload.duplicate", COUNTER, "By", (WORKFLOW_NAME,),
    "Bytes of analysed payloads that were there a second time.")
PAYLOAD_BY_TOOL: Final = _metric(
    "agent_otel.workflow.payload.by_tool", COUNTER, "By", (WORKFLOW_NAME, GEN_AI_TOOL_NAME),
    "Bytes of analysed payloads by the tool whose results they are; `_other` is the unattributed rest.")
HISTORY_SIZE: Final = _metric("agent_otel.workflow.history.size", HISTOGRAM, "By", _WORKFLOW,
    "Cumulative history or journal, where the runtime has a cap on it.", SIZE_BUCKETS)
CLAIM_CHECK_OPERATIONS: Final = _metric(
    "agent_otel.claim_check.operations", COUNTER, "{operation}", (OPERATION, RESULT),
    "Operations on the claim store, by how they ended.")
CLAIM_CHECK_IO: Final = _metric("agent_otel.claim_check.io", COUNTER, "By", (OPERATION,),
    "Bytes written to and read from the claim store.")
CLAIM_CHECK_DURATION: Final = _metric("agent_otel.claim_check.duration", HISTOGRAM, "s", (OPERATION, RESULT),
    "Duration of operations on the claim store.", DURATION_BUCKETS)
CONTEXT_REMOVED: Final = _metric("agent_otel.context.removed", COUNTER, "By", (STRATEGY,),
    "Bytes that a remedy kept from the model.")
CONTEXT_SAVED_TOKENS: Final = _metric("agent_otel.context.saved.tokens", COUNTER, "{token}", (STRATEGY,),
    "Input tokens that model requests would have had in addition without a remedy: what it removed counts in each "
    "request that lacks it.")
CONTEXT_SAVED_COST: Final = _metric("agent_otel.context.saved.cost", COUNTER, "{USD}", (STRATEGY,),
    "US dollars of the same, at the mean price of the request's input tokens.")
CONTEXT_SAVABLE_TOKENS: Final = _metric("agent_otel.context.savable.tokens", COUNTER, "{token}", (STRATEGY,),
    "Input tokens that model requests would not have had with a remedy that is off, estimated from the bytes of their "
    "parts; each remedy by itself.")
CONTEXT_SAVABLE_COST: Final = _metric("agent_otel.context.savable.cost", COUNTER, "{USD}", (STRATEGY,),
    "US dollars of the same, at the mean price of the request's input tokens.")
CONTEXT_SUMMARIES: Final = _metric("agent_otel.context.summaries", COUNTER, "{summary}", (RESULT,),
    "Summaries of long model requests: `made`, or `failed`, after which the request went out as it was.")
LIMITS_HIT: Final = _metric("agent_otel.limits.hit", COUNTER, "{call}", (LIMIT,),
    "Calls that were skipped because their execution had reached a limit.")
POLICY_DENIED: Final = _metric("agent_otel.policy.denied", COUNTER, "{call}", (GEN_AI_TOOL_NAME, RULE, MODE),
    "Calls that the dispatch policy denied, by the kind of rule; in the mode `monitor` they ran.")
BACKPRESSURE_WAIT: Final = _metric("agent_otel.backpressure.wait", HISTOGRAM, "s", (REASON,),
    "Time for which a tool call or a model request waited before it began.", DURATION_BUCKETS)
INTERNAL_ERRORS: Final = _metric("agent_otel.internal.errors", COUNTER, "{error}", (WHERE,),
    "Failures of this package, none of which reached you.")
INSTRUMENTATION_INFO: Final = _metric("agent_otel.instrumentation_info", GAUGE, "", (INTEGRATION, VERSION, TARGET),
    "1 for each wrap site of an integration: the version found and the function wrapped; target `unmatched` when "
    "a site was not found.")
PROCESS_START: Final = _metric("agent_otel.process.start_time", GAUGE, "s", (),
    "When this process began to count, in seconds since the epoch: where it has changed, counters began at 0. Each set "
    "of values of the program's labels has its own.")
BUILD_INFO: Final = _metric("agent_otel.build_info", GAUGE, "", (VERSION, PYTHON, SCALES_TO_ZERO),
    "1; versions of this package, and `true` with AGENT_OTEL_SCALES_TO_ZERO.")

# Values of attributes and labels, and the names of spans and events; `agent_otel.semconv` hands them on. They are
# apart only for the length of the modules: users write ``semconv.CEILING`` as they write ``semconv.TOOL_NAME``.

CLEARED: Final = "cleared"
SUSPECTED: Final = "suspected"
# fmt: on

# Reasons with counters of their own, so that a sum over `agent_otel.tool.results.truncated` counts truncations only.
REASON_COUNTERS: Final = {SUSPECTED: RESULTS_SUSPECTED, CLEARED: RESULTS_CLEARED}
# Limits of distinct label values; further names become `_other`.
NAME_LIMITS: Final = {
    GEN_AI_TOOL_NAME: 100, AGENT_NAME: 50, WORKFLOW_NAME: 100, ACTIVITY: 200, ERROR_TYPE: 100, COMPONENT: 100,
    RUNTIME: 30, REQUEST_MODEL: 50}  # fmt: skip

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
