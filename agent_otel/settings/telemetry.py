"""The settings of spans, metrics, payloads and content: the first part of the table in `agent_otel.settings`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from agent_otel.settings.kinds import (
    BOUNDARIES,
    CAPS,
    CAPTURE,
    FUNCTION,
    KEY,
    LABELS,
    LIMIT,
    NAMES,
    PORT,
    RATIO,
    SHOWN_KEYS,
    SIZE,
    SOME_NAMES,
    SWITCH,
    TEXT,
    WINDOWS,
    choice,
    setting,
)


@dataclass(frozen=True, init=False, repr=False, eq=False, slots=True)
class TelemetrySettings:
    """The rows that decide what is measured and where the numbers go. Sizes are bytes.

    The methods that all settings need are written here: `dataclass` compiles them anew for sixty fields, for 1.5 ms of
    every import of a framework.
    """

    spans: str = setting(
        "AGENT_OTEL_SPANS",
        choice("auto", "own", "enrich", "off"),
        "auto",
        "Which span carries the numbers: the tool span another instrumentation has open, else one of our own (`auto`); "
        "always our own; only the other's; none, metrics only.",
    )
    metrics: str = setting(
        "AGENT_OTEL_METRICS",
        choice("auto", "prometheus", "otel", "both", "off"),
        "auto",
        "Where metrics go. `auto`: OpenTelemetry when the program has a MeterProvider or the `OTEL_*` variables name "
        "an exporter, else `prometheus_client`'s registry, and that as well when a port is set. An OTLP endpoint alone "
        "leaves them in a registry that the program serves, and where only `OTEL_TRACES_EXPORTER` names an exporter. "
        "The choice is logged once, at INFO.",
    )
    prometheus_port: int | None = setting(
        "AGENT_OTEL_PROMETHEUS_PORT",
        PORT,
        None,
        "Serve `/metrics` on this port, from the import of the first framework on. Of several workers one has the "
        "port; set `PROMETHEUS_MULTIPROC_DIR` as well, and it answers for all.",
    )
    prometheus_host: str = setting(
        "AGENT_OTEL_PROMETHEUS_HOST",
        TEXT,
        "127.0.0.1",
        "The address that port listens on. `0.0.0.0` lets other hosts scrape, as Prometheus does in Kubernetes; "
        "names of tools, agents and workflows can then be read by all that reach the port.",
        needs=("AGENT_OTEL_PROMETHEUS_PORT",),
    )
    sdk: bool = setting(
        "AGENT_OTEL_SDK",
        SWITCH,
        True,
        "Build OpenTelemetry providers from the `OTEL_*` variables when the program has none. `off` when the program "
        "sets its own after its first tool call.",
    )
    disabled_integrations: frozenset[str] = setting(
        "AGENT_OTEL_DISABLED_INTEGRATIONS",
        NAMES,
        frozenset(),
        "Integrations to leave alone, by their names in integrations.md; `langgraph` includes its checkpointers.",
    )
    httpx: bool = setting(
        "AGENT_OTEL_HTTPX",
        SWITCH,
        False,
        "Read the model requests that the program sends itself with `httpx` or `httpx2`, to vLLM, llama.cpp and other "
        "servers: POSTs to `/chat/completions`, `/responses` and `/v1/messages` of any host. Requests of an SDK in "
        "integrations.md are counted once.",
    )
    large_result_bytes: int = setting(
        "AGENT_OTEL_LARGE_RESULT_BYTES", LIMIT, 16000, 'A result above this size counts as large (`threshold="warn"`).'
    )
    log_large_results: bool = setting(
        "AGENT_OTEL_LOG_LARGE_RESULTS",
        SWITCH,
        True,
        "Log a warning `tool.large_result` for a result above AGENT_OTEL_LARGE_RESULT_BYTES, once for each tool and "
        "hour, in a program that has configured `logging`: tool, bytes, budget, hash of the arguments and trace id.",
    )
    hash_key: str = setting(
        "AGENT_OTEL_HASH_KEY",
        KEY,
        "",
        "Key of `tool.args_hash`. Processes with the same key give the same arguments the same hash, by which traces "
        "of two pods can be compared. Without one it comes from the first key of AGENT_OTEL_CLAIM_CHECK_KEY, else each "
        "process draws a random key.",
    )
    probe_bytes: int = setting(
        "AGENT_OTEL_PROBE_BYTES",
        SIZE,
        64,
        "How much of the beginning and of the end of a result without a call id is kept, to find it in the request to "
        "the model; dropped with the execution. 0 keeps nothing.",
    )
    scales_to_zero: bool = setting(
        "AGENT_OTEL_SCALES_TO_ZERO",
        SWITCH,
        False,
        "There may be no process of this job for hours, on purpose: AgentTelemetryGone leaves it out.",
    )
    flush_on_sigterm: bool = setting(
        "AGENT_OTEL_FLUSH_ON_SIGTERM",
        SWITCH,
        False,
        "Flush for at most 2 s on SIGTERM and SIGHUP where the program has no handler of its own (uvicorn re-raises "
        "the signal and would lose the last batch). See [what a process loses when it ends](reliability.md).",
    )
    status_file: str = setting(
        "AGENT_OTEL_STATUS_FILE",
        TEXT,
        "",
        "The process writes what it measures into this file, at first use and every 10 s, and `agent-otel doctor "
        "--pid` reads it. `{pid}` in the path is the id of the process: workers need files of their own.",
    )
    labels: tuple[tuple[str, str | None], ...] = setting(
        "AGENT_OTEL_LABELS",
        LABELS,
        (),
        "Labels of the program's own on all metrics and spans, such as `team=search,tenant`. A label without a value "
        "takes it from `agent_otel.execution(labels={...})`, else from the baggage. At most five labels and 200 sets "
        "of values; in further ones, values that are not fixed are `_other`.",
    )
    capture_content: bool = setting(
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", CAPTURE, False, "Put arguments and results on the span."
    )
    capture_bytes: int = setting(
        "AGENT_OTEL_CAPTURE_BYTES",
        LIMIT,
        8192,
        "The largest copy of arguments, of a result or of a failure's text on a span. A copy of more holds the "
        "beginning, and `agent_otel.content.truncated` names its attribute.",
    )
    capture_tools: frozenset[str] | None = setting(
        "AGENT_OTEL_CAPTURE_TOOLS",
        SOME_NAMES,
        None,
        "The tools whose arguments, results and failures are put on spans, with `*` as in file names. All without it.",
        needs=("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",),
        narrows="capture_content",
    )
    redact: str | None = setting(
        "AGENT_OTEL_REDACT",
        FUNCTION,
        None,
        "A function of the program that is called with the tool, the attribute and the text before a copy is put on a "
        "span, and returns the text to put there, or None for no copy. When it fails, no copy is made. What it calls "
        "itself is not measured.",
        needs=("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",),
        narrows="capture_content",
    )
    payload_warn_ratio: float = setting(
        "AGENT_OTEL_PAYLOAD_WARN_RATIO",
        RATIO,
        0.5,
        "From this share of its cap up a payload is looked into: its largest path, tool and duplicates.",
    )
    show_keys: frozenset[str] | bool = setting(
        "AGENT_OTEL_SHOW_KEYS",
        SHOWN_KEYS,
        False,
        "Show these keys of payloads and results in paths, or all of them (`1`), for agents whose keys are all fields. "
        "By default `*` replaces keys that may be data, such as names of customers: all that are neither made of "
        "common words nor named by a schema.",
    )
    payload_near_ratio: float = setting(
        "AGENT_OTEL_PAYLOAD_NEAR_RATIO", RATIO, 0.8, "From this share of its cap up a payload counts as near it."
    )
    caps: frozenset[tuple[str, str, int]] = setting(
        "AGENT_OTEL_CAPS",
        CAPS,
        frozenset(),
        "Payload caps that differ from those known: `dapr.activity_input=2MiB,temporal.payload=4MiB`. Boundaries: "
        f"{', '.join(f'`{boundary}`' for boundary in BOUNDARIES)}; `payload` stands for each that limits single "
        "payloads, where nothing more special is given. `dapr.message` is what `--max-body-size` says: all of Dapr's "
        "caps scale with it but that of `activity_input`. `transport.message` is the largest response that carries "
        "results of this process, such as 10MB behind API Gateway; Lambda, Vercel, Cloud Run functions are detected.",
    )
    context_windows: frozenset[tuple[str, int]] = setting(
        "AGENT_OTEL_CONTEXT_WINDOWS",
        WINDOWS,
        frozenset(),
        "Context windows of models in tokens, by the names in requests: `my-model=128000,deployment-7=200k`. They "
        "replace those of genai-prices.",
    )
    model_prices: bool = setting(
        "AGENT_OTEL_MODEL_PRICES",
        SWITCH,
        False,
        "Context windows and prices of models are read from genai-prices (`agent-otel[prices]`), by another process "
        "when a model is first used. A program that has loaded genai-prices needs no setting.",
    )

    def __init__(self, *values: Any, **named: Any) -> None:
        """Take values by position or by name; the others have their defaults."""
        rows = fields(self)
        chosen = {
            **{item.name: item.default for item in rows},
            **dict(zip((item.name for item in rows), values, strict=False)),
            **named,
        }
        if len(values) > len(rows) or len(chosen) > len(rows):
            raise TypeError(f"{type(self).__name__} takes no such values")
        for name, value in chosen.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Compare all fields with those of another object of the same class."""
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        """Return the hash of all fields."""
        return hash(self._values())

    def __repr__(self) -> str:
        """Return the class and its fields, without secrets."""
        shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, item.name) for item in fields(self))
