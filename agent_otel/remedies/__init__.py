"""Opt-in remedies that reduce bytes: each is off until a setting or a call of the program enables it."""

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from agent_otel.core.types import ToolDeniedError
    from agent_otel.remedies.artifacts import streamed_artifacts
    from agent_otel.remedies.claim_check.durabletask import durabletask_payload_store
    from agent_otel.remedies.claim_check.get_tool_result import aget_tool_result, get_tool_result
    from agent_otel.remedies.claim_check.lean_record import LeanRecord, RenderedRecord, lean_records, render
    from agent_otel.remedies.claim_check.policy import adelete, aresolve, delete, resolve, results_app, use_store
    from agent_otel.remedies.claim_check.temporal import temporal_storage_driver
    from agent_otel.remedies.dispatch_policy.hooks import DispatchedCall, policy_values
    from agent_otel.remedies.dispatch_policy.rules import PolicyError
    from agent_otel.remedies.dispatch_policy.source import use_policy
    from agent_otel.remedies.forgetting import aforget, forget
    from agent_otel.remedies.history.argument_compaction import compact as compact_arguments
    from agent_otel.remedies.history.summarization import asummarize_history, summarize_history
    from agent_otel.remedies.history.summarizer import use_summarizer
    from agent_otel.remedies.history.trimming import deduplicate as deduplicate_history
    from agent_otel.remedies.history.trimming import trim as trim_history
    from agent_otel.remedies.limits import token_counter
    from agent_otel.remedies.pagination import Cursor, Window, paginate, paginated
    from agent_otel.remedies.recipe_book import recipes
    from agent_otel.remedies.result_ceiling import result_hint
    from agent_otel.remedies.result_summaries import result_summary, summarize_result

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
    "recipes",
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

_EXPORTS = {
    "Cursor": "agent_otel.remedies.pagination",
    "DispatchedCall": "agent_otel.remedies.dispatch_policy.hooks",
    "LeanRecord": "agent_otel.remedies.claim_check.lean_record",
    "PolicyError": "agent_otel.remedies.dispatch_policy.rules",
    "RenderedRecord": "agent_otel.remedies.claim_check.lean_record",
    "ToolDeniedError": "agent_otel.core.types",
    "Window": "agent_otel.remedies.pagination",
    "adelete": "agent_otel.remedies.claim_check.policy",
    "aforget": "agent_otel.remedies.forgetting",
    "aget_tool_result": "agent_otel.remedies.claim_check.get_tool_result",
    "aresolve": "agent_otel.remedies.claim_check.policy",
    "asummarize_history": "agent_otel.remedies.history.summarization",
    "compact_arguments": "agent_otel.remedies.history.argument_compaction:compact",
    "deduplicate_history": "agent_otel.remedies.history.trimming:deduplicate",
    "delete": "agent_otel.remedies.claim_check.policy",
    "durabletask_payload_store": "agent_otel.remedies.claim_check.durabletask",
    "forget": "agent_otel.remedies.forgetting",
    "get_tool_result": "agent_otel.remedies.claim_check.get_tool_result",
    "lean_records": "agent_otel.remedies.claim_check.lean_record",
    "paginate": "agent_otel.remedies.pagination",
    "paginated": "agent_otel.remedies.pagination",
    "policy_values": "agent_otel.remedies.dispatch_policy.hooks",
    "recipes": "agent_otel.remedies.recipe_book",
    "render": "agent_otel.remedies.claim_check.lean_record",
    "resolve": "agent_otel.remedies.claim_check.policy",
    "result_hint": "agent_otel.remedies.result_ceiling",
    "result_summary": "agent_otel.remedies.result_summaries",
    "results_app": "agent_otel.remedies.claim_check.policy",
    "streamed_artifacts": "agent_otel.remedies.artifacts",
    "summarize_history": "agent_otel.remedies.history.summarization",
    "summarize_result": "agent_otel.remedies.result_summaries",
    "temporal_storage_driver": "agent_otel.remedies.claim_check.temporal",
    "token_counter": "agent_otel.remedies.limits",
    "trim_history": "agent_otel.remedies.history.trimming:trim",
    "use_policy": "agent_otel.remedies.dispatch_policy.source",
    "use_store": "agent_otel.remedies.claim_check.policy",
    "use_summarizer": "agent_otel.remedies.history.summarizer",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    from agent_otel._internal import fork  # noqa: PLC0415 - nothing is imported before first use

    return fork.load(__name__, _EXPORTS, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
