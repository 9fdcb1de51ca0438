"""The table of settings: name, variable, type and default; ``meanings.yaml`` has their effects.

``docs/settings.md`` is generated from both.

For an invalid value, one warning is logged and the default applies; no exception is raised.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.settings.kinds import (
    CAPS,
    CAPTURE,
    CEILING,
    COUNT,
    ENCRYPTION_KEYS,
    FUNCTION,
    KEY,
    KEYS,
    LABELS,
    LIMIT,
    NAMES,
    PATTERN,
    PORT,
    RATIO,
    SECONDS,
    SHOWN_KEYS,
    SOME_NAMES,
    STORE,
    SWITCH,
    TEXT,
    WINDOWS,
    choice,
    variable_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

#: The variable of the switch, which `agent_otel._bootstrap.startup` reads at interpreter start.
_SWITCH = "AGENT_OTEL"
_CLAIMS = ("AGENT_OTEL_CLAIM_CHECK",)
_SUMMARIES = ("AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS",)
_TRIMMING = ("AGENT_OTEL_TRIM_RESULTS",)
_CAPTURING = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",)
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


@dataclass(frozen=True, init=False, eq=False)
class Settings:
    """All settings, read from the environment at first use. Sizes are bytes.

    The variable of a field is ``AGENT_OTEL_`` and its name, unless the row names another one.

    `dataclass` would compile the methods that are written here anew for sixty fields, for 1.5 ms of every import of a
    framework.
    """

    spans: str = choice("auto", "own", "enrich", "off")("auto")
    metrics: str = choice("auto", "prometheus", "otel", "both", "off")("auto")
    prometheus_port: int | None = PORT(None)
    prometheus_host: str = TEXT("127.0.0.1", needs=("AGENT_OTEL_PROMETHEUS_PORT",))
    sdk: bool = SWITCH(True)
    disabled_integrations: frozenset[str] = NAMES(frozenset())
    httpx: bool = SWITCH(False)
    large_result_bytes: int = LIMIT(16000)
    log_large_results: bool = SWITCH(True)
    hash_key: str = KEY("")
    scales_to_zero: bool = SWITCH(False)
    quiet: bool = SWITCH(False)
    flush_on_sigterm: bool = SWITCH(False)
    status_file: str = TEXT("")
    labels: tuple[tuple[str, str | None], ...] = LABELS(())
    capture_content: bool = CAPTURE(False, variable=_CAPTURING[0])
    capture_bytes: int = LIMIT(8192)
    capture_tools: frozenset[str] | None = SOME_NAMES(None, needs=_CAPTURING, narrows="capture_content")
    redact: str | None = FUNCTION(None, needs=_CAPTURING, narrows="capture_content")
    payload_warn_ratio: float = RATIO(0.5)
    show_keys: frozenset[str] | bool = SHOWN_KEYS(False)
    payload_near_ratio: float = RATIO(0.8)
    store_warn_bytes: int = LIMIT(50 * 1024 * 1024)
    caps: frozenset[tuple[str, str, int]] = CAPS(frozenset())
    context_windows: frozenset[tuple[str, int]] = WINDOWS(frozenset())
    model_prices: bool = SWITCH(False)

    result_ceiling_bytes: int | None = CEILING(None)
    mcp_result_characters: int | None = LIMIT(None)
    claim_check: str = STORE("")
    claim_check_bytes: int = LIMIT(32 * 1024, needs=_CLAIMS)
    claim_check_max_bytes: int = LIMIT(32 * 1024 * 1024, needs=_CLAIMS)
    claim_check_ttl_seconds: float = SECONDS(
        86_400.0, needs=(*_CLAIMS, *_SUMMARIES), variable="AGENT_OTEL_CLAIM_CHECK_TTL"
    )
    claim_check_budget_seconds: float = SECONDS(
        0.25, needs=(*_CLAIMS, *_SUMMARIES), variable="AGENT_OTEL_CLAIM_CHECK_BUDGET"
    )
    claim_check_floor_bytes: int = LIMIT(4 * 1024, needs=_CLAIMS)
    claim_check_tool: bool = SWITCH(True, needs=(*_CLAIMS, *_SUMMARIES))
    claim_check_key: str = KEYS("")
    claim_check_tenant: str = TEXT("")
    claim_check_encryption_key: str = ENCRYPTION_KEYS("")

    max_tool_calls: int | None = COUNT(None)
    max_conversation_tool_calls: int | None = COUNT(None, variable="AGENT_OTEL_MAX_TOOL_CALLS_PER_CONVERSATION")
    max_repeats: int | None = COUNT(None)
    max_parallel_tool_calls: int | None = COUNT(None)
    max_result_bytes: int | None = LIMIT(None)
    max_result_tokens: int | None = COUNT(None)

    max_execution_tokens: int | None = COUNT(None, variable="AGENT_OTEL_EXECUTION_TOKENS")
    tokens_per_minute: int | None = COUNT(None)

    answer_retries: bool = SWITCH(False, needs=_CLAIMS)
    tool_policy: str = TEXT("")
    tool_policy_strict: bool = SWITCH(False, needs=("AGENT_OTEL_TOOL_POLICY",))

    trim_results: bool = SWITCH(False)
    compact_arguments: bool = SWITCH(False)
    deduplicate_history: bool = SWITCH(False)
    keep_turns: int = COUNT(2, needs=_TRIMMING)
    trim_step_turns: int = COUNT(5, needs=_TRIMMING)
    trim_characters: int = COUNT(150, needs=_TRIMMING)
    trim_reference_characters: int = COUNT(600, needs=_TRIMMING)
    trim_references: str = PATTERN("", needs=_TRIMMING)

    summarize_above_tokens: int | None = COUNT(None)
    summarize_target_tokens: int | None = COUNT(None, needs=_SUMMARIES)
    summarize_chunk_tokens: int = COUNT(8_000, needs=_SUMMARIES)
    summarize_model: str = TEXT("", needs=_SUMMARIES)
    summarize_timeout_seconds: float = SECONDS(60.0, needs=_SUMMARIES, variable="AGENT_OTEL_SUMMARIZE_TIMEOUT")

    def __init__(self, **named: Any) -> None:
        """Take values by name. A field without a value has its default."""
        defaults = {item.name: item.default for item in fields(self)}
        if named.keys() - defaults.keys():
            raise TypeError(f"{type(self).__name__} takes no such values")
        vars(self).update(defaults | named)

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Settings) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Return the hash of all fields."""
        return hash(tuple(vars(self).values()))

    @property
    def rewrites(self) -> bool:
        """Return true when a remedy that rewrites model requests is on."""
        return self.views or bool(self.limits)

    @property
    def views(self) -> bool:
        """Return true when a view of the history is on."""
        return self.trim_results or self.compact_arguments or self.deduplicate_history

    @property
    def limits(self) -> dict[str, int]:
        """Return the maxima of an execution by the limits' names in ``semconv``; none by default."""
        maxima = {
            semconv.LIMIT_TOOL_CALLS: self.max_tool_calls,
            semconv.LIMIT_CONVERSATION: self.max_conversation_tool_calls,
            semconv.LIMIT_BYTES: self.max_result_bytes,
            semconv.LIMIT_TOKENS: self.max_result_tokens,
            semconv.LIMIT_EXECUTION: self.max_execution_tokens,
            semconv.LIMIT_REPEATS: self.max_repeats,
        }
        return {limit: maximum for limit, maximum in maxima.items() if maximum is not None}

    @property
    def dispatch_waits(self) -> bool:
        """Return true when tool calls may wait before their dispatch."""
        return self.max_parallel_tool_calls is not None or self.tokens_per_minute is not None

    @property
    def remedies(self) -> tuple[str, ...]:
        """Return the remedies that may replace a result, as truncation reasons of ``semconv``; none by default."""
        ceiling = (semconv.CEILING,) if self.result_ceiling_bytes is not None else ()
        return (*ceiling, semconv.CLAIM_CHECK) if self.claim_check else ceiling


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from a mapping; log one warning for each bad value, unknown name and conflict."""
    values: dict[str, Any] = {}
    refused: dict[str, bool] = {}
    rows = {variable_of(item): item for item in fields(Settings)}
    for variable, item in rows.items():
        given = environ.get(variable, "")
        # A blank policy is a path that cannot be read: it denies all calls, and does not switch the policy off.
        text = given if variable == "AGENT_OTEL_TOOL_POLICY" and not given.strip() else given.strip()
        if not text:
            continue
        try:
            values[variable] = item.metadata["kind"].parse(text)
        except errors.ours(ValueError) as error:
            default = "it stays unset" if item.default in (None, "", frozenset()) else f"using {item.default!r}"
            if item.metadata["narrows"]:
                refused[item.metadata["narrows"]] = False
                default = "no content is captured"
            shown = variable if item.metadata["kind"].is_secret else f"{variable}={text!r}"
            errors.warn_once(f"setting {variable}", f"{shown} is not {error}; {default}")
    _warn_of_names(environ, {_SWITCH, *rows})
    _warn_of_needs(values, {variable: item.metadata["needs"] for variable, item in rows.items()})
    by_field = {rows[variable].name: value for variable, value in values.items()}
    chosen = Settings(**by_field | refused)
    return replace(chosen, **_corrections(chosen, by_field))


def _corrections(chosen: Settings, explicit: Collection[str]) -> dict[str, Any]:
    """Return new values of fields that contradict others; ``explicit`` are the fields that the user set."""
    found: dict[str, Any] = {}

    def correct(name: str, value: object, message: str, *, is_said: bool = True) -> None:
        found[name] = value
        variable = f"AGENT_OTEL_{name.upper()}"
        if is_said:
            errors.warn_once(f"setting {variable} against another", f"{variable}={message}")

    warn, near = chosen.payload_warn_ratio, chosen.payload_near_ratio
    if warn > near:
        text = f"{warn:g} is above AGENT_OTEL_PAYLOAD_NEAR_RATIO, {near:g}; using {near:g} for both"
        correct("payload_warn_ratio", near, text, is_said="payload_warn_ratio" in explicit)
    port, size, ceiling = chosen.prometheus_port, chosen.claim_check_bytes, chosen.result_ceiling_bytes
    if chosen.metrics == "off" and port is not None:
        correct("prometheus_port", None, f"{port} is not served, because AGENT_OTEL_METRICS is off")
    if chosen.claim_check and ceiling and size > ceiling:
        text = f"{size} is above AGENT_OTEL_RESULT_CEILING_BYTES, {ceiling}; using {ceiling} for both"
        correct("claim_check_bytes", ceiling, text, is_said="claim_check_bytes" in explicit)
    above, target = chosen.summarize_above_tokens, chosen.summarize_target_tokens
    if above and target and target >= above:
        text = f"{target} is no less than AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS, {above}; using {above // 2}"
        correct("summarize_target_tokens", None, text)
    if chosen.caps:
        _warn_of_runtimes({runtime for runtime, _, _ in chosen.caps})
    return found


# Each finding is one warning, because a safeguard must not be off without notice.


def _warn_of_names(environ: Mapping[str, str], variables: Collection[str]) -> None:
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


def _warn_of_needs(values: Mapping[str, Any], needed: Mapping[str, tuple[str, ...]]) -> None:
    """Warn of each setting that has no effect without another; keys are variables, and ``values`` has the set ones."""
    for variable in values:
        others = needed.get(variable, ())
        if others and not any(values.get(other) for other in others):
            errors.warn_once(f"setting {variable} alone", f"{variable} has no effect without {' or '.join(others)}")


def _warn_of_runtimes(configured: Collection[str]) -> None:
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


@functools.lru_cache(maxsize=1)
def current() -> Settings:
    """Return the settings of this process, read from ``os.environ`` once, at first use."""
    return load(os.environ)


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
    part: str, chosen: Settings | None = None, *, adapter: str = "", tool: str = "", **words: object
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


def in_use(chosen: Settings, remedies: tuple[str, ...]) -> str:
    """Return the variables of the remedies that are set."""
    found = (item for item in fields(chosen) if item.name in remedies and getattr(chosen, item.name))
    return ", ".join(variable_of(item) for item in found)
