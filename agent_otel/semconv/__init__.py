"""All attributes, metrics, units, labels and buckets of this package; no other module writes these names.

Names under ``gen_ai.`` are OpenTelemetry's GenAI conventions (github.com/open-telemetry/semantic-conventions-genai,
development status, state of November 2026); they are defined here because the constants of the
``opentelemetry-semantic-conventions`` package are deprecated. Sizes are UTF-8 bytes, durations are seconds.
"""

from __future__ import annotations

from functools import partial

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
    Attribute,
    Metric,
)

SCOPE = "agent_otel"

# --- attributes of spans and events ---

ATTRIBUTES = dict[str, Attribute]()


def _attribute(name: str, *row: str) -> str:
    """Add an attribute and return its name."""
    ATTRIBUTES[name] = Attribute(name, *row)
    return name


# fmt: off
_GENAI = "when known"
OPERATION_NAME = _attribute("gen_ai.operation.name", "string", "always",
    "`execute_tool`, `chat`, `invoke_agent` or `invoke_workflow`")
GEN_AI_TOOL_NAME = _attribute("gen_ai.tool.name", "string", "always", "the tool's name")
TOOL_DESCRIPTION = _attribute("gen_ai.tool.description", "string",
    "when a model request or an MCP server has defined the tool", "its first 256 characters")
TOOL_CALL_ID = _attribute("gen_ai.tool.call.id", "string", _GENAI, "the id the model gave this call")
TOOL_TYPE = _attribute("gen_ai.tool.type", "string", _GENAI, "`function`, `extension` or `datastore`")
AGENT_NAME = _attribute("gen_ai.agent.name", "string", _GENAI,
    "the agent of the run, the same on all of its spans and series")
SUB_AGENT = _attribute("agent_otel.sub_agent", "string", "when another agent inside the run made the call",
    "that agent's name")
CONVERSATION_ID = _attribute("gen_ai.conversation.id", "string", _GENAI,
    "the framework's thread or session, or the named execution")
TURN = _attribute("agent_otel.conversation.turn", "int", "when model requests are seen",
    "number of the model request before the call, from 1")
_MCP = "on calls over MCP"
MCP_METHOD_NAME = _attribute("mcp.method.name", "string", _MCP, "`tools/call`")
MCP_SESSION_ID = _attribute("mcp.session.id", "string", f"{_MCP} with a session",
    "the server's id of the session")
MCP_SERVER_NAME = _attribute("agent_otel.mcp.server.name", "string",
    "on calls of an MCP client",
    "the server's name for itself (`serverInfo`)")
NETWORK_TRANSPORT = _attribute("network.transport", "string", _MCP,
    "`pipe` for standard input and output, `tcp` for HTTP")
TOOL_ARGUMENTS = _attribute("gen_ai.tool.call.arguments", "string", "only with content capture",
    "compact JSON, the first 8 KiB (AGENT_OTEL_CAPTURE_BYTES)")
TOOL_RESULT = _attribute("gen_ai.tool.call.result", "string", "only with content capture",
    "text of the result, the first 8 KiB (AGENT_OTEL_CAPTURE_BYTES)")
CONTENT_TRUNCATED = _attribute("agent_otel.content.truncated", "string[]", "when a captured copy is shortened",
    "attributes that contain only the beginning")
ERROR_TYPE = _attribute("error.type", "string", "on failure",
    "the exception's qualified name, or `tool_error` if there is only a flag")
TOOL_NAME = _attribute("tool.name", "string", "always", "the tool's name")
ARGS_HASH = _attribute("tool.args_hash", "string", "always",
    "12 hex digits of a blake2b over the canonical JSON, keyed by `AGENT_OTEL_HASH_KEY`, else by the claim check's "
    "key, else by a random key of the process")
ARGS_BYTES = _attribute("tool.args.bytes", "int", "always", "UTF-8 bytes of the arguments as compact JSON")
RESULT_BYTES = _attribute("tool.result.bytes", "int", "on success",
    "UTF-8 bytes of the handler's text; a structured result counts as compact JSON")
RESULT_STRUCTURED_BYTES = _attribute("tool.result.structured_bytes", "int",
    "when a structured copy or artifact travels beside the text",
    "its compact JSON, which the state carries and the model does not see")
RESULT_SEEN_AT = _attribute("tool.result.seen_at", "string", "when no adapter saw the call",
    "`model_request`: only the request showed the call, with the delivered bytes and no duration; `model_response`: "
    "the provider ran the tool; `step`: a durable step ran it")
FAILURE_BYTES = _attribute("tool.failure.bytes", "int", "when the handler raised",
    "size of the framework's text about the exception, else of the exception's own text")
RESULT_TRUNCATED = _attribute("tool.result.truncated", "bool", "on success",
    "whether the result is known to be incomplete")
TRUNCATION_REASON = _attribute("tool.result.truncation.reason", "string", "when cut",
    "`marker`, `cut_json`, `shrunk`, `offloaded`, `cleared`, `ceiling`, `claim_check`; `suspected` (a length equal to "
    "a known cap) leaves `truncated` false")
TRUNCATION_LAYER = _attribute("tool.result.truncation.layer", "string", "when cut",
    "`tool`, `framework`, `model_request`, `remedy`, or `before_request` if only the request shows the call")
TRUNCATION_CUTS = _attribute("tool.result.truncation.cuts", "string[]", "when two layers cut",
    "layer and reason of each cut, in order")
RESULT_HANDED_BACK_BYTES = _attribute("tool.result.handed_back_bytes", "int", "when it differs",
    "bytes that the framework kept")
RESULT_ESTIMATED = _attribute("tool.result.estimated", "bool", "only when true",
    "`tool.result.bytes` is a lower bound")
