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


@dataclass(frozen=True, init=False, repr=False, eq=False, slots=True)
class Settings:
    """All settings, read from the environment at first use. Sizes are bytes.

    The variable of a field is ``AGENT_OTEL_`` and its name, unless the row names another one.

    The methods that all settings need are written here: `dataclass` compiles them anew for sixty fields, for 1.5 ms of
    every import of a framework.
    """

    spans: str = choice("auto", "own", "enrich", "off")(
        "auto",
        "Which span carries the numbers: the tool span another instrumentation has open, else one of our own (`auto`); "
        "always our own; only the other's; none, metrics only.",
    )
    metrics: str = choice("auto", "prometheus", "otel", "both", "off")(
        "auto",
        "Where metrics go. `auto`: OpenTelemetry when the program has a MeterProvider or the `OTEL_*` variables name "
        "an exporter, else `prometheus_client`'s registry, and that as well when a port is set. An OTLP endpoint alone "
        "leaves them in a registry that the program serves, and where only `OTEL_TRACES_EXPORTER` names an exporter. "
        "The choice is logged once, at INFO.",
    )
    prometheus_port: int | None = PORT(
        None,
        "Serve `/metrics` on this port, from the import of the first framework on. Of several workers one has the "
        "port; set `PROMETHEUS_MULTIPROC_DIR` as well, and it answers for all.",
    )
    prometheus_host: str = TEXT(
        "127.0.0.1",
        "The address that port listens on. `0.0.0.0` lets other hosts scrape, as Prometheus does in Kubernetes; "
        "names of tools, agents and workflows can then be read by all that reach the port.",
        needs=("AGENT_OTEL_PROMETHEUS_PORT",),
    )
    sdk: bool = SWITCH(
        True,
        "Build OpenTelemetry providers from the `OTEL_*` variables when the program has none. `off` when the program "
        "sets its own after its first tool call.",
    )
    disabled_integrations: frozenset[str] = NAMES(
        frozenset(),
        "Integrations to leave alone, by their names in integrations.md; `langgraph` includes its checkpointers.",
    )
    httpx: bool = SWITCH(
        False,
        "Read the model requests that the program sends itself with `httpx` or `httpx2`, to vLLM, llama.cpp and other "
        "servers: POSTs to `/chat/completions`, `/responses` and `/v1/messages` of any host. Requests of an SDK in "
        "integrations.md are counted once.",
    )
    large_result_bytes: int = LIMIT(16000, 'A result above this size counts as large (`threshold="warn"`).')
    log_large_results: bool = SWITCH(
        True,
        "Log a warning `tool.large_result` for a result above AGENT_OTEL_LARGE_RESULT_BYTES, once for each tool and "
        "hour, in a program that has configured `logging`: tool, bytes, budget, hash of the arguments and trace id.",
    )
    hash_key: str = KEY(
        "",
        "Key of `tool.args_hash`. Processes with the same key give the same arguments the same hash, by which traces "
        "of two pods can be compared. Without one it comes from the first key of AGENT_OTEL_CLAIM_CHECK_KEY, else each "
        "process draws a random key.",
    )
    scales_to_zero: bool = SWITCH(
        False, "There may be no process of this job for hours, on purpose: AgentTelemetryGone leaves it out."
    )
    quiet: bool = SWITCH(
        False,
        "Print no line at the first use. Without it a program that has configured no `logging` prints on its terminal "
        "the integrations and the destination of telemetry.",
    )
    flush_on_sigterm: bool = SWITCH(
        False,
        "Flush for at most 2 s on SIGTERM and SIGHUP where the program has no handler of its own (uvicorn re-raises "
        "the signal and would lose the last batch). See [what a process loses when it ends](reliability.md).",
    )
    status_file: str = TEXT(
        "",
        "The process writes what it measures into this file, at first use and every 10 s, and `agent-otel doctor "
        "--pid` reads it. `{pid}` in the path is the id of the process: workers need files of their own.",
    )
    labels: tuple[tuple[str, str | None], ...] = LABELS(
        (),
        "Labels of the program's own on all metrics and spans, such as `team=search,tenant`. A label without a value "
        "takes it from `agent_otel.execution(labels={...})`, else from the baggage. At most five labels and 200 sets "
        "of values; in further ones, values that are not fixed are `_other`.",
    )
    capture_content: bool = CAPTURE(
        False, "Put arguments and results on the span.", variable="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    )
    capture_bytes: int = LIMIT(
        8192,
        "The largest copy of arguments, of a result or of a failure's text on a span. A copy of more holds the "
        "beginning, and `agent_otel.content.truncated` names its attribute.",
    )
    capture_tools: frozenset[str] | None = SOME_NAMES(
        None,
        "The tools whose arguments, results and failures are put on spans, with `*` as in file names. All without it.",
        needs=("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",),
        narrows="capture_content",
    )
    redact: str | None = FUNCTION(
        None,
        "A function of the program that is called with the tool, the attribute and the text before a copy is put on a "
        "span, and returns the text to put there, or None for no copy. When it fails, no copy is made. What it calls "
        "itself is not measured.",
        needs=("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",),
        narrows="capture_content",
    )
    payload_warn_ratio: float = RATIO(
        0.5, "From this share of its cap up a payload is looked into: its largest path, tool and duplicates."
    )
    show_keys: frozenset[str] | bool = SHOWN_KEYS(
        False,
        "Show these keys of payloads and results in paths, or all of them (`1`), for agents whose keys are all fields. "
        "By default `*` replaces keys that may be data, such as names of customers: all that are neither made of "
        "common words nor named by a schema.",
    )
    payload_near_ratio: float = RATIO(0.8, "From this share of its cap up a payload counts as near it.")
    store_warn_bytes: int = LIMIT(
        50 * 1024 * 1024, "A thread that has written more bytes than this into its store is counted, and logged."
    )
    caps: frozenset[tuple[str, str, int]] = CAPS(
        frozenset(),
        "Payload caps that differ from those known: `dapr.activity_input=2MiB,temporal.payload=4MiB`. Boundaries: "
        f"{', '.join(f'`{boundary}`' for boundary in BOUNDARIES)}; `payload` stands for each that limits single "
        "payloads, where nothing more special is given. `dapr.message` is what `--max-body-size` says: all of Dapr's "
        "caps scale with it but that of `activity_input`. `transport.message` is the largest response that carries "
        "results of this process, such as 10MB behind API Gateway; Lambda, Vercel, Cloud Run functions are detected.",
    )
    context_windows: frozenset[tuple[str, int]] = WINDOWS(
        frozenset(),
        "Context windows of models in tokens, by the names in requests: `my-model=128000,deployment-7=200k`. They "
        "replace those of genai-prices.",
    )
    model_prices: bool = SWITCH(
        False,
        "Context windows and prices of models are read from genai-prices (`agent-otel[prices]`), by another process "
        "when a model is first used. A program that has loaded genai-prices needs no setting.",
    )

    result_ceiling_bytes: int | None = CEILING(
        None,
        "A result above this size is withheld: the model gets the error `result_too_large` with a hint in its place. "
        "`auto` is the limit of the weakest layer on the result's way: the room that is left in the durable runtime's "
        "payload, the framework's own limit, or half of what is left of the model's context window; nothing is "
        "withheld where no limit is known.",
    )
    mcp_result_characters: int | None = LIMIT(
        None,
        "MCP servers in this process announce this length, of at most 500,000 characters, with each tool "
        "(`anthropic/maxResultSizeChars`): Claude Code passes results up to it on to its model whole.",
    )
    claim_check: str = STORE("", "The store that large results go to; the model gets the beginning and a reference.")
    claim_check_bytes: int = LIMIT(
        32 * 1024,
        "A result above this size is stored, and the model gets so much: its beginning, and a line about the rest.",
        needs=_CLAIMS,
    )
    claim_check_max_bytes: int = LIMIT(
        32 * 1024 * 1024, "A result above this size is not stored: it is neither hashed nor serialised.", needs=_CLAIMS
    )
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
        "The model gets no less than this of a result until a durable runtime's payload is near its cap.",
        needs=_CLAIMS,
    )
    claim_check_tool: bool = SWITCH(
        True,
        "Offer the tool `get_tool_result` in each model request that holds a reference, and answer its calls. `off` "
        "where the model is to read on in another way, or not at all; the text that it gets then names no tool.",
        needs=(*_CLAIMS, *_SUMMARIES),
    )
    claim_check_key: str = KEYS(
        "",
        "The secret that references are bound to. To change it, set `new,old`: the first is used, the others are still "
        "accepted. Without one, a reference can be resolved only by the process that made it.",
    )
    claim_check_tenant: str = TEXT(
        "",
        "The tenant that results belong to, where several share a store and a key: it stands in every key and enters "
        "every seal, so that none reads or replaces another's.",
    )
    claim_check_encryption_key: str = ENCRYPTION_KEYS(
        "",
        "What is stored is encrypted with AES-GCM, and nothing else is read. To change it, set `new,old`; `new,plain` "
        "also reads what was stored before there was a key. Needs `agent-otel[encryption]`.",
    )

    max_tool_calls: int | None = COUNT(
        None,
        "Tool calls of one execution. A call above it is not run; the next request asks the model for its answer, and "
        "lets it call no tool.",
    )
    max_conversation_tool_calls: int | None = COUNT(
        None,
        "The same for all executions of a conversation, the framework's thread or session, in one process.",
        variable="AGENT_OTEL_MAX_TOOL_CALLS_PER_CONVERSATION",
    )
    max_repeats: int | None = COUNT(
        None,
        "How often an execution may repeat a call with the same tool and arguments. A further repeat is not run: the "
        "model gets the error `repeated_call`, which names the result that it already has.",
    )
    max_parallel_tool_calls: int | None = COUNT(
        None, "Tool calls of one execution that run at the same time; further ones wait for their turn."
    )
    max_result_bytes: int | None = LIMIT(
        None, "What the results of one execution may come to; once that is reached no further call is run."
    )
    max_result_tokens: int | None = COUNT(
        None, "The same in tokens: characters ÷ 4, or what `agent_otel.remedies.token_counter` was given."
    )

    max_execution_tokens: int | None = COUNT(
        None,
        "Tokens of one execution's model requests and their responses, as providers report them; once they are used, "
        "no further tool call is run, and the next request asks the model for its answer.",
        variable="AGENT_OTEL_EXECUTION_TOKENS",
    )
    tokens_per_minute: int | None = COUNT(
        None,
        "Tokens of all model requests of this process and their responses in a minute. Tool calls and model requests "
        "wait until there are enough, and as long as a provider's `retry-after` demands.",
    )

    answer_retries: bool = SWITCH(
        False,
        "Results of calls within a durable runtime's step are stored; when the runtime retries the step, a call with "
        "the same arguments gets its result from the store and is not made again.",
        needs=_CLAIMS,
    )
    tool_policy: str = TEXT(
        "",
        "The TOML file with the dispatch policy: the tools that each workflow and agent may call, with which "
        "arguments; every other call is denied before its handler runs. `code`: the program gives the policy to "
        "`agent_otel.remedies.use_policy`. See [dispatch policy](dispatch-policy.md).",
    )
    tool_policy_strict: bool = SWITCH(
        False,
        "Refuse what the policy does not act on: calls of `agent_otel.tool` while the package is off, and the import "
        "of a framework that is disabled or in an unknown version.",
        needs=("AGENT_OTEL_TOOL_POLICY",),
    )

    trim_results: bool = SWITCH(
        False, "In requests to models, results of old turns become one line each; the stored history is not touched."
    )
    compact_arguments: bool = SWITCH(
        False,
        "In requests to models, long arguments of calls that have their result become a marker, from the first request "
        "that carries the result on.",
    )
    deduplicate_history: bool = SWITCH(
        False, "In requests to models, messages that stand there twice, by their ids, are sent once."
    )
    keep_turns: int = COUNT(
        2, "The last turns, whose results are always sent whole.", needs=("AGENT_OTEL_TRIM_RESULTS",)
    )
    trim_step_turns: int = COUNT(
        5,
        "Turns whose results become lines together, where the provider caches the messages: a cache ends at the first "
        "changed byte. Where it does not, each turn's results become lines by themselves.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_characters: int = COUNT(
        150, "How much of a result's beginning its line keeps.", needs=("AGENT_OTEL_TRIM_RESULTS",)
    )
    trim_reference_characters: int = COUNT(
        600,
        "How much of the references to other data the line of a result keeps beside its beginning; references of the "
        "claim check do not count.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_references: str = PATTERN(
        "",
        "What else counts as a reference that a line keeps, such as `TICKET-\\d+`, besides ids, URLs, paths and claim "
        "checks.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )

    summarize_above_tokens: int | None = COUNT(
        None,
        "A model request with more input tokens goes out with a summary of its old messages, which the agent's own "
        "model makes, or `agent_otel.remedies.use_summarizer`. The stored history is not touched.",
    )
    summarize_target_tokens: int | None = COUNT(
        None,
        "The tokens of a request with a new summary; by default half of AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS.",
        needs=_SUMMARIES,
    )
    summarize_chunk_tokens: int = COUNT(
        8_000,
        "How much of a transcript the model gets at once; the summaries of several pieces are merged.",
        needs=_SUMMARIES,
    )
    summarize_model: str = TEXT(
        "", "The model that summarises, of the same provider; by default the agent's own.", needs=_SUMMARIES
    )
    summarize_timeout_seconds: float = SECONDS(
        60.0,
        "Seconds that a request waits for its summary; after that it goes out as it is.",
        needs=_SUMMARIES,
        variable="AGENT_OTEL_SUMMARIZE_TIMEOUT",
    )

    def __init__(self, **named: Any) -> None:
        """Take values by name. A field without a value has its default."""
        values = {item.name: item.default for item in fields(self)}
        if named.keys() - values.keys():
            raise TypeError(f"{type(self).__name__} takes no such values")
        for name, value in (values | named).items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Settings) and self._values() == other._values()

    def __hash__(self) -> int:
        """Return the hash of all fields."""
        return hash(self._values())

    def __repr__(self) -> str:
        """Return the class and its fields, without secrets."""
        shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, item.name) for item in fields(self))

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
