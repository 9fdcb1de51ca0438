"""Rows of the tables of settings, and parsers of their texts: sizes, counts, ratios, switches, caps."""

from __future__ import annotations

import re
from dataclasses import Field, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from agent_otel import semconv
from agent_otel._internal import env, errors
from agent_otel._internal.lazy import pattern
from agent_otel.semconv.types import prometheus_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_T = TypeVar("_T")
#: Boundaries of ``caps.toml``: the payloads of an activity or a workflow, and their containers.
BOUNDARIES: Final = (
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
#: The largest size that a setting accepts; no payload can be larger, because no machine has that much memory.
LARGEST_BYTES: Final = 2**40
#: The ceiling of `auto`, which follows the budget of each result.
AUTO: Final = 0
#: A shorter key can be guessed from a single reference or hash.
_LEAST_KEY_BYTES: Final = 16
#: Labels of the metrics, attributes of the spans, and what Prometheus and OpenTelemetry's exporter for it add.
_TAKEN: Final = frozenset(
    (
        *("le", "job", "instance", "otel_scope_name", "otel_scope_version"),
        *(label for metric in semconv.METRICS.values() for label in metric.prometheus_labels),
        *map(prometheus_label, semconv.ATTRIBUTES),
    )
)
_MOST_LABELS: Final = 5  # each multiplies the series
_LONGEST_SECONDS: Final = 10 * 365 * 86_400 - 1
_SIZE: Final = pattern(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", re.ASCII)
# Kubernetes' units: k is 1000, Ki is 1024. A trailing B and upper or lower case make no difference.
_UNITS: Final = {"": 1, "b": 1} | {
    f"{prefix}{infix}{suffix}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for infix, base in (("", 1000), ("i", 1024))
    for suffix in ("", "b")
}


class Kind(NamedTuple):
    """A kind of setting; ``parse`` converts its text and raises ValueError for an invalid one."""

    name: str
    parse: Callable[[str], Any]
    is_secret: bool = False

    def __call__(
        self,
        default: object,
        *,
        needs: tuple[str, ...] = (),
        narrows: str | None = None,
        variable: str | None = None,
    ) -> Any:
        """Return a row of the table; the setting has no effect unless one of the variables in ``needs`` is set.

        ``narrows`` is a field that this setting restricts: a text that is not understood switches that field off.
        """
        metadata = {"variable": variable, "kind": self, "needs": needs, "narrows": narrows}
        return field(default=default, repr=not self.is_secret, metadata=metadata)


def variable_of(item: Field[Any]) -> str:
    """Return the variable of a row: ``AGENT_OTEL_`` and the name of its field, unless the row names another one."""
    return item.metadata["variable"] or f"AGENT_OTEL_{item.name.upper()}"


class Secret(str):
    """A text that ``repr`` hides, in the settings' own repr and in the frames' variables of a crash report."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _parts(text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def keys_of(text: str) -> list[Secret]:
    """Return the keys of a comma-separated list; the first one is used for writing."""
    return list(map(Secret, _parts(text)))


def _key(text: str) -> Secret:
    if len(text.encode("utf-8", "surrogateescape")) < _LEAST_KEY_BYTES:
        raise ValueError(f"a key of at least {_LEAST_KEY_BYTES} bytes, as `openssl rand -base64 32` makes one")
    return Secret(text)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    size = float(match[1]) * _UNITS.get(match[2].lower(), 0) if match else -1.0
    if match is None or match[2].lower() not in _UNITS or size > LARGEST_BYTES:
        raise ValueError("a size of at most 1024GiB, such as 16000, 64k, 64Ki or 2MiB")
    return int(size)


def _limit(text: str) -> int:
    size = _size(text)
    if not size:
        raise ValueError("a size above 0, such as 16000, 64Ki or 2MiB")
    return size


def _switch(text: str) -> bool:
    if text.lower() in env.ON:
        return True
    if text.lower() in env.OFF:
        return False
    raise ValueError("one of 1, true, yes, on, 0, false, no, off")


def _shown_keys(text: str) -> frozenset[str] | bool:
    try:
        return _switch(text)
    except errors.ours(ValueError):
        return frozenset(_parts(text))


def _names(text: str) -> frozenset[str]:
    return frozenset(_parts(text.lower()))


def _some_names(text: str) -> frozenset[str]:
    names = _names(text)
    if not names:
        raise ValueError("one name or more")
    return names


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except errors.ours(re.error, OverflowError, RecursionError, Warning) as error:  # warnings may be errors
        raise ValueError(f"a regular expression: {error}") from None
    return text


def _number(convert: type[int | float], pattern: str, most: float, wanted: str) -> Callable[[str], Any]:
    """Return the parser of a number above 0."""

    def parse(text: str) -> int | float:
        number = errors.attempt(convert, text, default=0) if re.fullmatch(pattern, text) else 0
        if not 0 < number <= most:
            raise ValueError(wanted)
        return number

    return parse


def _entries(variable: str, text: str, parse: Callable[[str], _T]) -> Iterator[_T]:
    """Yield the entries of a comma-separated list; warn of a bad one; the rest still applies."""
    for entry in _parts(text):
        try:
            yield parse(entry)
        except errors.ours(ValueError) as error:  # noqa: PERF203 - in the loop: the next entry may be good
            errors.warn_once(f"setting {variable} {entry}", f"{variable}: {entry!r} is not {error}; left out")


def _caps(text: str) -> frozenset[tuple[str, str, int]]:
    caps = _entries("AGENT_OTEL_CAPS", text, _cap)
    return frozenset({(runtime, boundary): (runtime, boundary, size) for runtime, boundary, size in caps}.values())


def _cap(entry: str) -> tuple[str, str, int]:
    match = re.fullmatch(r"([a-z0-9][a-z0-9-]*)\.(\w+)\s*=\s*(.*)", entry, re.IGNORECASE | re.ASCII)
    if match is None:
        raise ValueError("`runtime.boundary=size`, such as temporal.payload=4MiB")
    runtime, boundary, size = match[1].lower(), match[2].lower(), _limit(match[3])
    if boundary not in (*BOUNDARIES, "payload"):
        raise ValueError(f"on a known boundary: payload, {', '.join(BOUNDARIES)}")
    return runtime, boundary, size


def _labels(text: str) -> tuple[tuple[str, str | None], ...]:
    labels = [part.partition("=") for part in _parts(text)]
    for name, _, _ in labels:
        if re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_.]*", name) is None:
            raise ValueError("names of letters, digits, _ and ., each with =value where it is fixed")
        if prometheus_label(name) in _TAKEN:
            raise ValueError(f"other labels than {name!r}, which the metrics or spans have already")
    if len({prometheus_label(name) for name, _, _ in labels}) < len(labels):
        raise ValueError("each label once; in Prometheus, a dot in a name is an underscore")
    if len(labels) > _MOST_LABELS:
        raise ValueError(f"at most {_MOST_LABELS} labels")
    return tuple((name, value if equals else None) for name, equals, value in labels)


def _window(entry: str) -> tuple[str, int]:
    model, _, tokens = (word.strip() for word in entry.rpartition("="))
    window = errors.attempt(_limit, tokens)
    if not model or not window:
        raise ValueError("`model=tokens`, such as my-model=128000 or my-model=128k")
    return model, window


def _function(text: str) -> str:
    module, colon, path = text.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise ValueError("module:function, such as myapp.privacy:redact")
    return text


def _capture(text: str) -> bool:
    modes = {"no_content": False, "event_only": False, "span_only": True, "span_and_event": True}
    if text.lower() in modes:
        return modes[text.lower()]
    try:
        return _switch(text)
    except errors.ours(ValueError):
        raise ValueError("one of NO_CONTENT, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT, true, false") from None


def choice(*values: str) -> Kind:
    """Return the kind of a setting that accepts one of these words; case is ignored."""

    def parse(text: str) -> str:
        if text.lower() not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return text.lower()

    return Kind(" | ".join(f"`{value}`" for value in values), parse)


SIZE: Final = Kind("size", _size)
LIMIT: Final = Kind("size above 0", _limit)
SWITCH: Final = Kind("switch", _switch)
SHOWN_KEYS: Final = Kind("switch, or keys, comma separated", _shown_keys)
RATIO: Final = Kind("ratio", _number(float, ".*", 1, "a ratio above 0 and at most 1, such as 0.8"))
TEXT: Final = Kind("text", str)
KEY: Final = Kind("key of 16 bytes or more", _key, is_secret=True)
#: One key that is too short rejects the list, so that all processes of a deployment use the same first key.
KEYS: Final = Kind(
    "keys of 16 bytes or more, comma separated", lambda text: Secret(",".join(map(_key, keys_of(text)))), is_secret=True
)
ENCRYPTION_KEYS: Final = Kind("keys of 32 bytes in base64, comma separated", Secret, is_secret=True)
STORE: Final = Kind(
    "`memory:` | `file:///folder` | `redis://…` | `s3://…` | `gs://…` | `az://…` | `dapr://store`",
    Secret,  # the URL may have a password in it
    is_secret=True,
)
CEILING: Final = Kind("size above 0, or `auto`", lambda text: AUTO if text.lower() == "auto" else _limit(text))
COUNT: Final = Kind("number", _number(int, "[0-9]{1,9}", LARGEST_BYTES, "a whole number above 0"))
SECONDS: Final = Kind(
    "seconds", _number(float, r"\d+(\.\d+)?", _LONGEST_SECONDS, "a number of seconds above 0, such as 0.25 or 86400")
)
PORT: Final = Kind("port", _number(int, r"\d+", 65535, "a TCP port from 1 to 65535"))
PATTERN: Final = Kind("regular expression", _pattern)
NAMES: Final = Kind("names, comma separated", _names)
SOME_NAMES: Final = Kind("names, comma separated", _some_names)
CAPTURE: Final = Kind("`NO_CONTENT` | `SPAN_ONLY` | `EVENT_ONLY` | `SPAN_AND_EVENT` | switch", _capture)
FUNCTION: Final = Kind("`module:function`", _function)
WINDOWS: Final = Kind(
    "`model=tokens`, comma separated",
    lambda text: frozenset(dict(_entries("AGENT_OTEL_CONTEXT_WINDOWS", text, _window)).items()),
)
LABELS: Final = Kind("`name` or `name=value`, comma separated", _labels)
CAPS: Final = Kind("`runtime.boundary=size`, comma separated", _caps)


def shown(value: object) -> str:
    """Return the value of a setting as text for a person; the caller leaves out secrets."""
    if value is None or value in ("", frozenset()):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if not isinstance(value, frozenset):
        return errors.masked(str(value))
    # The items of caps are runtime, boundary and bytes.
    return ", ".join(sorted("{}.{}={}".format(*item) if isinstance(item, tuple) else str(item) for item in value))