RESULT_BUDGET_BYTES = _attribute("tool.result.budget_bytes", "int", "always",
    "the largest result that every layer accepts")
RESULT_BUDGET_LAYER = _attribute("tool.result.budget_layer", "string", "always",
    "the layer with that limit: `ceiling`, `framework`, `host` (of MCP), `payload`, `transport`, `context`, or "
    "`default`: AGENT_OTEL_LARGE_RESULT_BYTES")
RESULT_REF = _attribute("tool.result.ref", "string", "when it is stored",
    "the claim check's reference")
RESULT_STORED_EARLY = _attribute("tool.result.stored_early", "bool", "only when true",
    "stored because the durable run had less than two turns left")

RESULT_DELIVERED_BYTES = _attribute("tool.result.delivered_bytes", "int", "on `tool_result_truncated`",
    "bytes of the result in the model request")
HISTORY_IS_LOST = _attribute("agent_otel.history.lost", "bool",
    "only when true, on the request's span",
    "neither the request nor one before it has a passage of the latest results")
HISTORY_UNDELIVERED_CALLS = _attribute("agent_otel.history.undelivered_calls", "string[]",
    "when the history is lost",
    "ids (or tools) of the calls without a delivered result; at most 16")
RESULT_USUAL_BYTES = _attribute("tool.result.usual_bytes", "int", "on the event `tool_result_grown`",
    "the largest of the tool's first 20 results")
_CHANGE = "on the event `tool_schema_changed`"
PROPERTIES_ADDED = _attribute("agent_otel.tool.properties_added", "string[]", _CHANGE, "new properties")
PROPERTIES_REMOVED = _attribute("agent_otel.tool.properties_removed", "string[]", _CHANGE, "removed properties")
PROPERTIES_CHANGED = _attribute("agent_otel.tool.properties_changed", "string[]", _CHANGE,
    "changed type or need")
HISTORY_DROPPED_BYTES = _attribute("agent_otel.history.dropped_bytes", "int", "on the event `history_dropped`",
    "bytes of earlier messages that the request left out")
HISTORY_DROPPED_TURNS = _attribute("agent_otel.history.dropped_turns", "int", "on the event `history_dropped`",
    "messages of the model among them")
TASK_IS_DROPPED = _attribute("agent_otel.history.task_dropped", "bool",
    "only when true, on the request's span and the event",
    "the task, the first message of the user, is among them")
HISTORY_IS_SUMMARIZED = _attribute("agent_otel.history.summarized", "bool",
    "only when true, on the request's span",
    "a new summary replaces earlier messages")
TOOL_FOLLOWUP = _attribute("tool.followup", "string", "on the call after a fragment of its tool",
    "`paginated`, `narrowed` or `repeated`; on the event `answer_incomplete`, `ignored`")
RESULT_ESTIMATED_TOKENS = _attribute("tool.result.estimated_tokens", "int", "on success",
    "characters ÷ 4, rounded up")

_SENT = "on the request's span"
REQUEST_MODEL = _attribute("gen_ai.request.model", "string",
    "on `chat {model}` and metrics of model requests", "the model, as the request names it")
_CHAT = "on the span `chat {model}`"
PROVIDER_NAME = _attribute("gen_ai.provider.name", "string", _CHAT,
    "`openai`, `anthropic`, `aws.bedrock`, `gcp.gemini` and others, by the SDK")
RESPONSE_MODEL = _attribute("gen_ai.response.model", "string", "on the span `chat {model}`",
    "the model that answered")
FINISH_REASONS = _attribute("gen_ai.response.finish_reasons", "string[]", "on the span `chat {model}`",
    "why the model stopped")
INPUT_TOKENS = _attribute("gen_ai.usage.input_tokens", "int", "on the span `chat {model}`",
    "tokens of the request")
OUTPUT_TOKENS = _attribute("gen_ai.usage.output_tokens", "int", "on the span `chat {model}`",
    "tokens of the response")
CONTEXT_TOKENS = _attribute("agent_otel.context.tokens", "int", _SENT, "tokens of the request")
CONTEXT_ESTIMATED = _attribute("agent_otel.context.estimated", "bool", "only when true",
    "the provider reports no tokens: estimated from bytes")
CONTEXT_WINDOW = _attribute("agent_otel.context.window", "int", "where it is known", "context window, in tokens")
CONTEXT_TURNS_TO_LIMIT = _attribute("agent_otel.context.turns_to_limit", "int", "from the third request on",
    "requests that still fit into the window at the recent growth")
CONTEXT_LARGEST_TOOL = _attribute("agent_otel.context.largest_tool", "string", "when the request holds results",
    "the tool with most bytes of results")
CONTEXT_LARGEST_TOOL_BYTES = _attribute("agent_otel.context.largest_tool_bytes", "int",
    "when the request holds results", "bytes of its results")
CONTEXT_LARGEST_PART = _attribute("agent_otel.context.largest_part", "string", _SENT,
    "the part with most bytes: `system`, `tools`, `user`, `assistant`, `tool_arguments` or `tool_results`")
_LOOPS = "on an execution and its calls, from the third equal one on"
LOOP_TOOL = _attribute("agent_otel.loop.tool", "string", _LOOPS, "the tool with most repeated calls")
LOOP_BY = _attribute("agent_otel.loop.by", "string", _LOOPS,
    "`arguments` or `result`, as in `agent_otel.tool.repeats`")
LOOP_CALLS = _attribute("agent_otel.loop.calls", "int", _LOOPS, "repeated calls so far")
LOOP_SINCE = _attribute("agent_otel.loop.since_turn", "int", _LOOPS,
    "the turn of the first one")
