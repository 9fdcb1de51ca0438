"""All attributes, metrics, units, labels and buckets of this package; no other module writes these names.

Names under ``gen_ai.`` are OpenTelemetry's GenAI conventions (github.com/open-telemetry/semantic-conventions-genai,
development status, state of November 2026); they are defined here because the constants of the
``opentelemetry-semantic-conventions`` package are deprecated. Sizes are UTF-8 bytes, durations are seconds.
"""

from __future__ import annotations

from functools import partial
from typing import Final

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
    Attributes,
    Metrics,
)

SCOPE: Final = "agent_otel"

# --- attributes of spans and events ---

ATTRIBUTES: Final = Attributes()
_attribute = ATTRIBUTES.add

# fmt: off
_GENAI = "as the GenAI conventions say"
OPERATION_NAME: Final = _attribute("gen_ai.operation.name", "string", "always",
    "`execute_tool`, `chat`, `invoke_agent` or `invoke_workflow`")
GEN_AI_TOOL_NAME: Final = _attribute("gen_ai.tool.name", "string", "always", "the tool's name")
TOOL_DESCRIPTION: Final = _attribute("gen_ai.tool.description", "string",
    "when a model request or an MCP server has defined the tool", "the tool's description, its first 256 characters")
TOOL_CALL_ID: Final = _attribute("gen_ai.tool.call.id", "string", _GENAI, "the id the model gave this call")
TOOL_TYPE: Final = _attribute("gen_ai.tool.type", "string", _GENAI, "`function`, `extension` or `datastore`")
AGENT_NAME: Final = _attribute("gen_ai.agent.name", "string", _GENAI,
    "the agent of the run, the same on all of its spans and series")
SUB_AGENT: Final = _attribute("agent_otel.sub_agent", "string", "where another agent inside the run made the call",
    "the name of that agent")
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
RESULT_STRUCTURED_BYTES: Final = _attribute("tool.result.structured_bytes", "int",
    "when a structured copy or artifact travels beside the text",
    "compact-JSON bytes that the state carries and the model does not see")
RESULT_SEEN_AT: Final = _attribute("tool.result.seen_at", "string", "when no adapter saw the call",
    "`model_request`: `tool.result.bytes` are those that the request delivered, and the span has no duration; "
    "`model_response`: the provider ran the tool, and its response has the result; `step`: a durable step ran "
    "it, whose output a model request held")
FAILURE_BYTES: Final = _attribute("tool.failure.bytes", "int", "when the handler raised",
    "size of the text that the framework makes of the exception, else of the exception's own text")
RESULT_TRUNCATED: Final = _attribute("tool.result.truncated", "bool", "always on success",
    "what was handed on is known to be less than what there was")
TRUNCATION_REASON: Final = _attribute("tool.result.truncation.reason", "string", "when cut",
    "`marker`, `cut_json`, `shrunk`, `offloaded`, `cleared`, `ceiling`, `claim_check`; `suspected` (a length equal to "
    "a known cap) leaves `truncated` false")
TRUNCATION_LAYER: Final = _attribute("tool.result.truncation.layer", "string", "when cut",
    "`tool`, `framework`, `model_request`, `remedy`, or `before_request` where only the request shows the call")
TRUNCATION_CUTS: Final = _attribute("tool.result.truncation.cuts", "string[]", "when two layers cut",
    "layer and reason of each cut, in order; `truncation.layer` and `.reason` are those of the last one")
RESULT_HANDED_BACK_BYTES: Final = _attribute("tool.result.handed_back_bytes", "int", "when it differs",
    "UTF-8 bytes that the framework kept of the result")
RESULT_ESTIMATED: Final = _attribute("tool.result.estimated", "bool", "only when true",
    "`tool.result.bytes` is a lower bound")
RESULT_BUDGET_BYTES: Final = _attribute("tool.result.budget_bytes", "int", "always",
    "the largest result that the weakest layer on its way accepts")
