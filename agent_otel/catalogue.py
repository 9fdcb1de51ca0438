"""Every attribute, metric, unit, label and bucket of this package: the only place where a name is written.

Names under ``gen_ai.`` are OpenTelemetry's GenAI conventions (github.com/open-telemetry/semantic-conventions-genai,
development status, state of November 2026); the names are held here because the constants of the
``opentelemetry-semantic-conventions`` package are marked deprecated. Sizes are UTF-8 bytes, durations are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SCOPE: Final = "agent_otel"

# --- attributes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute:
    """One span attribute: its type, when it is set and what it means."""

    name: str
    type: str
    when: str
    meaning: str


ATTRIBUTES: dict[str, Attribute] = {}


def _attribute(name: str, type_: str, when: str, meaning: str) -> str:
    ATTRIBUTES[name] = Attribute(name, type_, when, meaning)
    return name


_GENAI = "as the GenAI conventions say"
OPERATION_NAME: Final = _attribute("gen_ai.operation.name", "string", "always", "`execute_tool`")
GEN_AI_TOOL_NAME: Final = _attribute("gen_ai.tool.name", "string", "always", "the tool's name")
TOOL_CALL_ID: Final = _attribute("gen_ai.tool.call.id", "string", _GENAI, "the id the model gave this call")
TOOL_TYPE: Final = _attribute("gen_ai.tool.type", "string", _GENAI, "`function`, `extension` or `datastore`")
AGENT_NAME: Final = _attribute("gen_ai.agent.name", "string", _GENAI, "the agent on whose behalf the tool ran")
CONVERSATION_ID: Final = _attribute(
    "gen_ai.conversation.id", "string", _GENAI, "the framework's thread or session, or the explicit execution"
)
TOOL_ARGUMENTS: Final = _attribute(
    "gen_ai.tool.call.arguments", "string", "only with content capture", "canonical JSON, the first 8 KiB"
)
TOOL_RESULT: Final = _attribute(
    "gen_ai.tool.call.result", "string", "only with content capture", "text of the result, the first 8 KiB"
)
ERROR_TYPE: Final = _attribute(
    "error.type", "string", "on failure", "the exception's qualified name, or `tool_error` where a flag is all there is"
)
TOOL_NAME: Final = _attribute("tool.name", "string", "always", "the tool's name")
ARGS_HASH: Final = _attribute(
    "tool.args_hash", "string", "always", "12 hex digits of a keyed blake2b over the canonical JSON of the arguments"
)
ARGS_BYTES: Final = _attribute("tool.args.bytes", "int", "always", "UTF-8 bytes of the arguments as compact JSON")
RESULT_BYTES: Final = _attribute(
    "tool.result.bytes",
    "int",
    "always on success; absent when the call raised",
    "UTF-8 bytes of the text the handler produced; a structured result counts as compact JSON",
)
RESULT_STRUCTURED_BYTES: Final = _attribute(
    "tool.result.structured_bytes",
    "int",
    "when a structured copy or artifact travels beside the text",
    "compact-JSON bytes that the state carries and the model does not see",
)
RESULT_TRUNCATED: Final = _attribute(
    "tool.result.truncated", "bool", "always on success", "what was handed on is known to be less than what there was"
)
TRUNCATION_REASON: Final = _attribute(
    "tool.result.truncation.reason",
    "string",
    "when cut",
    "`marker`, `cut_json`, `shrunk`, `offloaded`, `cleared`, `ceiling`, `claim_check`; "
    "`suspected` (a length equal to a known cap) leaves `truncated` false",
)
TRUNCATION_LAYER: Final = _attribute(
    "tool.result.truncation.layer", "string", "when cut", "`tool`, `framework`, `model_request` or `remedy`"
)
RESULT_HANDED_BACK_BYTES: Final = _attribute(
    "tool.result.handed_back_bytes", "int", "when it differs", "UTF-8 bytes that the framework kept of the result"
)
RESULT_ESTIMATED: Final = _attribute(
    "tool.result.estimated", "bool", "only when true", "`tool.result.bytes` is a lower bound"
)

# --- metrics ---------------------------------------------------------------------------------------------------

_KIB = 1024.0
_MIB = 1024.0 * 1024.0
SIZE_BUCKETS: Final = (
    256.0, _KIB, 4 * _KIB, 16 * _KIB, 32 * _KIB, 64 * _KIB, 128 * _KIB, 256 * _KIB, 512 * _KIB,
    _MIB, 1.5 * _MIB, 2 * _MIB, 4 * _MIB, 16 * _MIB,
)  # fmt: skip
# The GenAI conventions' advice for gen_ai.execute_tool.duration: 0.01 doubled thirteen times.
DURATION_BUCKETS: Final = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
)  # fmt: skip
COUNT_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

HISTOGRAM: Final = "histogram"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"

_PROMETHEUS_UNITS = {"By": "_bytes", "s": "_seconds"}


@dataclass(frozen=True)
class Metric:
    """One metric; the same name, unit, labels and buckets on both ways out.

    ``unit`` is the UCUM unit (``By``, ``s``, ``1``) or an annotation such as ``{result}``, which has no suffix in
    Prometheus.
    """

    name: str
    kind: str
    unit: str
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()

    @property
    def prometheus_name(self) -> str:
        """The name in Prometheus, without ``_total``, which its client adds to counters itself."""
        return self.name.replace(".", "_") + _PROMETHEUS_UNITS.get(self.unit, "")

    @property
    def prometheus_labels(self) -> tuple[str, ...]:
        """The label names in Prometheus: dots become underscores."""
        return tuple(label.replace(".", "_") for label in self.labels)


METRICS: dict[str, Metric] = {}


def _metric(  # noqa: PLR0913, PLR0917 - one row of the table
    name: str, kind: str, unit: str, labels: tuple[str, ...], meaning: str, buckets: tuple[float, ...] = ()
) -> Metric:
    METRICS[name] = Metric(name, kind, unit, labels, meaning, buckets)
    return METRICS[name]


LAYER: Final = "layer"
REASON: Final = "reason"
THRESHOLD: Final = "threshold"
PART: Final = "part"
WHERE: Final = "where"
INTEGRATION: Final = "integration"
VERSION: Final = "version"
TARGET: Final = "target"
PYTHON: Final = "python"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"

_TOOL = (GEN_AI_TOOL_NAME,)

TOOL_DURATION: Final = _metric(
    "gen_ai.execute_tool.duration",
    HISTOGRAM,
    "s",
    (GEN_AI_TOOL_NAME, AGENT_NAME, ERROR_TYPE),
    "Duration of a tool call. Not emitted where another instrumentation in the process already does.",
    DURATION_BUCKETS,
)
RESULT_SIZE: Final = _metric(
    "agent_otel.tool.result.size", HISTOGRAM, "By", _TOOL, "Size of what a tool's handler produced.", SIZE_BUCKETS
)
ARGS_SIZE: Final = _metric(
    "agent_otel.tool.args.size", HISTOGRAM, "By", _TOOL, "Size of the arguments of a tool call.", SIZE_BUCKETS
)
RESULTS_LARGE: Final = _metric(
    "agent_otel.tool.results.large",
    COUNTER,
    "{result}",
    (GEN_AI_TOOL_NAME, THRESHOLD),
    "Results above a threshold: `warn` is AGENT_OTEL_LARGE_RESULT_BYTES.",
)
RESULTS_TRUNCATED: Final = _metric(
    "agent_otel.tool.results.truncated",
    COUNTER,
    "{result}",
    (GEN_AI_TOOL_NAME, LAYER, REASON),
    "Results found cut, by the layer that cut and how it is known.",
)
RESULT_PRODUCED: Final = _metric(
    "agent_otel.tool.result.produced", COUNTER, "By", _TOOL, "Bytes that tools' handlers produced."
)
TOOL_REPEATS: Final = _metric(
    "agent_otel.tool.repeats",
    COUNTER,
    "{call}",
    _TOOL,
    "Calls with the same arguments again in one execution.",
)
REQUEST_SIZE: Final = _metric(
    "agent_otel.model.request.size",
    HISTOGRAM,
    "By",
    (PART,),
    "Text bytes of a model request by part: `system`, `tools`, `user`, `assistant`, `tool_arguments`, `tool_results`.",
    SIZE_BUCKETS,
)
EXECUTION_TOOL_CALLS: Final = _metric(
    "agent_otel.execution.tool_calls",
    HISTOGRAM,
    "{call}",
    (WORKFLOW_NAME, AGENT_NAME),
    "Tool calls of a finished execution.",
    COUNT_BUCKETS,
)
EXECUTION_RESULT_SIZE: Final = _metric(
    "agent_otel.execution.result.size",
    HISTOGRAM,
    "By",
    (WORKFLOW_NAME, AGENT_NAME),
    "Bytes that the tools of a finished execution produced.",
    SIZE_BUCKETS,
)
INTERNAL_ERRORS: Final = _metric(
    "agent_otel.internal.errors", COUNTER, "{error}", (WHERE,), "Failures of this package, none of which reached you."
)
INSTRUMENTATION_INFO: Final = _metric(
    "agent_otel.instrumentation_info",
    GAUGE,
    "",
    (INTEGRATION, VERSION, TARGET),
    "1 for each integration: the version found and the function wrapped; target `unmatched` when none was found.",
)
BUILD_INFO: Final = _metric("agent_otel.build_info", GAUGE, "", (VERSION, PYTHON), "1; versions of this package.")

# --- values ----------------------------------------------------------------------------------------------------

EXECUTE_TOOL: Final = "execute_tool"
TOOL_ERROR: Final = "tool_error"
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

LAYER_TOOL: Final = "tool"
LAYER_FRAMEWORK: Final = "framework"
SHRUNK: Final = "shrunk"
SUSPECTED: Final = "suspected"
CUT_CHILD: Final = "tool_result_truncated"

# What can be found at the tool boundary: these counters exist at 0 from a tool's first call, so that the first cut
# is an increase and not a newborn series.
TRUNCATION_CASES: Final = (
    (LAYER_TOOL, "marker"),
    (LAYER_TOOL, "cut_json"),
    (LAYER_TOOL, "offloaded"),
    (LAYER_TOOL, "cleared"),
    (LAYER_TOOL, SUSPECTED),
    (LAYER_FRAMEWORK, SHRUNK),
    (LAYER_FRAMEWORK, "marker"),
    (LAYER_FRAMEWORK, "offloaded"),
)

# How many distinct names become label values; the rest share `_other`.
NAME_LIMITS: Final = {GEN_AI_TOOL_NAME: 100, AGENT_NAME: 50, WORKFLOW_NAME: 100, ERROR_TYPE: 100}

# Marks of a tool span that another instrumentation opened: attribute -> values. OpenInference and OpenLLMetry have
# kinds of their own beside (or instead of) the conventions' operation name; mcp and fastmcp name the method.
FOREIGN_TOOL_SPANS: Final = {
    OPERATION_NAME: (EXECUTE_TOOL,),
    "mcp.method.name": ("tools/call",),
    "openinference.span.kind": ("TOOL",),
    "traceloop.span.kind": ("tool",),
}