_REJECTED = "when the provider refused the request"
REJECTED_REASON = _attribute("agent_otel.rejected.reason", "string", _REJECTED,
    "`context`, `too_large`, `string_too_long`, `result_without_call`, `call_without_result` or `other`")
REJECTED_TOOL = _attribute("agent_otel.rejected.tool", "string", "when a call or its result is the reason",
    "the tool that the provider names, else the first with only a call or a result, or with the largest text")
REJECTED_CALL_ID = _attribute("agent_otel.rejected.call_id", "string",
    "when a call or its result is the reason", "its id")

CONTEXT_DUPLICATE_BYTES = _attribute("agent_otel.context.duplicate_bytes", "int", "when there are some",
    "bytes of texts of 1 KiB and more that the request contains twice")
_OFFERING = "when the request offers tools"
CONTEXT_TOOLS = _attribute("agent_otel.context.tools", "int", _OFFERING, "number of tools")
CONTEXT_TOOLS_BYTES = _attribute("agent_otel.context.tools_bytes", "int", _OFFERING,
    "bytes of their definitions")
CONTEXT_TOOLS_TOKENS = _attribute("agent_otel.context.tools_tokens", "int", "when the request offers tools",
    "tokens of their definitions")
CONTEXT_UNCALLED_TOOLS = _attribute("agent_otel.context.uncalled_tools", "int", _OFFERING,
    "tools that this process has never called")
CONTEXT_UNCALLED_BYTES = _attribute("agent_otel.context.uncalled_tools_bytes", "int", "when there are some",
    "bytes of their definitions")
CONTEXT_UNCALLED_TOKENS = _attribute("agent_otel.context.uncalled_tools_tokens", "int", "when there are some",
    "tokens of their definitions")
CONTEXT_LARGEST_DEFINITION = _attribute("agent_otel.context.largest_definition", "string", _OFFERING,
    "the tool whose definition has most bytes")
_CHANGED = "when the request begins differently than the one before"
CONTEXT_CHANGED_PART = _attribute("agent_otel.context.changed_part", "string", _CHANGED,
    "the first changed part; prompt caches end there")
CONTEXT_CHANGE = _attribute("agent_otel.context.change", "string", _CHANGED,
    "`order` (the same definitions of tools), `added`, `removed` or `content`")
CONTEXT_MISSED_TOKENS = _attribute("agent_otel.context.missed_tokens", "int", _CHANGED,
    "tokens that the cache would have had without the change")
CONTEXT_MISSED_COST = _attribute("agent_otel.context.missed_cost", "double", _CHANGED,
    "the additional price of these tokens in US dollars")
CONTEXT_CHANGED_MESSAGE = _attribute("agent_otel.context.changed_message", "int", "when a message changed",
    "its position in the request before, from 1")
CONTEXT_CHANGED_TOOL = _attribute("agent_otel.context.changed_tool", "string", "when a tool's part changed",
    "the tool")
CONTEXT_CHANGED_BYTES = _attribute("agent_otel.context.changed_bytes", "int", _CHANGED,
    "bytes of the request before from that part on")

_RUN = "on an execution, with the provider's tokens"
EXECUTION_REQUESTS = _attribute("agent_otel.execution.model_requests", "int", _RUN,
    "model requests with tokens in the response")
EXECUTION_INPUT_TOKENS = _attribute("agent_otel.execution.input_tokens", "int", _RUN, "tokens of the requests")
EXECUTION_CACHED_TOKENS = _attribute("agent_otel.execution.cached_tokens", "int", _RUN,
    "input tokens from the provider's cache")
EXECUTION_OUTPUT_TOKENS = _attribute("agent_otel.execution.output_tokens", "int", _RUN,
    "tokens of the responses")
EXECUTION_RETRIES = _attribute("agent_otel.execution.model_retries", "int", "when there are some",
    "model requests that repeat the one before")
EXECUTION_CALLS = _attribute("agent_otel.execution.tool_calls", "int", "on an execution",
    "tool calls")
EXECUTION_COST = _attribute("agent_otel.execution.cost", "double", "when a price is known",
    "US dollars of the model requests")

_STEP = "on a runtime's step"
_ANALYSED = "when analysed"
_READ = f"{_ANALYSED}, with model requests"
WORKFLOW_NAME = _attribute("gen_ai.workflow.name", "string",
    "on steps, and on runs and calls of a workflow", "the workflow's type or name")
RUNTIME = _attribute("workflow.runtime", "string", _STEP, "the durable runtime, as in `payload_caps()`")
ACTIVITY = _attribute("workflow.activity", "string", _STEP, "the activity, step, task or node")
ACTIVITY_ATTEMPT = _attribute("workflow.activity.attempt", "int", "from the second on", "counted from 1")
EXECUTION_ID = _attribute("workflow.execution.id", "string", "on a step and on a run", "the id of this run")
PAYLOAD_BYTES = _attribute("workflow.payload.bytes", "int", _STEP,
    "size of the serialised payload that is nearer to its cap")
PAYLOAD_DIRECTION = _attribute("workflow.payload.direction", "string", _STEP,
    "`input`, `output`, `state`, `history` or `message`")
PAYLOAD_CAP_BYTES = _attribute("workflow.payload.cap_bytes", "int", "where there is a cap", "its cap")
PAYLOAD_UTILIZATION = _attribute("workflow.payload.utilization", "double", "where there is a cap",
    "payload bytes ÷ cap bytes")
PAYLOAD_CAP_SOURCE = _attribute("workflow.payload.cap_source", "string", "where there is a cap",
    "`configured`, `discovered`, `table` or `inferred`")
PAYLOAD_TURNS_TO_CAP = _attribute("workflow.payload.turns_to_cap", "int", "from the third turn on",
    "turns that still fit at the recent growth")