RESULT_BUDGET_LAYER: Final = _attribute("tool.result.budget_layer", "string", "always",
    "`ceiling` (or the claim check's view), `framework`, `host` (of MCP), `payload`, `transport`, `context` (the "
    "model's window); else `default`, AGENT_OTEL_LARGE_RESULT_BYTES")
RESULT_REF: Final = _attribute("tool.result.ref", "string", "when a claim check has stored it",
    "the reference under which the whole result is stored")
RESULT_STORED_EARLY: Final = _attribute("tool.result.stored_early", "bool", "only when true",
    "a claim check has stored the result because its durable run had less than two turns left")

RESULT_DELIVERED_BYTES: Final = _attribute("tool.result.delivered_bytes", "int", "on `tool_result_truncated`",
    "UTF-8 bytes of the result's text in the request to the model")
HISTORY_IS_LOST: Final = _attribute("agent_otel.history.lost", "bool", "only when true, on the span around the request",
    "the request, and none before it, has a passage of the latest results of tools")
HISTORY_UNDELIVERED_CALLS: Final = _attribute("agent_otel.history.undelivered_calls", "string[]",
    "when the history is lost",
    "ids of the calls (without an id, the tool) whose results no model request held; at most 16")
RESULT_USUAL_BYTES: Final = _attribute("tool.result.usual_bytes", "int", "on the event `tool_result_grown`",
    "the largest of the tool's first 20 results in this process, or in the one before")
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
REQUEST_MODEL: Final = _attribute("gen_ai.request.model", "string",
    "on metrics of model requests and on the span `chat {model}`", "the model, as the request names it")
_CHAT = "on the span `chat {model}`"
PROVIDER_NAME: Final = _attribute("gen_ai.provider.name", "string", _CHAT,
    "the provider, by the SDK that sends the request: `openai`, `anthropic`, `aws.bedrock`, `gcp.gemini` and others")
RESPONSE_MODEL: Final = _attribute("gen_ai.response.model", "string", f"{_CHAT}, when the response names one",
    "the model that has answered")
FINISH_REASONS: Final = _attribute("gen_ai.response.finish_reasons", "string[]", f"{_CHAT}, when the response has one",
    "why the model stopped")
INPUT_TOKENS: Final = _attribute("gen_ai.usage.input_tokens", "int", f"{_CHAT}, when the provider reports tokens",
    "tokens of the request")
OUTPUT_TOKENS: Final = _attribute("gen_ai.usage.output_tokens", "int", f"{_CHAT}, when the provider reports tokens",
    "tokens of the response")
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
_LOOPS = "on an execution, and on a call of it, from the third equal call or result on"
LOOP_TOOL: Final = _attribute("agent_otel.loop.tool", "string", _LOOPS, "the tool with most calls that repeat others")
LOOP_BY: Final = _attribute("agent_otel.loop.by", "string", _LOOPS,
    "`arguments` or `result`, as in `agent_otel.tool.repeats`")
LOOP_CALLS: Final = _attribute("agent_otel.loop.calls", "int", _LOOPS, "how many calls repeat others so far")
LOOP_SINCE: Final = _attribute("agent_otel.loop.since_turn", "int", f"{_LOOPS}, where model requests are seen",
    "the turn of the first of the equal calls or results")
_REJECTED = "when the provider refused the request"
REJECTED_REASON: Final = _attribute("agent_otel.rejected.reason", "string", _REJECTED,
    "`context`, `too_large`, `string_too_long`, `result_without_call`, `call_without_result` or `other`")
REJECTED_TOOL: Final = _attribute("agent_otel.rejected.tool", "string", f"{_REJECTED} because of a call or its result",
    "the tool: the one that the provider names, else the first without its other half, or with the largest text")
