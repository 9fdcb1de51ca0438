"""One table of settings: name, variable, type, default, meaning. ``docs/settings.md`` is generated from it.

A value that cannot be understood is one warning and the default, never an exception.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from agent_otel import _shield, _startup, catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: What a cap is on, as in ``caps.toml``: an activity's or a workflow's payload, or what holds them.
BOUNDARIES = (
    "activity_input",
    "activity_output",
    "workflow_input",
    "workflow_output",
    "state",
    "history",
    "message",
    "memo",
    "event",
)
#: The largest cap that is believed. No machine has that much memory, so no payload could be held against more.
LARGEST_CAP_BYTES = 2**40
_LONGEST_SECONDS = 10 * 365 * 86_400
_UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}


@dataclass(frozen=True, slots=True)
class Kind:
    """How a setting's text becomes a value; ``parse`` raises ValueError for text it cannot use."""

    name: str
    parse: Callable[[str], Any]


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", text)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError("a size such as 16000, 32KiB or 2MiB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def _switch(text: str) -> bool:
    if text.lower() in _startup.ON:
        return True
    if text.lower() in _startup.OFF:
        return False
    raise ValueError("one of 1, true, yes, on, 0, false, no, off")


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:  # noqa: PLR2004 - TCP ports
        raise ValueError("a TCP port from 1 to 65535")
    return int(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in text.split(",") if name.strip())


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio <= 1:
        raise ValueError("a ratio above 0 and at most 1, such as 0.8")
    return ratio