PAYLOAD_REJECTED = _attribute("workflow.payload.rejected", "bool", "only when true", "the runtime refused it")
PAYLOAD_LARGEST_PATH = _attribute("workflow.payload.largest_path", "string", _ANALYSED,
    "JSON path with most bytes; `[]` for indexes, `*` for keys that may be data")
PAYLOAD_LARGEST_PATH_BYTES = _attribute("workflow.payload.largest_path_bytes", "int", _ANALYSED, "its bytes")
PAYLOAD_LARGEST_TOOL = _attribute("workflow.payload.largest_tool", "string", _ANALYSED,
    "the tool with most bytes of results")
PAYLOAD_LARGEST_TOOL_BYTES = _attribute("workflow.payload.largest_tool_bytes", "int", _ANALYSED, "its bytes")
PAYLOAD_DUPLICATE_BYTES = _attribute("workflow.payload.duplicate_bytes", "int", _ANALYSED,
    "bytes that are there a second time")
PAYLOAD_DUPLICATE_PATHS = _attribute("workflow.payload.duplicate_paths", "string[]", _ANALYSED,
    "the two paths with most bytes in common")
PAYLOAD_UNREAD_BYTES = _attribute("workflow.payload.unread_bytes", "int", _READ,
    "bytes that no model request contained")
PAYLOAD_UNREAD_PATH = _attribute("workflow.payload.unread_path", "string", _READ,
    "the path with most of them")
PAYLOAD_TURNS_WITHOUT_UNREAD = _attribute("workflow.payload.turns_to_cap_without_unread", "int", _READ,
    "turns to the cap without these bytes")
_STORED = "in stores that keep every payload"
_LARGE_STORE = "where a thread passes `AGENT_OTEL_STORE_WARN_BYTES`"
STORE_BYTES = _attribute("workflow.store.bytes", "int", _STORED,
    "bytes that the thread has written so far")
STORE_AMPLIFICATION = _attribute("workflow.store.amplification", "double", _STORED,
    "written bytes ÷ new bytes")
STORE_TURNS = _attribute("workflow.store.turns_to_1gb", "int", "from the second state on",
    "states until the thread has written 1 GB; runs, where each appends")
STORE_EQUAL_PATH = _attribute("workflow.store.equal_path", "string", _LARGE_STORE,
    "path of most bytes of the last state that the state before it had, too")
STORE_EQUAL_BYTES = _attribute("workflow.store.equal_bytes", "int", _LARGE_STORE,
    "these bytes")
PAYLOAD_AMPLIFICATION = _attribute("workflow.payload.amplification", "double", _ANALYSED,
    "payload bytes ÷ bytes of the results inside, each once")
# fmt: on

# --- metrics ---------------------------------------------------------------------------------------------------

METRICS = dict[str, Metric]()
_OF_RUN = (AGENT_NAME, WORKFLOW_NAME)


def _metric(  # noqa: PLR0913, PLR0917 - one row of the table
    kind: str,
    of_run: tuple[str, ...],
    name: str,
    unit: str,
    labels: tuple[str, ...],
    meaning: str,
    buckets: tuple[float, ...] = (),
) -> Metric:
    """Add a metric and return it; one of a run ends with the labels ``of_run``."""
    METRICS[name] = Metric(name, kind, unit, (*labels, *of_run), meaning, buckets, bool(of_run))
    return METRICS[name]


_histogram, _counter, _gauge = (partial(_metric, kind, _OF_RUN) for kind in (HISTOGRAM, COUNTER, GAUGE))
_process_histogram, _process_counter, _process_gauge = (
    partial(_metric, kind, ()) for kind in (HISTOGRAM, COUNTER, GAUGE)
)

# Labels that are not attributes.
LAYER, REASON, BY, CHANGE, THRESHOLD, PART, WHERE = "layer", "reason", "by", "change", "threshold", "part", "where"
INTEGRATION, VERSION, TARGET, PYTHON = "integration", "version", "target", "python"
SCALES_TO_ZERO, FINGERPRINT, DIRECTION, COMPONENT = "scales_to_zero", "fingerprint", "direction", "component"
OUTCOME, OPERATION, RESULT, STRATEGY = "outcome", "operation", "result", "strategy"
LIMIT, RULE, MODE = "limit", "rule", "mode"

_TOOL = (GEN_AI_TOOL_NAME,)

# fmt: off
TOOL_DURATION = _histogram("gen_ai.execute_tool.duration", "s", (GEN_AI_TOOL_NAME, ERROR_TYPE),
    "Duration of a tool call, if no other instrumentation emits it.", DURATION_BUCKETS)
RESULT_SIZE = _histogram("agent_otel.tool.result.size", "By", (GEN_AI_TOOL_NAME, ERROR_TYPE),
    "Size of a tool's result, or of the text of its exception for the model.", SIZE_BUCKETS)
ARGS_SIZE = _histogram("agent_otel.tool.args.size", "By", _TOOL, "Size of the arguments of a tool call.",
    SIZE_BUCKETS)
RESULTS_LARGE = _counter("agent_otel.tool.results.large", "{result}", (GEN_AI_TOOL_NAME, THRESHOLD),
    "Results above a threshold: `warn` is AGENT_OTEL_LARGE_RESULT_BYTES.")
RESULTS_OVER_BUDGET = _counter("agent_otel.tool.results.over_budget", "{result}", (GEN_AI_TOOL_NAME, LAYER),
    "Results above the limit of a layer between the tool and the model, after remedies.")
RESULTS_TRUNCATED = _counter("agent_otel.tool.results.truncated", "{result}", (GEN_AI_TOOL_NAME, LAYER, REASON),
    "Truncated results, by the layer that cut them.")