REJECTED_CALL_ID: Final = _attribute("agent_otel.rejected.call_id", "string",
    f"{_REJECTED} because of a call or its result", "the id of that call")

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
CONTEXT_CHANGE: Final = _attribute("agent_otel.context.change", "string", _CHANGED,
    "how it changed: `order` (the same definitions of tools), `added`, `removed` or `content`")
CONTEXT_MISSED_TOKENS: Final = _attribute("agent_otel.context.missed_tokens", "int", _CHANGED,
    "tokens that the provider's cache would have had if the request began as the one before")
CONTEXT_MISSED_COST: Final = _attribute("agent_otel.context.missed_cost", "double", f"{_CHANGED}; with a price",
    "US dollars that these tokens cost more than cached ones")
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
    "on a runtime's step, and on runs and calls that belong to a workflow", "the workflow's type or name")
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
_STORED = "on payloads that LangGraph, DBOS, Prefect, or a store of sessions keeps"
STORE_BYTES: Final = _attribute("workflow.store.bytes", "int", _STORED,
    "bytes that the thread has written into its store so far, as this process has seen")
STORE_AMPLIFICATION: Final = _attribute("workflow.store.amplification", "double", _STORED,
    "these bytes ÷ the bytes in them that were new: the growth of its largest state, or what was appended")
STORE_TURNS: Final = _attribute("workflow.store.turns_to_1gb", "int", f"{_STORED}, from the second state on",
    "further states until the thread has written 1 GB, if they grow as the last one did")
PAYLOAD_AMPLIFICATION: Final = _attribute("workflow.payload.amplification", "double", _ANALYSED,
    "payload bytes ÷ bytes of the results inside, each once")
# fmt: on

# --- metrics ---------------------------------------------------------------------------------------------------

METRICS: Final = Metrics(AGENT_NAME, WORKFLOW_NAME)
_histogram, _counter, _gauge = (partial(METRICS.add, kind) for kind in (HISTOGRAM, COUNTER, GAUGE))
_of_process = partial(partial, is_of_run=False)
_process_histogram, _process_counter, _process_gauge = map(_of_process, (_histogram, _counter, _gauge))

LAYER: Final = "layer"
REASON: Final = "reason"
BY: Final = "by"
CHANGE: Final = "change"
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
TOOL_DURATION: Final = _histogram("gen_ai.execute_tool.duration", "s", (GEN_AI_TOOL_NAME, ERROR_TYPE),
    "Duration of a tool call. Not emitted where another instrumentation in the process already does.", DURATION_BUCKETS)
RESULT_SIZE: Final = _histogram("agent_otel.tool.result.size", "By", (GEN_AI_TOOL_NAME, ERROR_TYPE),
    "Size of what a tool's handler produced, or of the text of its exception for the model.", SIZE_BUCKETS)
ARGS_SIZE: Final = _histogram("agent_otel.tool.args.size", "By", _TOOL, "Size of the arguments of a tool call.",
    SIZE_BUCKETS)
RESULTS_LARGE: Final = _counter("agent_otel.tool.results.large", "{result}", (GEN_AI_TOOL_NAME, THRESHOLD),
    "Results above a threshold: `warn` is AGENT_OTEL_LARGE_RESULT_BYTES.")
RESULTS_OVER_BUDGET: Final = _counter("agent_otel.tool.results.over_budget", "{result}", (GEN_AI_TOOL_NAME, LAYER),
    "Results larger than the weakest layer on their way accepts, by that layer, after remedies.")
RESULTS_TRUNCATED: Final = _counter("agent_otel.tool.results.truncated", "{result}", (GEN_AI_TOOL_NAME, LAYER, REASON),
    "Results found cut, by the layer that cut and how it is known.")
RESULTS_GROWN: Final = _counter("agent_otel.tool.results.grown", "{result}", _TOOL,
    "Results over 5 times the largest of the tool's first 20 in the process, or in the process before, which a status "
    "file keeps.")
RESULT_LARGEST: Final = _gauge("agent_otel.tool.result.largest", "By", _TOOL,
    "The largest result of the last 5 minutes, exactly.")
