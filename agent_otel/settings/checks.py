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
# Variables that Kubernetes sets in every pod of a namespace with a service whose name begins with agent-otel.
_OF_A_SERVICE: Final = r".*(_SERVICE_HOST|_SERVICE_PORT(_\w+)?|_PORT_\d+_[A-Z]+(_PROTO|_PORT|_ADDR)?)"
_ADDRESS: Final = r"[a-z]+://[^:]+:\d+"


def names(environ: Mapping[str, str], variables: Collection[str]) -> None:
    """Warn of each variable that is no setting, and suggest the nearest; ``variables`` are those of all settings."""
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


def _without_effect(key: str, variables: str, text: str, level: int = logging.WARNING) -> None:
    """Warn once that settings have no effect on a part of the program, unless none of them is set."""
    if variables:
        errors.warn_once(key, f"{variables}: {text}", level=level)


def _framework(adapter: str) -> str:
    return adapter.rpartition(".")[2]


def cannot_act(chosen: DataclassInstance, remedies: tuple[str, ...], adapter: str) -> None:
    """Warn once that remedies do not act on a framework in use; ``adapter`` is the module of its adapter."""
    text = f"without effect on calls through {_framework(adapter)}, in this version of it or of agent_otel"
    _without_effect(f"remedies in {adapter}", in_use(chosen, remedies), f"{text}; they go on whole and unlimited.")


def cannot_act_in_workflows(chosen: DataclassInstance, adapter: str) -> None:
    """Warn once that remedies do not act on the tool calls that a durable workflow makes in its own code."""
    _without_effect(
        f"remedies in workflows of {adapter}",
        in_use(chosen, (*ON_RESULTS, *QUEUE, "tool_policy")),
        f"without effect on tool calls through {_framework(adapter)} in the code of a durable workflow, which runs "
        "again at each replay; they run, and their results go on whole.",
        logging.ERROR if in_use(chosen, ("tool_policy",)) else logging.WARNING,
    )


def cannot_rewrite_earlier(chosen: DataclassInstance) -> None:
    """Warn once that a provider keeps the earlier turns of a request, where no view is made of them."""
    _without_effect(
        "views of conversations at the provider",
        in_use(chosen, ON_REQUESTS),
        "without effect on what the provider keeps of earlier requests (previous_response_id, a conversation, a "
        "thread, cached content, a container), which is not sent again.",
    )


def cannot_trim_texts() -> None:
    """Warn once that results which an agent writes into texts are not trimmed."""
    _without_effect(
        "trimming of texts",
        "AGENT_OTEL_TRIM_RESULTS",
        "without effect on results that an agent writes into the texts of its messages (Observation: ...), such as "
        "those of smolagents; they go on whole.",
    )


def has_nothing_to_trim(turns: int, keep_turns: int, step_turns: int) -> None:
    """Say once that a request has no old results."""
    _without_effect(
        "nothing to trim",
        "AGENT_OTEL_TRIM_RESULTS",
        f"nothing to do in a request after {turns} turn{'s' * (turns != 1)}: the results of the last {keep_turns} stay "
        f"whole, and where the provider caches the messages, those before them become lines {step_turns} turns at a "
        "time.",
        logging.INFO,
    )


def cannot_summarize(adapter: str) -> None:
    """Warn once that long requests of a framework in use are not summarised."""
    text = f"without effect on requests through {_framework(adapter)}, in this version of it or of agent_otel"
    _without_effect(f"summaries in {adapter}", "AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS", f"{text}; they go on as they are.")


def cannot_finish(chosen: DataclassInstance, adapter: str) -> None:
    """Warn once that requests of a framework in use keep their tools when a limit is reached."""
    _without_effect(
        f"last request in {adapter}",
        in_use(chosen, OF_RUNS),
        f"calls above the limit are not run, but requests through {_framework(adapter)} cannot be rewritten and keep "
        "their tools; the run ends when the model or the framework ends it.",
    )


def cannot_act_around(chosen: DataclassInstance, tool: str) -> None:
    """Warn once that remedies do not act on the calls of a loop of the program's own; ``tool`` is one of its tools."""
    _without_effect(
        "remedies around handlers",
        in_use(chosen, ON_HANDLERS),
        f"without effect on calls of {tool}, which only the requests to the model show. Decorate its function with "
        "agent_otel.tool, or call it within agent_otel.tool_call.",
    )


def cannot_withhold(tool: str) -> None:
    """Warn once that a result above the ceiling went whole in a request that no remedy can change."""
    _without_effect(
        f"ceiling in requests {tool}",
        "AGENT_OTEL_RESULT_CEILING_BYTES",
        f"without effect on results of {tool}, which only requests of a layer show that cannot be rewritten. Decorate "
        "its function with agent_otel.tool, or call it within agent_otel.tool_call.",
    )


def cannot_act_on_items(chosen: DataclassInstance, remedies: tuple[str, ...], tool: str) -> None:
    """Warn once for a tool that is a generator: its items have gone on before their sum is known."""
    text = f"without effect on {tool}, which is a generator; its items go on whole and unlimited."
    _without_effect(f"remedies on items of {tool}", in_use(chosen, remedies), text)


def in_use(chosen: DataclassInstance, remedies: tuple[str, ...]) -> str:
    """Return the variables of the remedies that are set."""
    found = (item for item in fields(chosen) if item.name in remedies and getattr(chosen, item.name))
    return ", ".join(variable_of(item) for item in found)