RESULTS_GROWN = _counter("agent_otel.tool.results.grown", "{result}", _TOOL,
    "Results over 5 times the largest of the tool's first 20 in this process, or in the one before (status file).")
RESULT_LARGEST = _gauge("agent_otel.tool.result.largest", "By", _TOOL,
    "The largest result of the last 5 minutes.")
RESULTS_SUSPECTED = _counter("agent_otel.tool.results.suspected", "{result}", _TOOL,
    "Results whose length equals a known limit. They are not in `.truncated`.")
RESULTS_CLEARED = _counter("agent_otel.tool.results.cleared", "{result}", _TOOL,
    "Results that a later request shortened. They are not in `.truncated`.")
RESULT_DELIVERED = _counter("agent_otel.tool.result.delivered", "By", _TOOL,
    "Bytes of results that models got, each result once.")
RESULT_RESENT = _counter("agent_otel.tool.result.resent", "By", _TOOL,
    "Bytes of results that models got again.")
RESULTS_UNMATCHED = _counter("agent_otel.tool.results.unmatched", "{result}", (),
    "Results in model requests without a recorded call.")
TOOL_FOLLOWUPS = _counter("agent_otel.tool.followups", "{call}", (GEN_AI_TOOL_NAME, OUTCOME),
    "Reactions to a cut result or a page: `paginated`, `narrowed`, `repeated` or `ignored`.")
ANSWERS_INCOMPLETE = _counter("agent_otel.answers.incomplete", "{answer}", (GEN_AI_TOOL_NAME, REASON),
    "Final answers to a request with a fragment without a follow-up. `page`: a page that names the next; "
    "`undelivered`: no request contained the result; else a truncation reason.")
SHAPE_CHANGES = _counter("agent_otel.tool.result.shape_changes", "{change}", _TOOL,
    "Results with new keys, or without keys that all results had.")
SCHEMA_CHANGES = _counter("agent_otel.tool.schema_changes", "{change}", _TOOL,
    "Definitions of tools that differ from the agent's earlier requests.")
DEFINITION_INFO = _gauge("agent_otel.tool.definition_info", "", (GEN_AI_TOOL_NAME, FINGERPRINT),
    "1 for each definition of a tool; the fingerprint is the same in all processes.")
INVALID_ARGUMENTS = _counter("agent_otel.tool.invalid_arguments", "{call}", _TOOL,
    "Calls with arguments that the framework or the server refused before the handler.")
TOOL_REPEATS = _counter("agent_otel.tool.repeats", "{call}", (GEN_AI_TOOL_NAME, BY),
    "Repeated calls of one execution. `arguments`: an earlier call had the same. `result`: the third equal result in "
    "a row, or two results alternate.")
REQUEST_SIZE = _histogram("agent_otel.model.request.size", "By", (PART,),
    "Text bytes of a model request by part: `system`, `tools`, `user`, `assistant`, `tool_arguments`, `tool_results`.",
    SIZE_BUCKETS)
REQUEST_STABLE = _histogram("agent_otel.model.request.stable_prefix", "1", (),
    "Share of a request that begins as the one before it did.", SHARE_BUCKETS)
CACHED_TOKENS = _counter("agent_otel.model.cached_tokens", "{token}", (),
    "Input tokens that providers had cached.")
MODEL_DURATION = _histogram("gen_ai.client.operation.duration", "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, ERROR_TYPE),
    "Duration of a model request, to the end of its stream, if no other instrumentation emits it.", DURATION_BUCKETS)
_MODEL = (REQUEST_MODEL,)
CONTEXT_UTILIZATION = _histogram("agent_otel.model.context.utilization", "1", _MODEL,
    "Tokens of a request ÷ the model's context window, if it is known.", UTILIZATION_BUCKETS)
CONTEXT_NEAR = _counter("agent_otel.model.context.near", "{request}", _MODEL,
    "Requests from AGENT_OTEL_PAYLOAD_NEAR_RATIO of the context window up.")
REQUESTS_REJECTED = _counter("agent_otel.model.requests.rejected", "{request}", (REQUEST_MODEL, REASON),
    "Requests that the provider refused: `context` (longer than the window), `too_large`, `string_too_long`, "
    "`result_without_call`, `call_without_result`, `other` (400 and 422).")
_CARRIED = (GEN_AI_TOOL_NAME, REQUEST_MODEL, PART)
CONTEXT_TOKENS_OF = _counter("agent_otel.tool.context.tokens", "{token}", _CARRIED,
    "Input tokens by tool and part, divided by bytes. `media`: images and audio; `_other`: in no part.")
CONTEXT_COST = _counter("agent_otel.tool.context.cost", "{USD}", _CARRIED,
    "US dollars of input tokens by tool and part, if the model has a price.")
EXECUTION_TOKENS = _histogram("agent_otel.execution.tokens", "{token}", (),
    "Input and output tokens of an execution.", TOKEN_BUCKETS)
EXECUTION_PRICE = _histogram("agent_otel.execution.cost", "{USD}", (),
    "US dollars of an execution's model requests.", MONEY_BUCKETS)
EXECUTION_CACHED = _histogram("agent_otel.execution.cached_tokens", "{token}", (),
    "Input tokens of an execution from a provider's cache.", TOKEN_BUCKETS)
EXECUTION_MODEL_REQUESTS = _histogram("agent_otel.execution.model_requests", "{request}", (),
    "Model requests of an execution with tokens in the response.", COUNT_BUCKETS)
EXECUTION_MODEL_RETRIES = _histogram("agent_otel.execution.model_retries", "{request}", (),
    "Model requests of an execution that repeat the one before.", COUNT_BUCKETS)
TOOL_OFFERED = _counter("agent_otel.tool.offered", "{request}", _TOOL,
    "Model requests that offer a tool.")