RESULTS_SUSPECTED: Final = _counter("agent_otel.tool.results.suspected", "{result}", _TOOL,
    "Results that may be cut: only their length equals a known limit. They are not in `.truncated`.")
RESULTS_CLEARED: Final = _counter("agent_otel.tool.results.cleared", "{result}", _TOOL,
    "Results that a layer removed from a model request to save context. They are not in `.truncated`.")
RESULT_DELIVERED: Final = _counter("agent_otel.tool.result.delivered", "By", _TOOL,
    "Bytes of tools' results that models were sent, each result once.")
RESULT_RESENT: Final = _counter("agent_otel.tool.result.resent", "By", _TOOL,
    "Bytes of tools' results that models were sent again, after the first delivery.")
RESULTS_UNMATCHED: Final = _counter("agent_otel.tool.results.unmatched", "{result}", (),
    "Results in model requests that belong to no tool call seen.")
TOOL_FOLLOWUPS: Final = _counter("agent_otel.tool.followups", "{call}", (GEN_AI_TOOL_NAME, OUTCOME),
    "What was done after a cut result or a page: `paginated`, `narrowed`, `repeated` or `ignored`.")
ANSWERS_INCOMPLETE: Final = _counter("agent_otel.answers.incomplete", "{answer}", (GEN_AI_TOOL_NAME, REASON),
    "Final answers while the model had a part of a result only, and no call had followed it up. `page` is a page that "
    "names a further one, `undelivered` a result that no request held; the others are reasons of truncation.")
SHAPE_CHANGES: Final = _counter("agent_otel.tool.result.shape_changes", "{change}", _TOOL,
    "Results with keys that the tool's results did not have before, or without keys that they had.")
SCHEMA_CHANGES: Final = _counter("agent_otel.tool.schema_changes", "{change}", _TOOL,
    "Definitions in model requests with other properties, types or required ones than the agent's requests before.")
DEFINITION_INFO: Final = _gauge("agent_otel.tool.definition_info", "", (GEN_AI_TOOL_NAME, FINGERPRINT),
    "1 for each definition of a tool in an agent's model requests, by a hash of its properties, their types and the "
    "required ones, which is the same in all processes; at most 8 by tool and agent.")
INVALID_ARGUMENTS: Final = _counter("agent_otel.tool.invalid_arguments", "{call}", _TOOL,
    "Calls whose arguments the framework or the server refused before the handler.")
TOOL_REPEATS: Final = _counter("agent_otel.tool.repeats", "{call}", (GEN_AI_TOOL_NAME, BY),
    "Calls that repeat others of one execution: `arguments` are those of an earlier call, or `result` is the third "
    "equal one of the tool in a row, or the third of two that alternate, whatever the arguments.")
REQUEST_SIZE: Final = _histogram("agent_otel.model.request.size", "By", (PART,),
    "Text bytes of a model request by part: `system`, `tools`, `user`, `assistant`, `tool_arguments`, `tool_results`.",
    SIZE_BUCKETS)
REQUEST_STABLE: Final = _histogram("agent_otel.model.request.stable_prefix", "1", (),
    "Bytes at the beginning of a request that are those of the one before ÷ bytes of the request. A request without an "
    "earlier turn has none.", SHARE_BUCKETS)
CACHED_TOKENS: Final = _counter("agent_otel.model.cached_tokens", "{token}", (),
    "Tokens of prompts that providers say they had cached.")
MODEL_DURATION: Final = _histogram("gen_ai.client.operation.duration", "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, ERROR_TYPE),
    "Duration of a model request, to the end of its stream. Not emitted where another instrumentation in the process "
    "already does.", DURATION_BUCKETS)
_MODEL = (REQUEST_MODEL,)
CONTEXT_UTILIZATION: Final = _histogram("agent_otel.model.context.utilization", "1", _MODEL,
    "Tokens of a request ÷ the model's context window, where it is known.", UTILIZATION_BUCKETS)