def _count(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,9}", text) is None or not int(text):
        raise ValueError("a whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    if re.fullmatch(r"\d+(\.\d+)?", text) is None or not 0 < float(text) < _LONGEST_SECONDS:
        raise ValueError("a number of seconds above 0, such as 0.25 or 86400")
    return float(text)


def _caps(text: str) -> frozenset[tuple[str, str, int]]:
    caps = filter(None, (_usable_cap(entry.strip()) for entry in text.split(",") if entry.strip()))
    return frozenset({(runtime, boundary): (runtime, boundary, size) for runtime, boundary, size in caps}.values())


def _usable_cap(entry: str) -> tuple[str, str, int] | None:
    """Parse one entry; a bad one is one warning and does not cost the good ones."""
    try:
        return _cap(entry)
    except (ValueError, OverflowError) as error:
        _shield.say_once(f"setting AGENT_OTEL_CAPS {entry}", f"AGENT_OTEL_CAPS: {entry!r} is not {error}; left out")
        return None


def _cap(entry: str) -> tuple[str, str, int]:
    match = re.fullmatch(r"([a-z0-9][a-z0-9-]*)\.(\w+)\s*=\s*(.*)", entry, re.IGNORECASE | re.ASCII)
    if match is None:
        raise ValueError("`runtime.boundary=size`, such as temporal.payload=4MiB")
    runtime, boundary, size = match[1].lower(), match[2].lower(), _size(match[3])
    if boundary not in (*BOUNDARIES, "payload"):
        raise ValueError(f"on a known boundary: payload, {', '.join(BOUNDARIES)}")
    if not 0 < size <= LARGEST_CAP_BYTES:
        raise ValueError("a size from 1 byte to 1024GiB")
    return runtime, boundary, size


def _capture(text: str) -> bool:
    modes = {"no_content": False, "event_only": False, "span_only": True, "span_and_event": True}
    if text.lower() in modes:
        return modes[text.lower()]
    try:
        return _switch(text)
    except ValueError:
        raise ValueError("one of NO_CONTENT, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT, true, false") from None


def _choice(*values: str) -> Kind:
    def parse(text: str) -> str:
        if text.lower() not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return text.lower()

    return Kind(" | ".join(f"`{value}`" for value in values), parse)


_SIZE = Kind("size", _size)
_SWITCH = Kind("switch", _switch)
_RATIO = Kind("ratio", _ratio)
_TEXT = Kind("text", str)
_COUNT = Kind("number", _count)
_SECONDS = Kind("seconds", _seconds)


def _setting(variable: str, kind: Kind, default: object, meaning: str) -> Any:
    return field(default=default, metadata={"variable": variable, "kind": kind, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, read from the environment at first use. Sizes are bytes."""

    spans: str = _setting(
        "AGENT_OTEL_SPANS",
        _choice("auto", "own", "enrich", "off"),
        "auto",
        "Which span carries the numbers: the tool span another instrumentation has open, else one of our own (`auto`); "
        "always our own; only the other's; none, metrics only.",
    )
    metrics: str = _setting(
        "AGENT_OTEL_METRICS",
        _choice("auto", "prometheus", "otel", "both", "off"),
        "auto",
        "Where metrics go. `auto`: OpenTelemetry when the program has a MeterProvider or the `OTEL_*` variables name "
        "an exporter, else `prometheus_client`'s registry, and that as well when a port is set.",
    )
    prometheus_port: int | None = _setting(
        "AGENT_OTEL_PROMETHEUS_PORT", Kind("port", _port), None, "Serve `/metrics` on this port from the first use on."
    )
    prometheus_host: str = _setting(
        "AGENT_OTEL_PROMETHEUS_HOST",
        _TEXT,
        "0.0.0.0",  # noqa: S104 - the scraper is on another host
        "The address that port listens on.",
    )
    sdk: bool = _setting(
        "AGENT_OTEL_SDK",
        _SWITCH,
        True,
        "Build OpenTelemetry providers from the `OTEL_*` variables when the program has none. `off` when the program "
        "sets its own after its first tool call.",
    )
    disabled_integrations: frozenset[str] = _setting(
        "AGENT_OTEL_DISABLED_INTEGRATIONS",
        Kind("names, comma separated", _names),
        frozenset(),
        "Integrations to leave alone.",
    )
    large_result_bytes: int = _setting(
        "AGENT_OTEL_LARGE_RESULT_BYTES",
        _SIZE,
        16000,
        'A result above this size counts as large (`threshold="warn"`).',
    )
    hash_key: str = _setting(
        "AGENT_OTEL_HASH_KEY",
        _TEXT,
        "",
        "Key of `tool.args_hash`. Processes with the same key give the same arguments the same hash, by which traces "
        "of two pods can be compared. Without one each process draws a random key.",
    )
    probe_bytes: int = _setting(
        "AGENT_OTEL_PROBE_BYTES",
        _SIZE,
        64,
        "How much of the beginning and of the end of a result without a call id is kept, to find it in the request to "
        "the model; dropped with the execution. 0 keeps nothing.",
    )
    flush_on_sigterm: bool = _setting(
        "AGENT_OTEL_FLUSH_ON_SIGTERM",
        _SWITCH,
        False,
        "Flush for at most 2 s on SIGTERM where the program has no handler of its own (uvicorn re-raises the signal "
        "and would lose the last batch).",
    )
    capture_content: bool = _setting(
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        Kind("`NO_CONTENT` | `SPAN_ONLY` | `EVENT_ONLY` | `SPAN_AND_EVENT` | switch", _capture),
        False,
        "Put arguments and results on the span, cut at 8 KiB each.",
    )
    payload_warn_ratio: float = _setting(
        "AGENT_OTEL_PAYLOAD_WARN_RATIO",
        _RATIO,
        0.5,
        "From this share of its cap up a payload is looked into: its largest path, tool and duplicates.",
    )
    payload_near_ratio: float = _setting(
        "AGENT_OTEL_PAYLOAD_NEAR_RATIO", _RATIO, 0.8, "From this share of its cap up a payload counts as near it."
    )
    caps: frozenset[tuple[str, str, int]] = _setting(
        "AGENT_OTEL_CAPS",
        Kind("`runtime.boundary=size`, comma separated", _caps),
        frozenset(),
        "Payload caps that differ from those known: `dapr.activity_input=2MiB,temporal.payload=4MiB`. Boundaries: "
        f"{', '.join(f'`{boundary}`' for boundary in BOUNDARIES)}; `payload` stands for each that limits single "
        "payloads, where nothing more special is given. `dapr.message` is what `--max-body-size` says: all of Dapr's "
        "caps scale with it but that of `activity_input`.",
    )
    result_ceiling_bytes: int | None = _setting(
        "AGENT_OTEL_RESULT_CEILING_BYTES",
        _SIZE,
        None,
        "A result above this size is withheld: the model gets the error `result_too_large` with a hint in its place.",
    )
    claim_check: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK",
        Kind("`memory:` | `file:///folder` | `redis://…` | `s3://…` | `gs://…` | `az://…` | `dapr://store`", str),
        "",
        "The store that large results go to; the model gets the beginning and a reference.",
    )
    claim_check_bytes: int = _setting(
        "AGENT_OTEL_CLAIM_CHECK_BYTES",
        _SIZE,
        32 * 1024,
        "A result above this size is stored, and so much of it is what the model gets.",
    )
    claim_check_ttl_seconds: float = _setting(
        "AGENT_OTEL_CLAIM_CHECK_TTL", _SECONDS, 86_400.0, "Seconds for which a stored result is kept, from each write."
    )
    claim_check_budget_seconds: float = _setting(
        "AGENT_OTEL_CLAIM_CHECK_BUDGET", _SECONDS, 0.25, "Seconds that a tool call waits for the store at most."
    )
    claim_check_key: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK_KEY",
        _TEXT,
        "",
        "The secret that references are bound to. Without one, a reference can be resolved only by the process that "
        "made it.",
    )
    claim_check_encryption_key: str = _setting(
        "AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY",
        _TEXT,
        "",
        "32 bytes in base64: what is stored is encrypted with AES-GCM. Needs `agent-otel[encryption]`.",
    )

    max_tool_calls: int | None = _setting(
        "AGENT_OTEL_MAX_TOOL_CALLS", _COUNT, None, "Tool calls of one execution; what is above is not run."
    )
    max_parallel_tool_calls: int | None = _setting(
        "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS", _COUNT, None, "Tool calls of one execution that run at the same time."
    )
    max_result_bytes: int | None = _setting(
        "AGENT_OTEL_MAX_RESULT_BYTES",
        _SIZE,
        None,
        "What the results of one execution may come to; once that is reached no further call is run.",
    )
    max_result_tokens: int | None = _setting(
        "AGENT_OTEL_MAX_RESULT_TOKENS",
        _COUNT,
        None,
        "The same in tokens: characters ÷ 4, or what `agent_otel.token_counter` was given.",
    )

    trim_results: bool = _setting(
        "AGENT_OTEL_TRIM_RESULTS",
        _SWITCH,
        False,
        "In requests to models, results of old turns become one line each; the stored history is not touched.",
    )
    compact_arguments: bool = _setting(
        "AGENT_OTEL_COMPACT_ARGUMENTS",
        _SWITCH,
        False,
        "In requests to models, long arguments of old calls that have their result become a marker.",
    )
    deduplicate_history: bool = _setting(
        "AGENT_OTEL_DEDUPLICATE_HISTORY",
        _SWITCH,
        False,
        "In requests to models, messages that stand there twice, by their ids, are sent once.",
    )
    keep_turns: int = _setting(
        "AGENT_OTEL_KEEP_TURNS", _COUNT, 2, "The last turns, whose results and arguments are always sent whole."
    )

    @property
    def rewrites(self) -> bool:
        """Whether requests to models are to be rewritten."""
        return self.trim_results or self.compact_arguments or self.deduplicate_history

    @property
    def limits(self) -> tuple[str, ...]:
        """The limits that an execution has, as the catalogue names them; none by default."""
        maxima = {
            catalogue.LIMIT_TOOL_CALLS: self.max_tool_calls,
            catalogue.LIMIT_PARALLEL: self.max_parallel_tool_calls,
            catalogue.LIMIT_BYTES: self.max_result_bytes,
            catalogue.LIMIT_TOKENS: self.max_result_tokens,
        }
        return tuple(limit for limit, maximum in maxima.items() if maximum is not None)

    @property
    def remedies(self) -> tuple[str, ...]:
        """What may be put in place of a result: reasons of the catalogue, none by default."""
        ceiling = (catalogue.CEILING,) if self.result_ceiling_bytes is not None else ()
        return (*ceiling, catalogue.CLAIM_CHECK) if self.claim_check else ceiling


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from a mapping; each bad value is one warning and the default."""
    values: dict[str, Any] = {}
    for item in fields(Settings):
        text = environ.get(item.metadata["variable"], "").strip()
        if not text:
            continue
        try:
            values[item.name] = item.metadata["kind"].parse(text)
        except (ValueError, OverflowError) as error:
            _shield.say_once(
                f"setting {item.metadata['variable']}",
                f"{item.metadata['variable']}={text!r} is not {error}; using {item.default!r}",
            )
    return Settings(**values)


@functools.lru_cache(maxsize=1)
def current() -> Settings:
    """Return the settings of this process, read from ``os.environ`` once, at first use."""
    return load(os.environ)