DEFINITION_SENT = _counter("agent_otel.tool.definition.sent", "By", _TOOL,
    "Bytes of the definitions of tools in model requests.")
DEFINITION_TOKENS = _counter("agent_otel.tool.definition.tokens", "{token}", _TOOL,
    "Tokens of the definitions of tools in model requests.")
_PREFIX = (PART, CHANGE)
PREFIX_CHANGES = _counter("agent_otel.model.prefix.changes", "{request}", _PREFIX,
    "Requests that continue the one before but begin differently, by the first changed part. Prompt caches end there.")
MISSED_TOKENS = _counter("agent_otel.model.cache.missed.tokens", "{token}", (REQUEST_MODEL, *_PREFIX),
    "Input tokens that the provider's cache would have had without changes of the prefix.")
MISSED_COST = _counter("agent_otel.model.cache.missed.cost", "{USD}", (REQUEST_MODEL, *_PREFIX),
    "US dollars that changes of the prefix cost.")
HISTORY_LOST = _counter("agent_otel.model.history.lost", "{request}", (),
    "Requests without the latest tool results, which no earlier request had either.")
HISTORY_DOUBLED = _counter("agent_otel.model.history.doubled", "{request}", (),
    "Requests that contain the same message or tool result twice.")
HISTORY_DROPPED = _counter("agent_otel.model.history.dropped", "By", (),
    "Bytes of earlier messages that a window left out of a request.")
TURNS_DROPPED = _counter("agent_otel.model.history.dropped_turns", "{turn}", (),
    "Messages of the model, with their results, that a window left out.")
TASKS_DROPPED = _counter("agent_otel.model.history.dropped_tasks", "{task}", (),
    "Conversations that lost their task, the first message of the user, to a window.")
EXECUTION_TOOL_CALLS = _histogram("agent_otel.execution.tool_calls", "{call}", (),
    "Tool calls of an execution.", COUNT_BUCKETS)
EXECUTION_RESULT_SIZE = _histogram("agent_otel.execution.result.size", "By", (),
    "Bytes of an execution's tool results.", SIZE_BUCKETS)
EXECUTION_PAYLOAD_SIZE = _histogram("agent_otel.execution.payload.size", "By", (),
    "Largest payload of an execution.", SIZE_BUCKETS)
_WORKFLOW = (RUNTIME,)
_BOUNDARY = (RUNTIME, ACTIVITY, DIRECTION)
PAYLOAD_SIZE = _histogram("agent_otel.workflow.payload.size", "By", _BOUNDARY, "Size of serialised payloads.",
    SIZE_BUCKETS)
UTILIZATION = _histogram("agent_otel.workflow.payload.utilization", "1", (RUNTIME, DIRECTION),
    "Payload bytes ÷ cap bytes, where there is a cap.", UTILIZATION_BUCKETS)
PAYLOAD_LARGEST = _gauge("agent_otel.workflow.payload.largest", "By", _BOUNDARY,
    "The largest payload of the last 5 minutes.")
TURNS_LEFT = _gauge("agent_otel.workflow.payload.turns_left", "{turn}", _BOUNDARY,
    "Turns that still fit at the recent growth; the fewest of the last 5 minutes.")
STUCK = _gauge("agent_otel.workflow.payload.stuck", "{execution}", _BOUNDARY,
    "Executions whose payload the runtime refused again in the last 5 minutes.")
PAYLOAD_CAP = _process_gauge("agent_otel.workflow.payload.cap", "By", (RUNTIME, DIRECTION),
    "The smallest cap.")
PAYLOAD_NEAR_CAP = _counter("agent_otel.workflow.payload.near_cap", "{payload}", _BOUNDARY,
    "Payloads from AGENT_OTEL_PAYLOAD_NEAR_RATIO of their cap up to the cap.")
PAYLOAD_OVER_CAP = _counter("agent_otel.workflow.payload.over_cap", "{payload}", _BOUNDARY,
    "Payloads above their cap.")
PAYLOADS_REJECTED = _counter("agent_otel.workflow.payload.rejected", "{payload}", _BOUNDARY,
    "Payloads that the runtime refused.")
STUCK_RETRIES = _counter("agent_otel.workflow.payload.stuck_retries", "{payload}", _BOUNDARY,
    "Payloads of an execution that the runtime refused again.")
PAYLOAD_GROWTH = _histogram("agent_otel.workflow.payload.growth", "By", _WORKFLOW,
    "Growth from turn to turn of the payload nearest to its cap.",
    SIZE_BUCKETS)
FEW_TURNS_LEFT = _counter("agent_otel.workflow.payload.few_turns_left", "{execution}", _WORKFLOW,
    "Executions with fewer than 3 turns left at the recent growth.")
PAYLOAD_COMPONENT = _counter("agent_otel.workflow.payload.component", "By", (COMPONENT,),
    "Bytes of analysed payloads by JSON path.")
PAYLOAD_UNREAD = _counter("agent_otel.workflow.payload.unread", "By", (COMPONENT,),
    "Bytes that no model request of the execution contained, by JSON path.")
STORE_WRITTEN = _counter("agent_otel.workflow.store.written", "By", _WORKFLOW,
    "Bytes that threads write into stores that keep every payload.")
STORE_NEW = _counter("agent_otel.workflow.store.new", "By", _WORKFLOW,
    "New bytes among the written ones; written ÷ new is the write amplification.")
STORES_LARGE = _counter("agent_otel.workflow.store.large", "{thread}", _WORKFLOW,
    "Threads that have written more than AGENT_OTEL_STORE_WARN_BYTES.")
PAYLOAD_DUPLICATE = _counter("agent_otel.workflow.payload.duplicate", "By", (),
    "Bytes that analysed payloads contain twice.")