CONTEXT_NEAR: Final = _counter("agent_otel.model.context.near", "{request}", _MODEL,
    "Requests of AGENT_OTEL_PAYLOAD_NEAR_RATIO of the context window or more.")
REQUESTS_REJECTED: Final = _counter("agent_otel.model.requests.rejected", "{request}", (REQUEST_MODEL, REASON),
    "Requests that the provider refused: `context` (longer than the window), `too_large`, `string_too_long`, "
    "`result_without_call`, `call_without_result`, `other` (400 and 422).")
_CARRIED = (GEN_AI_TOOL_NAME, REQUEST_MODEL, PART)
CONTEXT_TOKENS_OF: Final = _counter("agent_otel.tool.context.tokens", "{token}", _CARRIED,
    "Input tokens of model requests, divided among their parts by bytes; without a tool where the part has none. The "
    "part `media` is what the provider counts as images and audio, `_other` what stands in no part.")
CONTEXT_COST: Final = _counter("agent_otel.tool.context.cost", "{USD}", _CARRIED,
    "US dollars of the same, where the model has a price.")
EXECUTION_TOKENS: Final = _histogram("agent_otel.execution.tokens", "{token}", (),
    "Input and output tokens of a finished execution, where providers report them.", TOKEN_BUCKETS)
EXECUTION_PRICE: Final = _histogram("agent_otel.execution.cost", "{USD}", (),
    "US dollars of the model requests of a finished execution, where the model has a price.", MONEY_BUCKETS)
EXECUTION_CACHED: Final = _histogram("agent_otel.execution.cached_tokens", "{token}", (),
    "Input tokens of a finished execution that were read from a provider's cache.", TOKEN_BUCKETS)
EXECUTION_MODEL_REQUESTS: Final = _histogram("agent_otel.execution.model_requests", "{request}", (),
    "Model requests of a finished execution whose response had tokens.", COUNT_BUCKETS)
EXECUTION_MODEL_RETRIES: Final = _histogram("agent_otel.execution.model_retries", "{request}", (),
    "Model requests of a finished execution that repeat the one before, as retries do.", COUNT_BUCKETS)
TOOL_OFFERED: Final = _counter("agent_otel.tool.offered", "{request}", _TOOL,
    "Model requests that offer a tool; counted for several requests at once.")
DEFINITION_SENT: Final = _counter("agent_otel.tool.definition.sent", "By", _TOOL,
    "Bytes of the definitions of tools in model requests; counted for several requests at once.")
DEFINITION_TOKENS: Final = _counter("agent_otel.tool.definition.tokens", "{token}", _TOOL,
    "Tokens of the definitions of tools in model requests; counted for several requests at once.")
_PREFIX = (PART, CHANGE)
PREFIX_CHANGES: Final = _counter("agent_otel.model.prefix.changes", "{request}", _PREFIX,
    "Requests that continue the one before and begin otherwise, by the first part that changed, and how: no prompt "
    "cache serves what follows it.")
MISSED_TOKENS: Final = _counter("agent_otel.model.cache.missed.tokens", "{token}", (REQUEST_MODEL, *_PREFIX),
    "Input tokens of these requests that the provider's cache would have had if they began as the one before.")
MISSED_COST: Final = _counter("agent_otel.model.cache.missed.cost", "{USD}", (REQUEST_MODEL, *_PREFIX),
    "US dollars that the same tokens cost more than cached ones, where the model has a price.")
HISTORY_LOST: Final = _counter("agent_otel.model.history.lost", "{request}", (),
    "Requests that lack the latest results of tools, which no earlier request had either.")
HISTORY_DOUBLED: Final = _counter("agent_otel.model.history.doubled", "{request}", (),
    "Requests that hold the same message or tool result twice.")
