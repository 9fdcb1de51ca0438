"""Findings about an interpreter, from the facts of the probe: what is wrong, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ERROR, WARNING, OK = "error", "warning", "ok"
_ORDER = (ERROR, WARNING, OK)
_EXPLICIT = "begin the program with `import agent_otel`"
#: Words in messages of exporters -> what they mean.
_CAUSES = {
    "404": "nothing is served at that path: OTEL_EXPORTER_OTLP_ENDPOINT is the base address, without /v1/traces",
    "401": "the collector wants credentials: OTEL_EXPORTER_OTLP_HEADERS",
    "403": "the collector refuses the credentials in OTEL_EXPORTER_OTLP_HEADERS",
    "refused": "nothing listens there",
    "UNAVAILABLE": "nothing there speaks gRPC; HTTP needs OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    "timed out": "there is no answer within the timeout",
}


@dataclass(frozen=True)
class Finding:
    """A thing that is right or wrong; ``hint`` is what to do about it."""

    level: str
    topic: str
    text: str
    hint: str = ""


def findings(facts: Mapping[str, Any]) -> list[Finding]:
    """Return all findings, the worst first, and among equals in the order of their effect."""
    parts = (_activation, _settings, _integrations, _remedies, _exports, _multiprocess, _failed)
    return in_order([finding for part in parts for finding in part(facts)])


def in_order(found: list[Finding]) -> list[Finding]:
    """Return findings, the worst first, and among equals as they were."""
    return sorted(found, key=lambda finding: _ORDER.index(finding.level))


def _activation(facts: Mapping[str, Any]) -> Iterator[Finding]:
    switch, interpreter = facts["switch"], facts["interpreter"]
    value = (switch["value"] or "").strip().lower()
    if switch["active"]:
        yield Finding(OK, "switch", f"on, agent_otel {interpreter['package']} in Python {interpreter['version']}")
        files = interpreter["startup_files"][:1] or ["the import of agent_otel"]
        text = f"AGENT_OTEL={switch['value']}; {files[0]} starts it in {interpreter['executable']}"
        yield Finding(OK, "start-up", text)
    elif not value:
        yield Finding(ERROR, "switch", "agent_otel is off: AGENT_OTEL is not set", "set AGENT_OTEL=1")
    elif value in switch["off"]:
        yield Finding(ERROR, "switch", f"agent_otel is off: AGENT_OTEL={switch['value']}", "set AGENT_OTEL=1")
    elif value not in switch["on"]:
        text = f"agent_otel is off: AGENT_OTEL={switch['value']} is none of {', '.join(switch['on'])}"
        yield Finding(ERROR, "switch", text, "set AGENT_OTEL=1")
    else:
        yield _not_started(interpreter)


def _not_started(interpreter: Mapping[str, Any]) -> Finding:
    """Return why the start-up file did not run, although the switch is on."""
    if interpreter["no_site"]:
        return Finding(ERROR, "start-up", "start-up files do not run: Python was started with -S", _EXPLICIT)
    if not interpreter["startup_files"]:
        text = (
            f"the start-up file is not installed: {interpreter['folder']} is no folder for start-up files, as after "
            "`pip install --target` or on PYTHONPATH"
        )
        return Finding(ERROR, "start-up", text, _EXPLICIT)
    text = f"{interpreter['startup_files'][0]} has not switched agent_otel on; standard error says why"
    return Finding(ERROR, "start-up", text, _EXPLICIT)


def _settings(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for message in _own(facts, "WARNING"):
        if message.startswith("AGENT") or " is no setting" in message:
            yield Finding(ERROR, "settings", message)
    for row in _rows(facts, "settings"):
        yield Finding(OK, "settings", f"{row['variable']}={row['value']}, from the environment")


def _integrations(facts: Mapping[str, Any]) -> Iterator[Finding]:
    rows = _rows(facts, "integrations")
    if not rows:
        yield Finding(
            WARNING, "integrations", "no supported framework is installed", "docs/integrations.md has the list"
        )
    for row in rows:
        name = f"{row['distribution']} {row['version']}"
        if row["disabled"]:
            yield Finding(WARNING, "integrations", f"{name} is disabled by AGENT_OTEL_DISABLED_INTEGRATIONS")
        elif "unmatched" in row["wrapped"]:
            text = next((line for line in _own(facts, "WARNING") if line.startswith(row["distribution"])), name)
            yield Finding(ERROR, "integrations", text)
        elif row["wrapped"]:
            yield Finding(OK, "integrations", f"{name}: {', '.join(row['wrapped'])}")
        elif facts["switch"]["active"]:
            yield Finding(WARNING, "integrations", f"{name} is installed, and nothing of it could be imported")


def _remedies(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for row in _rows(facts, "remedies"):
        if row["acts"]:
            yield Finding(OK, "remedies", f"{row['variables']}: on {', '.join(row['acts'])}")
        if row["without_effect"]:
            text = f"{row['variables']}: without effect on {', '.join(row['without_effect'])}"
            yield Finding(WARNING, "remedies", text, "docs/remedies/where-they-act.md has the list")


def _multiprocess(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the folder of prometheus_client's multiprocess mode."""
    mode = facts["multiprocess"]
    if facts["switch"]["active"] and mode.get("folder") and not mode["can_write"]:
        text = f"PROMETHEUS_MULTIPROC_DIR={mode['folder']} is no folder that this process can write to"
        yield Finding(ERROR, "export", text, "make it, empty, before the first worker starts")


def _exports(facts: Mapping[str, Any]) -> Iterator[Finding]:
    exporters = _rows(facts, "exporters")
    for row in exporters:
        what = f"{row['signal']} to {row['target'] or row['name']}"
        if row["outcome"] in ("delivered", "scraped"):
            yield Finding(OK, "export", f"{what}: {row['outcome']}")
        elif row["outcome"] == "no exporter":
            text = f"{what}: no exporter of the name {row['name']!r} can be made"
            hint = f"install the package that has it, or name another in OTEL_{row['signal'].upper()}_EXPORTER"
            yield Finding(ERROR, "export", text, hint)
        else:
            reply = next(iter(row["messages"]), "no message")
            hint = next((cause for word, cause in _CAUSES.items() if word in reply), "")
            yield Finding(ERROR, "export", f"{what} are not taken: {reply}", hint)
    for message in _own(facts, "WARNING"):
        if message.startswith(("agent_otel cannot serve metrics", "AGENT_OTEL_METRICS=otel")):
            yield Finding(ERROR, "export", message)
    for message in _own(facts, "INFO"):
        if " Metrics " in message:
            yield Finding(OK, "export", f"Metrics {message.partition(' Metrics ')[2]}")
    if facts["switch"]["active"] and not any(row["signal"] == "traces" for row in exporters):
        text = "spans are exported only if the program sets a TracerProvider"
        yield Finding(WARNING, "export", text, "or set OTEL_EXPORTER_OTLP_ENDPOINT")


def _failed(facts: Mapping[str, Any]) -> Iterator[Finding]:
    for part, value in facts.items():
        if isinstance(value, dict) and set(value) == {"error"}:
            yield Finding(ERROR, part, f"this part could not be examined: {value['error']}")


def _rows(facts: Mapping[str, Any], part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of the facts, none where it could not be examined."""
    rows = facts[part]
    return rows if isinstance(rows, list) else []


def _own(facts: Mapping[str, Any], level: str) -> list[str]:
    """Return what agent_otel logged at a level."""
    return [line["text"] for line in facts["messages"] if (line["logger"], line["level"]) == ("agent_otel", level)]
