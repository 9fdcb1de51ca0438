"""All attributes, metrics, units, labels and buckets of this package; no other module writes these names.

Names under ``gen_ai.`` are OpenTelemetry's GenAI conventions (github.com/open-telemetry/semantic-conventions-genai,
development status, state of November 2026); they are defined here because the constants of the
``opentelemetry-semantic-conventions`` package are deprecated. Sizes are UTF-8 bytes, durations are seconds.
"""

from __future__ import annotations

from typing import Final

from agent_otel.semconv_types import (
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
    Attributes,
    Metrics,
)
from agent_otel.semconv_values import *  # noqa: F403 - handed on, so that users read one module
from agent_otel.semconv_values import CLEARED, SUSPECTED

SCOPE: Final = "agent_otel"

# --- attributes ------------------------------------------------------------------------------------------------

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
    "12 hex digits of a blake2b over their canonical JSON, keyed by `AGENT_OTEL_HASH_KEY`, else anew by each process")
ARGS_BYTES: Final = _attribute("tool.args.bytes", "int", "always", "UTF-8 bytes of the arguments as compact JSON")
RESULT_BYTES: Final = _attribute("tool.result.bytes", "int", "always on success; absent when the call raised",
    "UTF-8 bytes of the text the handler produced; a structured result counts as compact JSON")
RESULT_STRUCTURED_BYTES: Final = _attribute(
    "tool.result.structured_bytes", "int", "when a structured copy or artifact travels beside the text",
    "compact-JSON bytes that the state carries and the model does not see")
RESULT_SEEN_AT: Final = _attribute("tool.result.seen_at", "string", "when no adapter saw the call",
    "`model_request`: `tool.result.bytes` are those that the request delivered, and the span has no duration")
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
RESULT_BUDGET_BYTES: Final = _attribute("tool.result.budget_bytes", "int", "always on success",
    "the largest result that the weakest layer on its way accepts")
RESULT_BUDGET_LAYER: Final = _attribute("tool.result.budget_layer", "string", "always on success",
    "`ceiling`, `framework`, `host` (of MCP), `payload`, `transport`; else `default`, AGENT_OTEL_LARGE_RESULT_BYTES")
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

_RUN = "on the span of an execution, when providers report tokens"
EXECUTION_REQUESTS: Final = _attribute("agent_otel.execution.model_requests", "int", _RUN,
    "model requests whose response had tokens")
EXECUTION_INPUT_TOKENS: Final = _attribute("agent_otel.execution.input_tokens", "int", _RUN, "tokens of the requests")
EXECUTION_CACHED_TOKENS: Final = _attribute("agent_otel.execution.cached_tokens", "int", _RUN,
    "those of them that were read from the provider's cache")
EXECUTION_OUTPUT_TOKENS: Final = _attribute("agent_otel.execution.output_tokens", "int", _RUN,
    "tokens of the responses")
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
RESULT_PRODUCED: Final = _metric("agent_otel.tool.result.produced", COUNTER, "By", _TOOL,
    "Bytes that tools' handlers produced.")
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
    "The cap that payloads are held against.")
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
CONTEXT_SUMMARIES: Final = _metric("agent_otel.context.summaries", COUNTER, "{summary}", (RESULT,),
    "Summaries of long model requests: `made`, or `failed`, after which the request went out as it was.")
LIMITS_HIT: Final = _metric("agent_otel.limits.hit", COUNTER, "{call}", (LIMIT,),
    "Calls that were skipped because their execution had reached a limit.")
POLICY_DENIED: Final = _metric("agent_otel.policy.denied", COUNTER, "{call}", (GEN_AI_TOOL_NAME, RULE, MODE),
    "Calls that the dispatch policy denied, by the kind of rule; in the mode `monitor` they ran.")
BACKPRESSURE_WAIT: Final = _metric("agent_otel.backpressure.wait", HISTOGRAM, "s", (REASON,),
    "Time for which the dispatch of a tool call waited.", DURATION_BUCKETS)
INTERNAL_ERRORS: Final = _metric("agent_otel.internal.errors", COUNTER, "{error}", (WHERE,),
    "Failures of this package, none of which reached you.")
INSTRUMENTATION_INFO: Final = _metric("agent_otel.instrumentation_info", GAUGE, "", (INTEGRATION, VERSION, TARGET),
    "1 for each wrap site of an integration: the version found and the function wrapped; target `unmatched` when "
    "a site was not found.")
PROCESS_START: Final = _metric("agent_otel.process.start_time", GAUGE, "s", (),
    "When this process began to count, in seconds since the epoch: where it has changed, counters began at 0.")
BUILD_INFO: Final = _metric("agent_otel.build_info", GAUGE, "", (VERSION, PYTHON, SCALES_TO_ZERO),
    "1; versions of this package, and `true` with AGENT_OTEL_SCALES_TO_ZERO.")
# fmt: on

# Reasons with counters of their own, so that a sum over `agent_otel.tool.results.truncated` counts truncations only.
REASON_COUNTERS: Final = {SUSPECTED: RESULTS_SUSPECTED, CLEARED: RESULTS_CLEARED}
# Limits of distinct label values; further names become `_other`.
NAME_LIMITS: Final = {
    GEN_AI_TOOL_NAME: 100, AGENT_NAME: 50, WORKFLOW_NAME: 100, ACTIVITY: 200, ERROR_TYPE: 100, COMPONENT: 100,
    RUNTIME: 30, REQUEST_MODEL: 50}  # fmt: skip