HISTORY_DROPPED: Final = _counter("agent_otel.model.history.dropped", "By", (),
    "Bytes of earlier messages that a window left out of a request.")
TURNS_DROPPED: Final = _counter("agent_otel.model.history.dropped_turns", "{turn}", (),
    "Messages of the model, each with the results of its calls, that a window left out of a request.")
TASKS_DROPPED: Final = _counter("agent_otel.model.history.dropped_tasks", "{task}", (),
    "Conversations whose first user message, the task, a window left out.")
EXECUTION_TOOL_CALLS: Final = _histogram("agent_otel.execution.tool_calls", "{call}", (),
    "Tool calls of a finished execution.", COUNT_BUCKETS)
EXECUTION_RESULT_SIZE: Final = _histogram("agent_otel.execution.result.size", "By", (),
    "Bytes that the tools of a finished execution produced.", SIZE_BUCKETS)
EXECUTION_PAYLOAD_SIZE: Final = _histogram("agent_otel.execution.payload.size", "By", (),
    "Largest payload of a finished execution.", SIZE_BUCKETS)
_WORKFLOW = (RUNTIME,)
_BOUNDARY = (RUNTIME, ACTIVITY, DIRECTION)
PAYLOAD_SIZE: Final = _histogram("agent_otel.workflow.payload.size", "By", _BOUNDARY, "Size of serialised payloads.",
    SIZE_BUCKETS)
UTILIZATION: Final = _histogram("agent_otel.workflow.payload.utilization", "1", (RUNTIME, DIRECTION),
    "Payload bytes ÷ cap bytes, where there is a cap.", UTILIZATION_BUCKETS)
PAYLOAD_LARGEST: Final = _gauge("agent_otel.workflow.payload.largest", "By", _BOUNDARY,
    "The largest payload of the last 5 minutes, exactly.")
TURNS_LEFT: Final = _gauge("agent_otel.workflow.payload.turns_left", "{turn}", _BOUNDARY,
    "Turns that still fit at the recent growth, of the execution with fewest in the last 5 minutes.")
STUCK: Final = _gauge("agent_otel.workflow.payload.stuck", "{execution}", _BOUNDARY,
    "Executions that are stuck now: their runtime has refused the same payload again within the last 5 minutes.")
PAYLOAD_CAP: Final = _process_gauge("agent_otel.workflow.payload.cap", "By", (RUNTIME, DIRECTION),
    "The smallest cap that payloads are held against.")
PAYLOAD_NEAR_CAP: Final = _counter("agent_otel.workflow.payload.near_cap", "{payload}", _BOUNDARY,
    "Payloads from AGENT_OTEL_PAYLOAD_NEAR_RATIO of their cap up to the cap.")
PAYLOAD_OVER_CAP: Final = _counter("agent_otel.workflow.payload.over_cap", "{payload}", _BOUNDARY,
    "Payloads above their cap.")
PAYLOADS_REJECTED: Final = _counter("agent_otel.workflow.payload.rejected", "{payload}", _BOUNDARY,
    "Payloads that the runtime refused.")
STUCK_RETRIES: Final = _counter("agent_otel.workflow.payload.stuck_retries", "{payload}", _BOUNDARY,
    "Refusals of what the same execution had refused before: a retry that cannot succeed.")
PAYLOAD_GROWTH: Final = _histogram("agent_otel.workflow.payload.growth", "By", _WORKFLOW,
    "Growth from one turn to the next of the payload nearest to its cap; a turn is the next payload of the same kind.",
    SIZE_BUCKETS)
FEW_TURNS_LEFT: Final = _counter("agent_otel.workflow.payload.few_turns_left", "{execution}", _WORKFLOW,
    "Executions whose payload has room for fewer than 3 more turns at its recent growth.")
PAYLOAD_COMPONENT: Final = _counter("agent_otel.workflow.payload.component", "By", (COMPONENT,),
    "Bytes of analysed payloads by JSON path.")
