"""The table of settings: name, variable, type, default, meaning. ``docs/settings.md`` is generated from it.

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
    BOUNDARIES,
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


@dataclass(frozen=True, init=False, eq=False)
class Settings:
    """All settings, read from the environment at first use. Sizes are bytes.

    The variable of a field is ``AGENT_OTEL_`` and its name, unless the row names another one.

    `dataclass` would compile the methods that are written here anew for sixty fields, for 1.5 ms of every import of a
    framework.
    """

    spans: str = choice("auto", "own", "enrich", "off")(
        "auto",
        "Which span has the numbers. `auto`: the tool span that another instrumentation has open, else our own. "
        "`own`: always our own. `enrich`: only another's. `off`: metrics only.",
    )
    metrics: str = choice("auto", "prometheus", "otel", "both", "off")(
        "auto",
        "Where metrics go. `auto`: OpenTelemetry when the program has a MeterProvider or the `OTEL_*` variables name a "
        "metrics exporter, else `prometheus_client`'s registry, and both when a port is set. With "
        "`OTEL_TRACES_EXPORTER` alone they stay in the registry, and with an OTLP endpoint alone in a program that "
        "serves it.",
    )
    prometheus_port: int | None = PORT(
        None,
        "Serve `/metrics` on this port, from the import of the first framework on. With several workers, set "
        "`PROMETHEUS_MULTIPROC_DIR` as well: one port then answers for all.",
    )
    prometheus_host: str = TEXT(
        "127.0.0.1",
        "The address that the port listens on. `0.0.0.0` lets other hosts scrape, as in Kubernetes.",
        needs=("AGENT_OTEL_PROMETHEUS_PORT",),
    )
    sdk: bool = SWITCH(
        True,
        "Build OpenTelemetry providers from the `OTEL_*` variables when the program has none. `off` when the program "
        "sets its own after its first tool call.",
    )
    disabled_integrations: frozenset[str] = NAMES(
        frozenset(),
        "Integrations that are not wrapped, by their names in integrations.md; `langgraph` includes its checkpointers.",
    )
    httpx: bool = SWITCH(
        False,
        "Read model requests that the program sends with `httpx` or `httpx2`, to vLLM, llama.cpp and other servers: "
        "POSTs to `/chat/completions`, `/responses` and `/v1/messages`.",
    )
    large_result_bytes: int = LIMIT(16000, 'A result above this size counts as large (`threshold="warn"`).')
    log_large_results: bool = SWITCH(
        True,
        "Log a warning `tool.large_result` for a large result, once for each tool and hour, in a program that has "
        "configured `logging`.",
    )
    hash_key: str = KEY(
        "",
        "Key of `tool.args_hash`. Processes with the same key give the same arguments the same hash. Default: the "
        "first key of AGENT_OTEL_CLAIM_CHECK_KEY, else a random key for each process.",
    )
    scales_to_zero: bool = SWITCH(
        False, "This job may have no process for hours, on purpose: AgentTelemetryGone ignores it."
    )
    quiet: bool = SWITCH(
        False,
        "Do not print the line at first use. By default a program that has configured no `logging` prints the "
        "integrations and the destination of telemetry on its terminal.",
    )
    flush_on_sigterm: bool = SWITCH(
        False,
        "Flush for at most 2 s on SIGTERM and SIGHUP if the program has no handler (uvicorn re-raises the signal and "
        "would lose the last batch). See [process ends](reliability.md).",
    )
    status_file: str = TEXT(
        "",
        "The process writes its measurements into this file, at first use and every 10 s, for `agent-otel doctor "
        "--pid`. `{pid}` in the path is the id of the process. Each worker needs its own file.",
    )
    labels: tuple[tuple[str, str | None], ...] = LABELS(
        (),
        "Your own labels on all metrics and spans, such as `team=search,tenant`. A label without a value takes it "
        "from `agent_otel.execution(labels={...})`, else from the baggage. At most five labels and 200 sets of "
        "values.",
    )
    capture_content: bool = CAPTURE(
        False, "Put arguments and results on the span.", variable="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    )
    capture_bytes: int = LIMIT(
        8192,
        "The largest copy of arguments, of a result or of a failure's text on a span. `agent_otel.content.truncated` "
        "names attributes that hold only the beginning.",
    )
    capture_tools: frozenset[str] | None = SOME_NAMES(
        None,
        "Capture only these tools; `*` as in file names. Default: all.",
        needs=("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",),
        narrows="capture_content",
    )
    redact: str | None = FUNCTION(
        None,
        "A function of the program that gets the tool, the attribute and the text of each copy, and returns the text "
        "for the span, or None for no copy. If it fails, there is no copy.",
        needs=("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",),
        narrows="capture_content",
    )
    payload_warn_ratio: float = RATIO(
        0.5, "Payloads above this share of their cap are analysed: largest path, largest tool, duplicates."
    )
    show_keys: frozenset[str] | bool = SHOWN_KEYS(
        False,
        "Show these keys of payloads and results in paths, or all of them (`1`). By default `*` replaces keys that "
        "may be data, such as names of customers.",
    )
    payload_near_ratio: float = RATIO(0.8, "A payload above this share of its cap counts as near it.")
    store_warn_bytes: int = LIMIT(
        50 * 1024 * 1024, "A thread that has written more than this into its store is counted and logged."
    )
    caps: frozenset[tuple[str, str, int]] = CAPS(
        frozenset(),
        "Payload caps that override the known ones: `dapr.activity_input=2MiB,temporal.payload=4MiB`. Boundaries: "
        f"{', '.join(f'`{boundary}`' for boundary in BOUNDARIES)}. `payload` means each boundary of single payloads. "
        "`dapr.message` is Dapr's `--max-body-size`; all of its caps but `activity_input` scale with it. "
        "`transport.message` is the largest response of this process, such as 10MB with API Gateway; Lambda, Vercel "
        "and Cloud Run functions are detected.",
    )
    context_windows: frozenset[tuple[str, int]] = WINDOWS(
        frozenset(),
        "Context windows of models in tokens, by the names in requests: `my-model=128000,deployment-7=200k`. They "
        "override genai-prices.",
    )
    model_prices: bool = SWITCH(
        False,
        "Read context windows and prices of models from genai-prices (`agent-otel[prices]`), in another process. A "
        "program that has loaded genai-prices needs no setting.",
    )

    result_ceiling_bytes: int | None = CEILING(
        None,
        "A result above this size is withheld, and the model gets the error `result_too_large` with a hint. `auto`: "
        "the limit of the [weakest layer](remedies/ceiling.md), if one is known.",
    )
    mcp_result_characters: int | None = LIMIT(
        None,
        "MCP servers in this process announce this length, at most 500,000 characters, with each tool "
        "(`anthropic/maxResultSizeChars`). Claude Code passes results up to it to its model whole.",
    )
    claim_check: str = STORE("", "The store of large results. The model gets the beginning and a reference.")
    claim_check_bytes: int = LIMIT(
        32 * 1024,
        "Results above this size are stored. The model gets this much: the beginning, and a line that says how to "
        "read the rest.",
        needs=_CLAIMS,
    )
    claim_check_max_bytes: int = LIMIT(32 * 1024 * 1024, "Results above this size are not stored.", needs=_CLAIMS)
    claim_check_ttl_seconds: float = SECONDS(
        86_400.0,
        "Seconds that a result is kept after a write.",
        needs=(*_CLAIMS, *_SUMMARIES),
        variable="AGENT_OTEL_CLAIM_CHECK_TTL",
    )
    claim_check_budget_seconds: float = SECONDS(
        0.25,
        "Seconds that a tool call waits for the store.",
        needs=(*_CLAIMS, *_SUMMARIES),
        variable="AGENT_OTEL_CLAIM_CHECK_BUDGET",
    )
    claim_check_floor_bytes: int = LIMIT(
        4 * 1024,
        "The model gets at least this much of a result, until a durable runtime's payload is near its cap.",
        needs=_CLAIMS,
    )
    claim_check_tool: bool = SWITCH(
        True,
        "Offer the tool `get_tool_result` in each model request with a reference, and answer its calls. `off` when "
        "the model reads on in another way, or not at all.",
        needs=(*_CLAIMS, *_SUMMARIES),
    )
    claim_check_key: str = KEYS(
        "",
        "The secret that signs references. To change it, set `new,old`. Without one, only the process that made a "
        "reference can resolve it.",
    )
    claim_check_tenant: str = TEXT(
        "",
        "The tenant of the results, if several share a store and a key. Tenants cannot read or replace each other's "
        "results.",
    )
    claim_check_encryption_key: str = ENCRYPTION_KEYS(
        "",
        "Encrypt stored results with AES-GCM, and read nothing else. To change it, set `new,old`; `new,plain` also "
        "reads unencrypted results. Needs `agent-otel[encryption]`.",
    )

    max_tool_calls: int | None = COUNT(
        None,
        "Tool calls of one execution. A call above it is not run, and the next request asks for the answer and allows "
        "no tool call.",
    )
    max_conversation_tool_calls: int | None = COUNT(
        None,
        "The same for all executions of a conversation (thread or session) in one process.",
        variable="AGENT_OTEL_MAX_TOOL_CALLS_PER_CONVERSATION",
    )
    max_repeats: int | None = COUNT(
        None,
        "Repeats of a call with the same tool and arguments. A further repeat is not run: the model gets the error "
        "`repeated_call`, which names the result that it already has.",
    )
    max_parallel_tool_calls: int | None = COUNT(
        None, "Tool calls of one execution that run at the same time. Others wait."
    )
    max_result_bytes: int | None = LIMIT(
        None, "Sum of the results of one execution. Once it is reached, no call is run."
    )
    max_result_tokens: int | None = COUNT(
        None, "The same in tokens: characters ÷ 4, or counted by `agent_otel.remedies.token_counter`."
    )

    max_execution_tokens: int | None = COUNT(
        None,
        "Tokens of one execution's model requests and responses, as providers report them. Once they are used, no "
        "tool call is run, and the next request asks for the answer.",
        variable="AGENT_OTEL_EXECUTION_TOKENS",
    )
    tokens_per_minute: int | None = COUNT(
        None,
        "Tokens of all model requests and responses of this process in a minute. Tool calls and model requests wait "
        "until there are enough, and for a provider's `retry-after`.",
    )

    answer_retries: bool = SWITCH(
        False,
        "Store results of calls within a durable step. When the runtime retries the step, a call with the same "
        "arguments gets its stored result and does not run again.",
        needs=_CLAIMS,
    )
    tool_policy: str = TEXT(
        "",
        "The TOML file with the [dispatch policy](dispatch-policy.md), or `code` if the program calls "
        "`agent_otel.remedies.use_policy`. Calls that no rule allows are denied before their handler runs.",
    )
    tool_policy_strict: bool = SWITCH(
        False,
        "Refuse calls that the policy cannot see: `agent_otel.tool` while the package is off, and the import of a "
        "framework that is disabled or in an unknown version.",
        needs=("AGENT_OTEL_TOOL_POLICY",),
    )

    trim_results: bool = SWITCH(
        False, "In model requests, results of old turns become one line each. The stored history does not change."
    )
    compact_arguments: bool = SWITCH(
        False,
        "In model requests, long arguments of completed calls become a marker.",
    )
    deduplicate_history: bool = SWITCH(False, "In model requests, send messages that appear twice (same id) once.")
    keep_turns: int = COUNT(2, "The last turns, which keep their results whole.", needs=("AGENT_OTEL_TRIM_RESULTS",))
    trim_step_turns: int = COUNT(
        5,
        "Turns that are trimmed together if the provider caches the messages, so that the cache keeps hitting.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_characters: int = COUNT(
        150, "Characters of a result's beginning in its line.", needs=("AGENT_OTEL_TRIM_RESULTS",)
    )
    trim_reference_characters: int = COUNT(
        600,
        "Characters of references to other data in a result's line, without references of the claim check.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_references: str = PATTERN(
        "",
        "References to keep in a line, such as `TICKET-\\d+`, besides ids, URLs, paths and claim checks.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )

    summarize_above_tokens: int | None = COUNT(
        None,
        "A model request with more input tokens is sent with a summary of its old messages, by the agent's own model "
        "or `agent_otel.remedies.use_summarizer`. The stored history does not change.",
    )
    summarize_target_tokens: int | None = COUNT(
        None,
        "Tokens of a request with a new summary. Default: half of AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS.",
        needs=_SUMMARIES,
    )
    summarize_chunk_tokens: int = COUNT(
        8_000,
        "Tokens of the transcript that the model summarises at once.",
        needs=_SUMMARIES,
    )
    summarize_model: str = TEXT(
        "", "The model that summarises, of the same provider. Default: the agent's.", needs=_SUMMARIES
    )
    summarize_timeout_seconds: float = SECONDS(
        60.0,
        "Seconds that a request waits for its summary. Then it is sent without one.",
        needs=_SUMMARIES,
        variable="AGENT_OTEL_SUMMARIZE_TIMEOUT",
    )

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
