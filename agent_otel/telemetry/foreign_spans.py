"""Attributes by which spans of other instrumentations are recognised; this package writes none of them there."""

from __future__ import annotations

from typing import Final

from agent_otel import semconv

# Attributes, with their values, that mark a tool span of another instrumentation.
TOOL_SPANS: Final = {
    semconv.OPERATION_NAME: (semconv.EXECUTE_TOOL,),
    "mcp.method.name": ("tools/call",),
    "openinference.span.kind": ("TOOL",),
    "traceloop.span.kind": ("tool",),
    "langfuse.observation.type": ("tool",),
    "logfire.msg_template": ("Function: {name}",),  # of openai-agents
}
# Attributes that name the tool on such a span; without one, the span's name has it.
TOOL_NAMES: Final = (semconv.GEN_AI_TOOL_NAME, semconv.TOOL_NAME, "name")
# Attributes by which a runtime's own instrumentation marks the span of a step.
STEP_SPANS: Final = (
    "temporalActivityID",
    "durabletask.task.task_id",
    "dapr.ext.workflow._durabletask.activity.name",
    "durable.operation.id",  # AWS's durable functions
    "celery.action",
    "prefect.run.id",
    "hatchet.step_run_id",
    "operationUUID",  # DBOS
    "dbos.operation.workflow_id",
)
# MLflow can share the program's provider: its module, and the variable that is false then. Its processors raise
# ``KeyError`` when a span of MLflow starts below one that is open since before MLflow's first, and the agent fails.
SHARING: Final = "mlflow.tracing"
SHARES_UNLESS: Final = "MLFLOW_USE_DEFAULT_TRACER_PROVIDER"