PAYLOAD_UNREAD: Final = _counter("agent_otel.workflow.payload.unread", "By", (COMPONENT,),
    "Bytes of analysed payloads that no model request of their execution held, by JSON path.")
STORE_WRITTEN: Final = _counter("agent_otel.workflow.store.written", "By", _WORKFLOW,
    "Bytes that threads write into stores that keep every payload: checkpoints, results of steps, sessions.")
STORE_NEW: Final = _counter("agent_otel.workflow.store.new", "By", _WORKFLOW,
    "Bytes among these that no earlier payload of the thread had; written ÷ new is the write amplification.")
STORES_LARGE: Final = _counter("agent_otel.workflow.store.large", "{thread}", _WORKFLOW,
    "Threads that have written more than AGENT_OTEL_STORE_WARN_BYTES; each counts once.")
PAYLOAD_DUPLICATE: Final = _counter("agent_otel.workflow.payload.duplicate", "By", (),
    "Bytes of analysed payloads that were there a second time.")
PAYLOAD_BY_TOOL: Final = _counter("agent_otel.workflow.payload.by_tool", "By", _TOOL,
    "Bytes of analysed payloads by the tool whose results they are; `_other` is the unattributed rest.")
HISTORY_SIZE: Final = _histogram("agent_otel.workflow.history.size", "By", _WORKFLOW,
    "Cumulative history or journal, where the runtime has a cap on it.", SIZE_BUCKETS)
CLAIM_CHECK_OPERATIONS: Final = _process_counter("agent_otel.claim_check.operations", "{operation}",
    (OPERATION, RESULT), "Operations on the claim store, by how they ended.")
CLAIM_CHECK_IO: Final = _process_counter("agent_otel.claim_check.io", "By", (OPERATION,),
    "Bytes written to and read from the claim store.")
CLAIM_CHECK_DURATION: Final = _process_histogram("agent_otel.claim_check.duration", "s", (OPERATION, RESULT),
    "Duration of operations on the claim store.", DURATION_BUCKETS)
CONTEXT_REMOVED: Final = _counter("agent_otel.context.removed", "By", (STRATEGY,),
    "Bytes that a remedy kept from the model.")
CONTEXT_SAVED_TOKENS: Final = _counter("agent_otel.context.saved.tokens", "{token}", (STRATEGY,),
    "Input tokens that model requests would have had in addition without a remedy: what it removed counts in each "
    "request that lacks it.")
CONTEXT_SAVED_COST: Final = _counter("agent_otel.context.saved.cost", "{USD}", (STRATEGY,),
    "US dollars of the same, at the mean price of the request's input tokens.")
CONTEXT_SAVABLE_TOKENS: Final = _counter("agent_otel.context.savable.tokens", "{token}", (STRATEGY,),
    "Input tokens that model requests would not have had with a remedy that is off, estimated from the bytes of their "
    "parts; each remedy by itself.")
CONTEXT_SAVABLE_COST: Final = _counter("agent_otel.context.savable.cost", "{USD}", (STRATEGY,),
    "US dollars of the same, at the mean price of the request's input tokens.")
CONTEXT_SUMMARIES: Final = _counter("agent_otel.context.summaries", "{summary}", (RESULT,),
    "Summaries of long model requests: `made`, or `failed`, after which the request went out as it was.")
LIMITS_HIT: Final = _counter("agent_otel.limits.hit", "{call}", (LIMIT,),
    "Calls that were skipped because their execution had reached a limit.")
POLICY_DENIED: Final = _counter("agent_otel.policy.denied", "{call}", (GEN_AI_TOOL_NAME, RULE, MODE),
    "Calls that the dispatch policy denied, by the kind of rule; in the mode `monitor` they ran.")
BACKPRESSURE_WAIT: Final = _histogram("agent_otel.backpressure.wait", "s", (REASON,),
    "Time for which a tool call or a model request waited before it began.", DURATION_BUCKETS)