PAYLOAD_BY_TOOL = _counter("agent_otel.workflow.payload.by_tool", "By", _TOOL,
    "Bytes of analysed payloads by tool; `_other` is the rest.")
HISTORY_SIZE = _histogram("agent_otel.workflow.history.size", "By", _WORKFLOW,
    "Cumulative history or journal, if the runtime has a cap on it.", SIZE_BUCKETS)
CLAIM_CHECK_OPERATIONS = _process_counter("agent_otel.claim_check.operations", "{operation}",
    (OPERATION, RESULT), "Operations on the claim store.")
CLAIM_CHECK_IO = _process_counter("agent_otel.claim_check.io", "By", (OPERATION,),
    "Bytes written to and read from the claim store.")
CLAIM_CHECK_DURATION = _process_histogram("agent_otel.claim_check.duration", "s", (OPERATION, RESULT),
    "Duration of operations on the claim store.", DURATION_BUCKETS)
CONTEXT_REMOVED = _counter("agent_otel.context.removed", "By", (STRATEGY,),
    "Bytes that a remedy kept from the model.")
CONTEXT_SAVED_TOKENS = _counter("agent_otel.context.saved.tokens", "{token}", (STRATEGY,),
    "Input tokens that a remedy saved, in each request.")
CONTEXT_SAVED_COST = _counter("agent_otel.context.saved.cost", "{USD}", (STRATEGY,),
    "US dollars that a remedy saved, in each request.")
CONTEXT_SAVABLE_TOKENS = _counter("agent_otel.context.savable.tokens", "{token}", (STRATEGY,),
    "Input tokens that a remedy would save if it were on; an estimate.")
CONTEXT_SAVABLE_COST = _counter("agent_otel.context.savable.cost", "{USD}", (STRATEGY,),
    "US dollars that a remedy would save if it were on; an estimate.")
CONTEXT_SUMMARIES = _counter("agent_otel.context.summaries", "{summary}", (RESULT,),
    "Summaries of long model requests: `made` or `failed`.")
LIMITS_HIT = _counter("agent_otel.limits.hit", "{call}", (LIMIT,),
    "Calls that a limit skipped.")
POLICY_DENIED = _counter("agent_otel.policy.denied", "{call}", (GEN_AI_TOOL_NAME, RULE, MODE),
    "Calls that the dispatch policy denied; with `monitor` they ran.")
BACKPRESSURE_WAIT = _histogram("agent_otel.backpressure.wait", "s", (REASON,),
    "Time that a tool call or a model request waited before it began.", DURATION_BUCKETS)
INTERNAL_ERRORS = _process_counter("agent_otel.internal.errors", "{error}", (WHERE,),
    "Failures of this package. None reached your code.")
INSTRUMENTATION_INFO = _process_gauge("agent_otel.instrumentation_info", "", (INTEGRATION, VERSION, TARGET),
    "1 for each wrapped function of an integration; target `unmatched` if it was not found.")
PROCESS_START = _process_gauge("agent_otel.process.start_time", "s", (),
    "When this process began to count, in seconds since the epoch.")
BUILD_INFO = _process_gauge("agent_otel.build_info", "", (VERSION, PYTHON, SCALES_TO_ZERO),
    "1; versions, and `true` with AGENT_OTEL_SCALES_TO_ZERO.")

# fmt: on
# Values of attributes and labels, and the names of spans and events, by subject.

