"""The table of settings: name, variable, type, default, meaning. ``docs/settings.md`` is generated from it.

For an invalid value, one warning is logged and the default applies; no exception is raised.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from agent_otel import semconv
from agent_otel._internal import errors, setting_checks
from agent_otel._internal.setting_kinds import (
    BOUNDARIES,
    CAPS,
    CAPTURE,
    CEILING,
    COUNT,
    ENCRYPTION_KEYS,
    KEY,
    KEYS,
    LIMIT,
    NAMES,
    PATTERN,
    PORT,
    RATIO,
    SECONDS,
    SIZE,
    STORE,
    SWITCH,
    TEXT,
    Kind,
    choice,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


#: The variable of the switch, which `agent_otel._bootstrap.startup` reads at interpreter start.
_SWITCH = "AGENT_OTEL"
_CLAIMS = ("AGENT_OTEL_CLAIM_CHECK",)


def _setting(variable: str, kind: Kind, default: object, meaning: str, *, needs: tuple[str, ...] = ()) -> Any:
    """Return a row of the table; the setting has no effect unless one of the variables in ``needs`` is set."""
    metadata = {"variable": variable, "kind": kind, "meaning": meaning, "needs": needs}
    return field(default=default, repr=not kind.is_secret, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, read from the environment at first use. Sizes are bytes."""

    spans: str = _setting(
        "AGENT_OTEL_SPANS",
        choice("auto", "own", "enrich", "off"),
        "auto",
        "Which span carries the numbers: the tool span another instrumentation has open, else one of our own (`auto`); "
        "always our own; only the other's; none, metrics only.",
    )
    metrics: str = _setting(
        "AGENT_OTEL_METRICS",
        choice("auto", "prometheus", "otel", "both", "off"),
        "auto",
        "Where metrics go. `auto`: OpenTelemetry when the program has a MeterProvider or the `OTEL_*` variables name "
        "an exporter, else `prometheus_client`'s registry, and that as well when a port is set. An OTLP endpoint alone "
        "leaves them in a registry that the program serves, and where only `OTEL_TRACES_EXPORTER` names an exporter. "
        "The choice is logged once, at INFO.",
    )
    prometheus_port: int | None = _setting(
        "AGENT_OTEL_PROMETHEUS_PORT",
        PORT,
        None,
        "Serve `/metrics` on this port, from the import of the first framework on. Of several workers one has the "
        "port; set `PROMETHEUS_MULTIPROC_DIR` as well, and it answers for all.",
    )
    prometheus_host: str = _setting(
        "AGENT_OTEL_PROMETHEUS_HOST",
        TEXT,
        "127.0.0.1",
        "The address that port listens on. `0.0.0.0` lets other hosts scrape, as Prometheus does in Kubernetes; "
        "names of tools, agents and workflows can then be read by all that reach the port.",
        needs=("AGENT_OTEL_PROMETHEUS_PORT",),
    )
    sdk: bool = _setting(
        "AGENT_OTEL_SDK",
        SWITCH,
        True,
        "Build OpenTelemetry providers from the `OTEL_*` variables when the program has none. `off` when the program "
        "sets its own after its first tool call.",
    )
    disabled_integrations: frozenset[str] = _setting(
        "AGENT_OTEL_DISABLED_INTEGRATIONS",
        NAMES,
        frozenset(),
        "Integrations to leave alone, by their names in integrations.md; `langgraph` includes its checkpointers.",
    )
    large_result_bytes: int = _setting(
        "AGENT_OTEL_LARGE_RESULT_BYTES", LIMIT, 16000, 'A result above this size counts as large (`threshold="warn"`).'
    )
    log_large_results: bool = _setting(
        "AGENT_OTEL_LOG_LARGE_RESULTS",
        SWITCH,
        True,
        "Log a warning `tool.large_result` for a result above AGENT_OTEL_LARGE_RESULT_BYTES, once for each tool and "
        "hour, in a program that has configured `logging`: tool, bytes, budget, hash of the arguments and trace id.",
    )
    hash_key: str = _setting(
        "AGENT_OTEL_HASH_KEY",
        KEY,
        "",
        "Key of `tool.args_hash`. Processes with the same key give the same arguments the same hash, by which traces "
        "of two pods can be compared. Without one each process draws a random key.",
    )
    probe_bytes: int = _setting(
        "AGENT_OTEL_PROBE_BYTES",
        SIZE,
        64,
        "How much of the beginning and of the end of a result without a call id is kept, to find it in the request to "
        "the model; dropped with the execution. 0 keeps nothing.",
    )
    scales_to_zero: bool = _setting(
        "AGENT_OTEL_SCALES_TO_ZERO",
        SWITCH,
        False,
        "There may be no process of this job for hours, on purpose: AgentTelemetryGone leaves it out.",
    )
    flush_on_sigterm: bool = _setting(
        "AGENT_OTEL_FLUSH_ON_SIGTERM",
        SWITCH,
        False,
        "Flush for at most 2 s on SIGTERM and SIGHUP where the program has no handler of its own (uvicorn re-raises "
        "the signal and would lose the last batch). See [what a process loses when it ends](reliability.md).",
    )
    capture_content: bool = _setting(
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", CAPTURE, False, "Put arguments and results on the span."
    )
    capture_bytes: int = _setting(
        "AGENT_OTEL_CAPTURE_BYTES",
        LIMIT,
        8192,
        "The largest copy of arguments, of a result or of a failure's text on a span. A copy of more holds the "
        "beginning, and `agent_otel.content.truncated` names its attribute.",
    )
    payload_warn_ratio: float = _setting(
        "AGENT_OTEL_PAYLOAD_WARN_RATIO",
        RATIO,
        0.5,
        "From this share of its cap up a payload is looked into: its largest path, tool and duplicates.",
    )
    show_keys: bool = _setting(
        "AGENT_OTEL_SHOW_KEYS",
        SWITCH,
        False,
        "Show all keys of payloads and results in paths, for agents whose keys are all fields. By default `*` stands "
        "for keys that may be data, such as names of customers: all that are neither made of common words nor seen in "
        "several executions.",
    )
    payload_near_ratio: float = _setting(
        "AGENT_OTEL_PAYLOAD_NEAR_RATIO", RATIO, 0.8, "From this share of its cap up a payload counts as near it."
    )
    caps: frozenset[tuple[str, str, int]] = _setting(
        "AGENT_OTEL_CAPS",
        CAPS,
        frozenset(),
        "Payload caps that differ from those known: `dapr.activity_input=2MiB,temporal.payload=4MiB`. Boundaries: "
        f"{', '.join(f'`{boundary}`' for boundary in BOUNDARIES)}; `payload` stands for each that limits single "
        "payloads, where nothing more special is given. `dapr.message` is what `--max-body-size` says: all of Dapr's "
        "caps scale with it but that of `activity_input`. `transport.message` is the largest response that carries "
        "results of this process, such as 10MB behind API Gateway; Lambda, Vercel, Cloud Run functions are detected.",
    )
    result_ceiling_bytes: int | None = _setting(
        "AGENT_OTEL_RESULT_CEILING_BYTES",
        CEILING,
        None,
        "A result above this size is withheld: the model gets the error `result_too_large` with a hint in its place. "
        "`auto` is the limit of the weakest layer on the result's way: the room that is left in the durable runtime's "
        "payload, or the framework's own limit; nothing is withheld where no limit is known.",
    )
    claim_check: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK",
        STORE,
        "",
        "The store that large results go to; the model gets the beginning and a reference.",
    )
    claim_check_bytes: int = _setting(
        "AGENT_OTEL_CLAIM_CHECK_BYTES",
        LIMIT,
        32 * 1024,
        "A result above this size is stored, and the model gets so much: its beginning, and a line about the rest.",
        needs=_CLAIMS,
    )
    claim_check_max_bytes: int = _setting(
        "AGENT_OTEL_CLAIM_CHECK_MAX_BYTES",
        LIMIT,
        32 * 1024 * 1024,
        "A result above this size is not stored: it is neither hashed nor serialised.",
        needs=_CLAIMS,
    )
    claim_check_ttl_seconds: float = _setting(
        "AGENT_OTEL_CLAIM_CHECK_TTL", SECONDS, 86_400.0, "Seconds that a result is kept after a write.", needs=_CLAIMS
    )
    claim_check_budget_seconds: float = _setting(
        "AGENT_OTEL_CLAIM_CHECK_BUDGET", SECONDS, 0.25, "Seconds that a tool call waits for the store.", needs=_CLAIMS
    )
    claim_check_floor_bytes: int = _setting(
        "AGENT_OTEL_CLAIM_CHECK_FLOOR_BYTES",
        LIMIT,
        8 * 1024,
        "While a durable runtime's payload has room for 10 more turns, the model gets no less than this of a result.",
        needs=_CLAIMS,
    )
    claim_check_tool: bool = _setting(
        "AGENT_OTEL_CLAIM_CHECK_TOOL",
        SWITCH,
        True,
        "Offer the tool `get_tool_result` in each model request that holds a reference, and answer its calls. `off` "
        "where the model is to read on in another way, or not at all; the text that it gets then names no tool.",
        needs=_CLAIMS,
    )
    claim_check_key: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK_KEY",
        KEYS,
        "",
        "The secret that references are bound to. To change it, set `new,old`: the first is used, the others are still "
        "accepted. Without one, a reference can be resolved only by the process that made it.",
    )
    claim_check_tenant: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK_TENANT",
        TEXT,
        "",
        "The tenant that results belong to, where several share a store and a key: it stands in every key and enters "
        "every seal, so that none reads or replaces another's.",
    )
    claim_check_encryption_key: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY",
        ENCRYPTION_KEYS,
        "",
        "What is stored is encrypted with AES-GCM, and nothing else is read. To change it, set `new,old`; `new,plain` "
        "also reads what was stored before there was a key. Needs `agent-otel[encryption]`.",
    )

    max_tool_calls: int | None = _setting(
        "AGENT_OTEL_MAX_TOOL_CALLS",
        COUNT,
        None,
        "Tool calls of one execution. A call above it is not run; the next request asks the model for its answer, and "
        "lets it call no tool.",
    )
    max_conversation_tool_calls: int | None = _setting(
        "AGENT_OTEL_MAX_TOOL_CALLS_PER_CONVERSATION",
        COUNT,
        None,
        "The same for all executions of a conversation, the framework's thread or session, in one process.",
    )
    max_parallel_tool_calls: int | None = _setting(
        "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS",
        COUNT,
        None,
        "Tool calls of one execution that run at the same time; further ones wait for their turn.",
    )
    max_result_bytes: int | None = _setting(
        "AGENT_OTEL_MAX_RESULT_BYTES",
        LIMIT,
        None,
        "What the results of one execution may come to; once that is reached no further call is run.",
    )
    max_result_tokens: int | None = _setting(
        "AGENT_OTEL_MAX_RESULT_TOKENS",
        COUNT,
        None,
        "The same in tokens: characters ÷ 4, or what `agent_otel.remedies.token_counter` was given.",
    )

    answer_retries: bool = _setting(
        "AGENT_OTEL_ANSWER_RETRIES",
        SWITCH,
        False,
        "Results of calls within a durable runtime's step are stored; when the runtime retries the step, a call with "
        "the same arguments gets its result from the store and is not made again.",
        needs=_CLAIMS,
    )
    tool_policy: str = _setting(
        "AGENT_OTEL_TOOL_POLICY",
        TEXT,
        "",
        "The TOML file with the dispatch policy: the tools that each workflow and agent may call, with which "
        "arguments; every other call is denied before its handler runs. `code`: the program gives the policy to "
        "`agent_otel.remedies.use_policy`. See [dispatch policy](dispatch-policy.md).",
    )

    trim_results: bool = _setting(
        "AGENT_OTEL_TRIM_RESULTS",
        SWITCH,
        False,
        "In requests to models, results of old turns become one line each; the stored history is not touched.",
    )
    compact_arguments: bool = _setting(
        "AGENT_OTEL_COMPACT_ARGUMENTS",
        SWITCH,
        False,
        "In requests to models, long arguments of calls that have their result become a marker, from the first request "
        "that carries the result on.",
    )
    deduplicate_history: bool = _setting(
        "AGENT_OTEL_DEDUPLICATE_HISTORY",
        SWITCH,
        False,
        "In requests to models, messages that stand there twice, by their ids, are sent once.",
    )
    keep_turns: int = _setting(
        "AGENT_OTEL_KEEP_TURNS",
        COUNT,
        2,
        "The last turns, whose results are always sent whole.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_step_turns: int = _setting(
        "AGENT_OTEL_TRIM_STEP_TURNS",
        COUNT,
        5,
        "Turns whose results become lines together, where the provider caches the messages: a cache ends at the first "
        "changed byte. Where it does not, each turn's results become lines by themselves.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_characters: int = _setting(
        "AGENT_OTEL_TRIM_CHARACTERS",
        COUNT,
        150,
        "How much of a result's beginning its line keeps.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )
    trim_references: str = _setting(
        "AGENT_OTEL_TRIM_REFERENCES",
        PATTERN,
        "",
        "What else counts as a reference that a line keeps, such as `TICKET-\\d+`, besides ids, URLs, paths and claim "
        "checks.",
        needs=("AGENT_OTEL_TRIM_RESULTS",),
    )

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
        }
        return {limit: maximum for limit, maximum in maxima.items() if maximum is not None}

    @property
    def remedies(self) -> tuple[str, ...]:
        """Return the remedies that may replace a result, as truncation reasons of ``semconv``; none by default."""
        ceiling = (semconv.CEILING,) if self.result_ceiling_bytes is not None else ()
        return (*ceiling, semconv.CLAIM_CHECK) if self.claim_check else ceiling


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from a mapping; log one warning for each bad value, unknown name and conflict."""
    values: dict[str, Any] = {}
    rows = {item.metadata["variable"]: item for item in fields(Settings)}
    for variable, item in rows.items():
        text = environ.get(variable, "").strip()
        if not text:
            continue
        try:
            values[variable] = item.metadata["kind"].parse(text)
        except ValueError as error:
            default = "it stays unset" if item.default in (None, "", frozenset()) else f"using {item.default!r}"
            shown = variable if item.metadata["kind"].is_secret else f"{variable}={text!r}"
            errors.warn_once(f"setting {variable}", f"{shown} is not {error}; {default}")
    setting_checks.names(environ, {_SWITCH, *rows})
    setting_checks.needs(values, {variable: item.metadata["needs"] for variable, item in rows.items()})
    by_field = {rows[variable].name: value for variable, value in values.items()}
    chosen = Settings(**by_field)
    return replace(
        chosen,
        **setting_checks.corrections({item.name: getattr(chosen, item.name) for item in fields(chosen)}, by_field),
    )


@functools.lru_cache(maxsize=1)
def current() -> Settings:
    """Return the settings of this process, read from ``os.environ`` once, at first use."""
    return load(os.environ)
