"""Checks across settings: unknown variables, settings without effect, settings that contradict each other.

Each finding is one warning, because a safeguard must not be off without notice.
"""

from __future__ import annotations

import logging
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal import errors
from agent_otel.settings.kinds import variable_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from _typeshed import DataclassInstance

#: Fields of limits that end a run.
OF_RUNS: Final = (
    *("max_tool_calls", "max_conversation_tool_calls", "max_result_bytes", "max_result_tokens"),
    "max_execution_tokens",
)
#: Fields of remedies that act on tool results, and of remedies that act on model requests.
ON_RESULTS: Final = ("result_ceiling_bytes", "claim_check", *OF_RUNS)
#: Fields of the queue, and of remedies that have no effect on generators: the limits of calls act on them.
QUEUE: Final = ("max_parallel_tool_calls", "tokens_per_minute")
ON_ITEMS: Final = ("result_ceiling_bytes", "claim_check", "max_result_bytes", "max_result_tokens", *QUEUE)
ON_REQUESTS: Final = ("trim_results", "compact_arguments", "deduplicate_history")
#: Fields of remedies that act around a handler only.
ON_HANDLERS: Final = ("max_parallel_tool_calls", "tool_policy")
_PREFIXES: Final = ("AGENT_OTEL_", "AGENTOTEL_")
_LIKENESS: Final = 0.6
# Kubernetes sets these variables in each pod of a namespace with a service named agent-otel...
_OF_A_SERVICE: Final = r".*(_SERVICE_HOST|_SERVICE_PORT(_\w+)?|_PORT_\d+_[A-Z]+(_PROTO|_PORT|_ADDR)?)"
_ADDRESS: Final = r"[a-z]+://[^:]+:\d+"


def names(environ: Mapping[str, str], variables: Collection[str]) -> None:
    """Warn of each unknown variable, and suggest the nearest; ``variables`` belong to all settings."""
    settings = {variable.removeprefix(_PREFIXES[0]): variable for variable in variables}
    for name, value in environ.items():
        prefix = next((prefix for prefix in _PREFIXES if name.upper().startswith(prefix)), "")
        is_of_service = re.fullmatch(_OF_A_SERVICE, name) or (name.endswith("_PORT") and re.fullmatch(_ADDRESS, value))
        if not prefix or name in variables or is_of_service:
            continue
        # The setting with the same ending, else with the most similar name; the common prefix does not count.
        rest = name.upper().removeprefix(prefix)
        ending = [setting for setting in settings if setting.endswith(f"_{rest}")]
        nearest = min(ending, key=len, default=None) or _nearest(rest, settings)
        hint = f" Do you mean {settings[nearest]}?" if nearest else ""
        errors.warn_once(f"setting {name}", f"{name} is no setting of agent_otel and has no effect.{hint}")


def _nearest(name: str, candidates: Collection[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only needed for a wrong name

    return next(iter(difflib.get_close_matches(name, sorted(candidates), 1, _LIKENESS)), None)


def needs(values: Mapping[str, Any], needed: Mapping[str, tuple[str, ...]]) -> None:
    """Warn of each setting that has no effect without another; keys are variables, and ``values`` has the set ones."""
    for variable in values:
        others = needed.get(variable, ())
        if others and not any(values.get(other) for other in others):
            errors.warn_once(f"setting {variable} alone", f"{variable} has no effect without {' or '.join(others)}")


def runtimes(configured: Collection[str]) -> None:
    """Warn of caps for unknown runtimes, and suggest a similar name; a program may report its own runtimes."""
    from agent_otel.caps import payload_caps  # noqa: PLC0415 - needed only with caps

    known = {"transport", *(cap.runtime for cap in payload_caps())}
    for runtime in sorted(set(configured) - known):
        nearest = _nearest(runtime, known)
        hint = f" Do you mean {nearest}?" if nearest else ""
        errors.warn_once(
            f"setting AGENT_OTEL_CAPS {runtime}",
            f"AGENT_OTEL_CAPS: {runtime!r} is no runtime that agent_otel knows; the cap counts for payloads that your "
            f"program reports under this name, only.{hint}",
            level=logging.WARNING if nearest else logging.INFO,
        )


_THROUGH: Final = "without effect on calls through {adapter}, in this version of it or of agent_otel;"
_DECORATE: Final = "Decorate its function with agent_otel.tool, or call it within agent_otel.tool_call."
#: Part of a program -> fields of the remedies that have no effect on it, or the variable of one that is in use.
_REMEDIES: Final = {
    "results": ON_RESULTS,
    "views": ON_REQUESTS,
    "workflows": (*ON_RESULTS, *QUEUE, "tool_policy"),
    "conversations": ON_REQUESTS,
    "texts": "AGENT_OTEL_TRIM_RESULTS",
    "no old results": "AGENT_OTEL_TRIM_RESULTS",
    "summaries": "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS",
    "last request": OF_RUNS,
    "handlers": ON_HANDLERS,
    "ceiling": "AGENT_OTEL_RESULT_CEILING_BYTES",
    "items": ON_ITEMS,
}
_EFFECTS: Final = {
    "results": f"{_THROUGH} they go on whole and unlimited.",
    "views": f"{_THROUGH} they go on whole and unlimited.",
    "workflows": "without effect on tool calls through {adapter} in the code of a durable workflow, which runs again "
    "at each replay; they run, and their results go on whole.",
    "conversations": "without effect on what the provider keeps of earlier requests (previous_response_id, a "
    "conversation, a thread, cached content, a container), which is not sent again.",
    "texts": "without effect on results that an agent writes into the texts of its messages (Observation: ...), such "
    "as those of smolagents; they go on whole.",
    "no old results": "nothing to do in a request after {turns}: the results of the last {keep} stay whole, and where "
    "the provider caches the messages, those before them become lines {step} turns at a time.",
    "summaries": f"{_THROUGH.replace('calls', 'requests')} they go on as they are.",
    "last request": "calls above the limit are not run, but requests through {adapter} cannot be rewritten and keep "
    "their tools; the run ends when the model or the framework ends it.",
    "handlers": f"without effect on calls of {{tool}}, which only the requests to the model show. {_DECORATE}",
    "ceiling": "without effect on results of {tool}, which only requests of a layer show that cannot be rewritten. "
    f"{_DECORATE}",
    "items": "without effect on {tool}, which is a generator; its items go on whole and unlimited.",
}


def without_effect(
    part: str, chosen: DataclassInstance | None = None, *, adapter: str = "", tool: str = "", **words: object
) -> None:
    """Warn once that settings in use have no effect on a part of the program: on a tool, or behind an adapter's module.

    For parts with a variable, its setting is in use.
    """
    remedies = _REMEDIES[part]
    variables = in_use(chosen, remedies) if chosen is not None and isinstance(remedies, tuple) else remedies
    if variables:
        is_open = part == "workflows" and "AGENT_OTEL_TOOL_POLICY" in variables
        level = logging.ERROR if is_open else logging.INFO if part == "no old results" else logging.WARNING
        text = _EFFECTS[part].format(adapter=adapter.rpartition(".")[2], tool=tool, **words)
        errors.warn_once(f"{part} without effect {adapter}{tool}", f"{variables}: {text}", level=level)


def in_use(chosen: DataclassInstance, remedies: tuple[str, ...]) -> str:
    """Return the variables of the remedies that are set."""
    found = (item for item in fields(chosen) if item.name in remedies and getattr(chosen, item.name))
    return ", ".join(variable_of(item) for item in found)
