"""Opt-in remedies that reduce bytes: each is off until a setting or a call of the program enables it."""

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from agent_otel.core.types import ToolDeniedError
    from agent_otel.remedies.artifacts import result_summary, streamed_artifacts, summarize_result
    from agent_otel.remedies.claim_check.get_tool_result import aget_tool_result, get_tool_result
    from agent_otel.remedies.claim_check.lean_record import LeanRecord, RenderedRecord, lean_records, render
    from agent_otel.remedies.claim_check.payload_store import (
        aforget,
        durabletask_payload_store,
        forget,
        temporal_storage_driver,
    )
    from agent_otel.remedies.claim_check.policy import adelete, aresolve, delete, resolve, results_app, use_store
    from agent_otel.remedies.dispatch_policy.gate import DispatchedCall, policy_values
    from agent_otel.remedies.dispatch_policy.rules import PolicyError
    from agent_otel.remedies.dispatch_policy.source import use_policy
    from agent_otel.remedies.history.argument_compaction import compact as compact_arguments
    from agent_otel.remedies.history.summarizer import asummarize_history, summarize_history, use_summarizer
    from agent_otel.remedies.history.trimming import deduplicate as deduplicate_history
    from agent_otel.remedies.history.trimming import trim as trim_history
    from agent_otel.remedies.limits import result_hint, token_counter
    from agent_otel.remedies.pagination import Cursor, Window, paginate, paginated

__all__ = [
    "Cursor",
    "DispatchedCall",
    "LeanRecord",
    "PolicyError",
    "RenderedRecord",
    "ToolDeniedError",
    "Window",
    "adelete",
    "aforget",
    "aget_tool_result",
    "aresolve",
    "asummarize_history",
    "compact_arguments",
    "deduplicate_history",
    "delete",
    "durabletask_payload_store",
    "forget",
    "get_tool_result",
    "lean_records",
    "paginate",
    "paginated",
    "policy_values",
    "render",
    "resolve",
    "result_hint",
    "result_summary",
    "results_app",
    "streamed_artifacts",
    "summarize_history",
    "summarize_result",
    "temporal_storage_driver",
    "token_counter",
    "trim_history",
    "use_policy",
    "use_store",
    "use_summarizer",
]

_NAMES = {
    "artifacts": ("result_summary", "streamed_artifacts", "summarize_result"),
    "claim_check.get_tool_result": ("aget_tool_result", "get_tool_result"),
    "claim_check.lean_record": ("LeanRecord", "RenderedRecord", "lean_records", "render"),
    "claim_check.payload_store": ("aforget", "durabletask_payload_store", "forget", "temporal_storage_driver"),
    "claim_check.policy": ("adelete", "aresolve", "delete", "resolve", "results_app", "use_store"),
    "dispatch_policy.gate": ("DispatchedCall", "policy_values"),
    "dispatch_policy.rules": ("PolicyError",),
    "dispatch_policy.source": ("use_policy",),
    "history.summarizer": ("asummarize_history", "summarize_history", "use_summarizer"),
    "limits": ("result_hint", "token_counter"),
    "pagination": ("Cursor", "Window", "paginate", "paginated"),
}
_EXPORTS = {
    **{name: f"agent_otel.remedies.{module}" for module, names in _NAMES.items() for name in names},
    "ToolDeniedError": "agent_otel.core.types",
    "compact_arguments": "agent_otel.remedies.history.argument_compaction:compact",
    "deduplicate_history": "agent_otel.remedies.history.trimming:deduplicate",
    "trim_history": "agent_otel.remedies.history.trimming:trim",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    from agent_otel._internal import fork  # noqa: PLC0415 - nothing is imported before first use

    return fork.load(__name__, _EXPORTS, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
