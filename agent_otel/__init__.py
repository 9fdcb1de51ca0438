"""Shows, and stops, the way AI agents die of bytes.

Set ``AGENT_OTEL=1`` on an unchanged Python agent and its tool calls become OpenTelemetry spans and Prometheus
metrics. This module imports nothing: what it exports is loaded on first use, because it is read at every
interpreter start.
"""

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from agent_otel.api import execution, payload, tool, tool_call
    from agent_otel.caps import this as caps
    from agent_otel.remedies.claim_check.durabletask import durabletask_payload_store
    from agent_otel.remedies.claim_check.get_tool_result import aget_tool_result, get_tool_result
    from agent_otel.remedies.claim_check.lean_record import LeanRecord
    from agent_otel.remedies.claim_check.policy import aresolve, resolve, results_app, use_store
    from agent_otel.remedies.claim_check.temporal import temporal_storage_driver
    from agent_otel.remedies.history.argument_compaction import compact as compact_arguments
    from agent_otel.remedies.history.summarization import asummarize_history, summarize_history
    from agent_otel.remedies.history.trimming import deduplicate as deduplicate_history
    from agent_otel.remedies.history.trimming import trim as trim_history
    from agent_otel.remedies.limits import token_counter
    from agent_otel.remedies.pagination import paginate, paginated
    from agent_otel.remedies.result_ceiling import result_hint
    from agent_otel.remedies.result_summary import result_summary, summarize_result

__version__ = "0.1.0"
__all__ = [
    "LeanRecord",
    "__version__",
    "aget_tool_result",
    "aresolve",
    "asummarize_history",
    "caps",
    "compact_arguments",
    "deduplicate_history",
    "durabletask_payload_store",
    "execution",
    "get_tool_result",
    "paginate",
    "paginated",
    "payload",
    "resolve",
    "result_hint",
    "result_summary",
    "results_app",
    "summarize_history",
    "summarize_result",
    "temporal_storage_driver",
    "token_counter",
    "tool",
    "tool_call",
    "trim_history",
    "use_store",
]

# Where each public name is: a module, and the name it has there when that is another.
_EXPORTS = {
    "LeanRecord": "agent_otel.remedies.claim_check.lean_record",
    "aget_tool_result": "agent_otel.remedies.claim_check.get_tool_result",
    "aresolve": "agent_otel.remedies.claim_check.policy",
    "asummarize_history": "agent_otel.remedies.history.summarization",
    "caps": "agent_otel.caps",
    "compact_arguments": "agent_otel.remedies.history.argument_compaction:compact",
    "deduplicate_history": "agent_otel.remedies.history.trimming:deduplicate",
    "durabletask_payload_store": "agent_otel.remedies.claim_check.durabletask",
    "execution": "agent_otel.api",
    "get_tool_result": "agent_otel.remedies.claim_check.get_tool_result",
    "paginate": "agent_otel.remedies.pagination",
    "paginated": "agent_otel.remedies.pagination",
    "payload": "agent_otel.api",
    "resolve": "agent_otel.remedies.claim_check.policy",
    "result_hint": "agent_otel.remedies.result_ceiling",
    "result_summary": "agent_otel.remedies.result_summary",
    "results_app": "agent_otel.remedies.claim_check.policy",
    "summarize_history": "agent_otel.remedies.history.summarization",
    "summarize_result": "agent_otel.remedies.result_summary",
    "temporal_storage_driver": "agent_otel.remedies.claim_check.temporal",
    "token_counter": "agent_otel.remedies.limits",
    "tool": "agent_otel.api",
    "tool_call": "agent_otel.api",
    "trim_history": "agent_otel.remedies.history.trimming:trim",
    "use_store": "agent_otel.remedies.claim_check.policy",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    module, _, attribute = _EXPORTS.get(name, "").partition(":")
    if not module:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - nothing is imported before first use

    from agent_otel._internal import fork  # noqa: PLC0415

    with fork.loading:
        loaded = importlib.import_module(module)
    # agent_otel.caps() calls the module itself: importing it binds this very name to it, whenever that happens.
    value = loaded if module == f"{__name__}.{name}" else getattr(loaded, attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