INTERNAL_ERRORS: Final = _process_counter("agent_otel.internal.errors", "{error}", (WHERE,),
    "Failures of this package, none of which reached you.")
INSTRUMENTATION_INFO: Final = _process_gauge("agent_otel.instrumentation_info", "", (INTEGRATION, VERSION, TARGET),
    "1 for each wrap site of an integration: the version found and the function wrapped; target `unmatched` when a "
    "site was not found.")
PROCESS_START: Final = _process_gauge("agent_otel.process.start_time", "s", (),
    "When this process began to count, in seconds since the epoch: where it has changed, counters began at 0. Each set "
    "of values of the program's labels has its own.")
BUILD_INFO: Final = _process_gauge("agent_otel.build_info", "", (VERSION, PYTHON, SCALES_TO_ZERO),
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
CHAT: Final = "chat"
#: The provider of a model, as the conventions name it, by the package of the SDK or the module of its adapter.
PROVIDERS: Final = {
    "anthropic": "anthropic", "azure": "azure.ai.inference", "aiobotocore": "aws.bedrock", "botocore": "aws.bedrock",
    "cohere": "cohere", "fireworks": "fireworks_ai", "google": "gcp.gemini", "groq": "groq",
    "huggingface_hub": "huggingface", "mistralai": "mistral_ai", "ollama": "ollama", "openai": "openai",
    "together": "together_ai", "xai": "x_ai",
}  # fmt: skip
TOOL_ERROR: Final = "tool_error"
RESULT_TOO_LARGE: Final = "result_too_large"
LARGE_RESULT: Final = "tool.large_result"  # the log record
TRACE_ID: Final = "trace_id"
EVENT_NAME: Final = "event.name"
LIMIT_REACHED: Final = "limit_reached"
REPEATED_CALL: Final = "repeated_call"
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
LAYER_BEFORE_REQUEST: Final = "before_request"
SEEN_AT_MODEL_RESPONSE: Final = "model_response"
SEEN_AT_STEP: Final = "step"
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
REQUEST_TOO_LARGE: Final = "too_large"
STRING_TOO_LONG: Final = "string_too_long"
RESULT_WITHOUT_CALL: Final = "result_without_call"
CALL_WITHOUT_RESULT: Final = "call_without_result"
OTHER_REASON: Final = "other"
ORDER: Final = "order"
ADDED: Final = "added"
REMOVED: Final = "removed"
CONTENT: Final = "content"
ARGUMENTS: Final = "arguments"
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
LIMIT_REPEATS: Final = "repeats"
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
RULE_ARGUMENTS: Final = ARGUMENTS
RULE_APPROVE: Final = "approve"
RULE_INJECT: Final = "inject"
RULE_UNREADABLE: Final = "unreadable"
TOOL_CALL_EVENT: Final = "tool_call"
PHASE: Final = "phase"
SKIPPED: Final = "skipped"
ANSWERED: Final = "answered"  # with the result of an earlier attempt
TRIMMED: Final = "[trimmed "  # the beginning of the line that replaces a trimmed result
SUMMARIZED: Final = "SUMMARIZED executionId:'"  # the beginning of the mark that replaces a summarised one
REPLACED: Final = (TRIMMED, SUMMARIZED)
SUMMARIZE: Final = "summarize"
CONTEXT_SUMMARIZE: Final = "context_summarize"
#: The tool that reads on in a stored result.
GET_TOOL_RESULT: Final = "get_tool_result"
#: Tools that remedies add to requests; they are none of the program.
OWN_TOOLS: Final = (GET_TOOL_RESULT, CONTEXT_SUMMARIZE)
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
RESULT_GROWN: Final = "tool_result_grown"
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
    *((LAYER_MODEL_REQUEST, reason) for reason in (SHRUNK, "marker", "offloaded")),
    *((LAYER_BEFORE_REQUEST, reason) for reason in ("marker", CUT_JSON)),
)