# Spans.
EXECUTE_TOOL, CHAT, INVOKE_AGENT, INVOKE_WORKFLOW = "execute_tool", "chat", "invoke_agent", "invoke_workflow"
EXECUTE_ACTIVITY, PAYLOAD_CHILD, CUT_CHILD = "execute_activity", "workflow_payload", "tool_result_truncated"
# Events, and attributes of theirs; the log record of a large result has the names after it.
TOOL_CALL_EVENT, POLICY_DENIED_EVENT, WAIT_EVENT = "tool_call", "policy_denied", "backpressure"
ANSWER_INCOMPLETE, HISTORY_DROPPED_EVENT = "answer_incomplete", "history_dropped"
RESULT_GROWN, SHAPE_CHANGED = "tool_result_grown", "tool_result_shape_changed"
TOOL_SCHEMA_CHANGED = "tool_schema_changed"
PHASE, SKIPPED, ANSWERED = "phase", "skipped", "answered"  # with the result of an earlier attempt
WAIT_SECONDS, KEYS_ADDED, KEYS_REMOVED = "wait.seconds", "keys.added", "keys.removed"
REMOVED_BYTES, REMOVED_MESSAGES = "removed.bytes", "removed.messages"
TOKENS_BEFORE, TOKENS_AFTER = "tokens.before", "tokens.after"
LARGE_RESULT, TRACE_ID, EVENT_NAME = "tool.large_result", "trace_id", "event.name"
# Errors in the answers of remedies, and of tools.
TOOL_ERROR, RESULT_TOO_LARGE, LIMIT_REACHED = "tool_error", "result_too_large", "limit_reached"
REPEATED_CALL, TOOL_DENIED = "repeated_call", "tool_denied"
# Labels of values that are unknown or have no name.
OTHER, UNMATCHED, OTHER_REASON, DEFAULT = "_other", "unmatched", "other", "default"
# Parts of a request, in the order of their bytes on the wire; of its tokens; a provider's own summary in it.
SYSTEM, TOOLS, USER, ASSISTANT = "system", "tools", "user", "assistant"
TOOL_CALL_ARGUMENTS, TOOL_RESULTS = "tool_arguments", "tool_results"
REQUEST_PARTS = (SYSTEM, TOOLS, USER, ASSISTANT, TOOL_CALL_ARGUMENTS, TOOL_RESULTS)
MEDIA, COMPACTION = "media", "compaction"
# Layers that cut a result or have the limit that it reaches, and where it was seen.
LAYER_TOOL, LAYER_FRAMEWORK, LAYER_REMEDY = "tool", "framework", "remedy"
LAYER_MODEL_REQUEST, LAYER_BEFORE_REQUEST = "model_request", "before_request"
SEEN_AT_MODEL_RESPONSE, SEEN_AT_STEP = "model_response", "step"
HOST, PAYLOAD, TRANSPORT, CONTEXT, WARN = "host", "payload", "transport", "context", "warn"
# Remedies.
CEILING, CLAIM_CHECK, TRIM, COMPACT, SUMMARIZE = "ceiling", "claim_check", "trim", "compact", "summarize"
BUDGET_LAYERS = (CEILING, LAYER_FRAMEWORK, HOST, PAYLOAD, TRANSPORT, CONTEXT, DEFAULT)
# Reasons of truncation.
CLEARED, SUSPECTED, SHRUNK, CUT_JSON, OFFLOADED = "cleared", "suspected", "shrunk", "cut_json", "offloaded"
# Reactions of the model to a cut or a page, and the basis of an answer.
PAGINATED, NARROWED, REPEATED, IGNORED = "paginated", "narrowed", "repeated", "ignored"
PAGE, UNDELIVERED = "page", "undelivered"
# Reasons of a refused request, beside the context's length; and how the beginning of a request changed.
REQUEST_TOO_LARGE, STRING_TOO_LONG = "too_large", "string_too_long"
RESULT_WITHOUT_CALL, CALL_WITHOUT_RESULT = "result_without_call", "call_without_result"
ORDER, ADDED, REMOVED, CONTENT = "order", "added", "removed", "content"
# Limits of calls, and reasons to wait.
LIMIT_TOOL_CALLS, LIMIT_CONVERSATION, LIMIT_REPEATS = "tool_calls", "conversation_tool_calls", "repeats"
LIMIT_BYTES, LIMIT_TOKENS, LIMIT_EXECUTION = "result_bytes", "result_tokens", "execution_tokens"
PARALLEL, WAIT_TOKENS, WAIT_RATE_LIMIT = "parallel", "tokens", "rate_limit"
# Modes and rules of the dispatch policy, and how calls repeat.
ENFORCE, MONITOR, ARGUMENT, ARGUMENTS = "enforce", "monitor", "argument", "arguments"
RULE_TOOLS, RULE_REQUIRE, RULE_FORBID, RULE_ARGUMENTS = "tools", "require", "forbid", ARGUMENTS
RULE_APPROVE, RULE_INJECT, RULE_UNREADABLE = "approve", "inject", "unreadable"
# Results of operations, and calls over the Model Context Protocol.
MADE, FAILED = "made", "failed"
MCP_METHOD, PIPE, TCP = "tools/call", "pipe", "tcp"
# Directions of payloads.
INPUT, OUTPUT, STATE, HISTORY, MESSAGE = "input", "output", "state", "history", "message"
# The beginnings of the line that replaces a trimmed result, and of the mark that replaces a summarised one.
TRIMMED, SUMMARIZED = "[trimmed ", "SUMMARIZED executionId:'"
REPLACED = (TRIMMED, SUMMARIZED)
# Tools that remedies add to requests, and that are none of the program: one that reads on in stored results, and one
# that returns a summary.
GET_TOOL_RESULT, CONTEXT_SUMMARIZE = "get_tool_result", "context_summarize"
OWN_TOOLS = (GET_TOOL_RESULT, CONTEXT_SUMMARIZE)

# Reasons with separate counters, so that a sum over `agent_otel.tool.results.truncated` counts truncations only.
REASON_COUNTERS = {SUSPECTED: RESULTS_SUSPECTED, CLEARED: RESULTS_CLEARED}
# Limits of distinct label values; further names become `_other`.
NAME_LIMITS = {
    GEN_AI_TOOL_NAME: 100, AGENT_NAME: 50, WORKFLOW_NAME: 100, ACTIVITY: 200, ERROR_TYPE: 100, COMPONENT: 100,
    RUNTIME: 30, REQUEST_MODEL: 50}  # fmt: skip

#: The provider of a model, as the conventions name it, by the package of the SDK or the module of its adapter.
PROVIDERS = {
    "anthropic": "anthropic", "azure": "azure.ai.inference", "aiobotocore": "aws.bedrock", "botocore": "aws.bedrock",
    "cohere": "cohere", "fireworks": "fireworks_ai", "google": "gcp.gemini", "groq": "groq",
    "huggingface_hub": "huggingface", "mistralai": "mistral_ai", "ollama": "ollama", "openai": "openai",
    "together": "together_ai", "xai": "x_ai",
}  # fmt: skip
# With the claim check on, counters of these operations and results exist at 0, so that alerts see the first increase.
CLAIM_CHECK_CASES = (
    *(("put", result) for result in ("ok", "error", "timeout", "open")),
    *(("get", result) for result in ("ok", "error", "not_found", "expired", "corrupt", "denied")),
)
# Counters of these layers and reasons exist at 0 from a tool's first call, so that the first truncation increases them.
TRUNCATION_CASES = (
    *((LAYER_TOOL, reason) for reason in ("marker", CUT_JSON, "offloaded")),
    *((LAYER_FRAMEWORK, reason) for reason in (SHRUNK, "marker", "offloaded")),
    *((LAYER_MODEL_REQUEST, reason) for reason in (SHRUNK, "marker", "offloaded")),
    *((LAYER_BEFORE_REQUEST, reason) for reason in ("marker", CUT_JSON)),
)
