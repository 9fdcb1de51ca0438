"""The table of settings: name, variable, type and default; ``meanings.yaml`` has their effects.

``docs/settings.md`` is generated from both.

For an invalid value, one warning is logged and the default applies; no exception is raised.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel._internal import errors
from agent_otel.settings import checks as setting_checks
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
    setting_checks.names(environ, {_SWITCH, *rows})
    setting_checks.needs(values, {variable: item.metadata["needs"] for variable, item in rows.items()})
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
        setting_checks.runtimes({runtime for runtime, _, _ in chosen.caps})
    return found


@functools.lru_cache(maxsize=1)
def current() -> Settings:
    """Return the settings of this process, read from ``os.environ`` once, at first use."""
    return load(os.environ)
