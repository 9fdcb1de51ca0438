"""How the environment becomes settings."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import FrozenInstanceError, fields, replace
from typing import TYPE_CHECKING

import pytest
import yaml

from agent_otel import settings
from agent_otel._internal import errors
from agent_otel.cli.everyday import MEANINGS
from agent_otel.settings import Settings
from agent_otel.settings.kinds import variable_of
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def _said_anew() -> Iterator[None]:
    """Log each warning again, although it was logged before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "_said", set())
        yield


@pytest.fixture(autouse=True)
def _nothing_said_yet() -> Iterator[None]:
    with _said_anew():
        yield


def test_an_empty_environment_gives_the_defaults() -> None:
    firsts: tuple[object, ...] = (
        "auto",
        "auto",
        None,
        "127.0.0.1",
        True,
        frozenset(),
        False,
        16000,
        True,
        "",
        False,
        False,
    )
    names = [item.name for item in fields(Settings)]
    assert Settings(**dict(zip(names, firsts, strict=False))) == settings.load({})


@each_row(
    ("text", "expected"),
    [
        ("16000", 16000),
        ("32KiB", 32768),
        ("2 MiB", 2097152),
        ("1.5mib", 1572864),
        ("64kb", 64000),
        ("1GiB", 1073741824),
        ("10B", 10),
        ("64k", 64000),
        ("64K", 64000),
        ("64Ki", 65536),
        ("1M", 1000000),
        ("1Mi", 1048576),
        ("2G", 2000000000),
        ("2gi", 2147483648),
        ("1TiB", 1099511627776),
    ],
    around=_said_anew,
)
def test_sizes(text: str, expected: int) -> None:
    assert expected == settings.load({"AGENT_OTEL_LARGE_RESULT_BYTES": text}).large_result_bytes


@each_row(
    ("variable", "text", "name", "expected"),
    [
        ("AGENT_OTEL_SPANS", "Enrich", "spans", "enrich"),
        ("AGENT_OTEL_METRICS", " both ", "metrics", "both"),
        ("AGENT_OTEL_PROMETHEUS_PORT", "9464", "prometheus_port", 9464),
        ("AGENT_OTEL_SDK", "off", "sdk", False),
        (
            "AGENT_OTEL_DISABLED_INTEGRATIONS",
            "LangGraph, mcp,,",
            "disabled_integrations",
            frozenset({"langgraph", "mcp"}),
        ),
        ("AGENT_OTEL_LABELS", "team=search, tenant", "labels", (("team", "search"), ("tenant", None))),
        ("AGENT_OTEL_REDACT", "myapp.privacy:Rules.redact", "redact", "myapp.privacy:Rules.redact"),
        ("AGENT_OTEL_FLUSH_ON_SIGTERM", "YES", "flush_on_sigterm", True),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT", "capture_content", True),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "EVENT_ONLY", "capture_content", False),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true", "capture_content", True),
    ],
    around=_said_anew,
)
def test_values(variable: str, text: str, name: str, expected: object) -> None:
    assert expected == getattr(settings.load({variable: text}), name)


WRONG = {
    "AGENT_OTEL_SPANS": "maybe",
    "AGENT_OTEL_METRICS": "statsd",
    "AGENT_OTEL_PROMETHEUS_PORT": "99999",
    "AGENT_OTEL_SDK": "2",
    "AGENT_OTEL_LARGE_RESULT_BYTES": "lots",
    "AGENT_OTEL_RESULT_CEILING_BYTES": "2TiB",
    "AGENT_OTEL_FLUSH_ON_SIGTERM": "perhaps",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "some",
}


@each_row(
    ("variable", "text"),
    [
        *WRONG.items(),
        *(("AGENT_OTEL_LABELS", text) for text in ("gen_ai.tool.name", "job", "1st", "a-b", "a,b,c,d,e,f")),
        *(("AGENT_OTEL_LABELS", text) for text in ("tool.args_hash=mine", "a.b,a_b=1", "team,team=search")),
        *(("AGENT_OTEL_REDACT", text) for text in ("redact", "my-app:redact", ":redact")),
        *(("AGENT_OTEL_TRIM_REFERENCES", text) for text in ("(", "a{99999999999}", "(" * 3_000 + ")" * 3_000)),
    ],
    around=_said_anew,
)
def test_a_wrong_value_is_one_warning_and_the_default(
    variable: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "agent_otel")
    assert settings.load({}) == settings.load({variable: text}) == settings.load({variable: text})
    assert 1 == len(caplog.records)
    assert f"{variable}={text!r}" in caplog.messages[0]


@pytest.mark.parametrize("narrower", [{"AGENT_OTEL_REDACT": "privacy.redact"}, {"AGENT_OTEL_CAPTURE_TOOLS": ","}])
def test_content_whose_limits_are_not_understood_is_not_captured(
    narrower: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    capturing = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
    assert settings.load(capturing).capture_content
    assert not settings.load(capturing | narrower).capture_content
    (logged,) = caplog.messages
    assert logged.endswith("; no content is captured")


def test_settings_are_values_that_show_no_secret() -> None:
    chosen = Settings(spans="own", sdk=False, claim_check="memory:", claim_check_key="a secret of 16 bytes")

    assert ("own", False, "auto") == (chosen.spans, chosen.sdk, chosen.metrics)
    assert {chosen} == {
        replace(Settings(), spans="own", sdk=False, claim_check="memory:", claim_check_key="a secret of 16 bytes"),
        chosen,
    }
    assert chosen != replace(chosen, sdk=True)
    assert "spans='own'" in repr(chosen)
    assert "secret" not in repr(chosen)
    with pytest.raises(FrozenInstanceError):
        chosen.sdk = True  # type: ignore[misc]


@pytest.mark.parametrize("named", [{"spam": 1}, {"spans": "own", "spam": 1}])
def test_a_setting_that_there_is_not_is_an_error(named: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Settings(**named)


def test_every_setting_says_what_it_means() -> None:
    meanings = yaml.safe_load(MEANINGS.read_text())
    assert meanings.keys() == {item.name for item in fields(Settings)}
    for item in fields(Settings):
        assert variable_of(item).startswith(("AGENT_OTEL_", "OTEL_"))
        assert meanings[item.name].endswith(".")


LIMITS = [
    item
    for item in fields(Settings)
    if item.metadata["kind"].name in ("size above 0", "size above 0, or `auto`", "number", "seconds")
]


def test_a_limit_is_all_that_ends_in_bytes_or_counts_but_the_probe() -> None:
    limits = {item.name for item in LIMITS}
    assert limits >= {item.name for item in fields(Settings) if item.name.endswith("_bytes")}
    assert limits >= {item.name for item in fields(Settings) if item.name.startswith("max_")}


@each_row("text", ["0", "0B", "0.0", "0KiB"], around=_said_anew)
@each_row("variable", [variable_of(item) for item in LIMITS])
def test_a_limit_of_0_is_refused(variable: str, text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert settings.load({}) == settings.load({variable: text})
    assert 1 == len(caplog.messages)
    assert caplog.messages[0].startswith(f"{variable}={text!r} is not ")


def test_a_refused_limit_says_that_it_is_off(caplog: pytest.LogCaptureFixture) -> None:
    assert settings.load({"AGENT_OTEL_RESULT_CEILING_BYTES": "0"}).result_ceiling_bytes is None
    assert [
        "AGENT_OTEL_RESULT_CEILING_BYTES='0' is not a size above 0, such as 16000, 64Ki or 2MiB; it stays unset"
    ] == caplog.messages


UNKNOWN = {
    "AGENT_OTEL_RESULT_CIELING_BYTES": "AGENT_OTEL_RESULT_CEILING_BYTES",
    "AGENT_OTEL_CEILING_BYTES": "AGENT_OTEL_RESULT_CEILING_BYTES",
    "AGENT_OTEL_CLAIMCHECK": "AGENT_OTEL_CLAIM_CHECK",
    "AGENT_OTEL_MAX_TOOLCALLS": "AGENT_OTEL_MAX_TOOL_CALLS",
    "agent_otel_metrics": "AGENT_OTEL_METRICS",
    "AGENTOTEL_METRICS": "AGENT_OTEL_METRICS",
    "AGENT_OTEL_PORT": "AGENT_OTEL_PROMETHEUS_PORT",
}


@each_row(("name", "nearest"), UNKNOWN.items(), around=_said_anew)
def test_an_unknown_name_is_one_warning_with_the_nearest(
    name: str, nearest: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert settings.load({}) == settings.load({name: "a secret"})
    assert [f"{name} is no setting of agent_otel and has no effect. Do you mean {nearest}?"] == caplog.messages


def test_each_unknown_name_is_a_warning_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    settings.load({"AGENT_OTEL_ZZZZZZZZZZZZZZZZZZZZZZZZZ": "", "AGENT_OTEL_SPAN": "off"})
    assert [
        "AGENT_OTEL_ZZZZZZZZZZZZZZZZZZZZZZZZZ is no setting of agent_otel and has no effect.",
        "AGENT_OTEL_SPAN is no setting of agent_otel and has no effect. Do you mean AGENT_OTEL_SPANS?",
    ] == caplog.messages


def test_names_that_are_nobodys_mistake_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    settings.load(
        {
            "AGENT_OTEL": "1",
            "AGENT_OTEL_FLUSH_ON_SIGTERM": "1",
            "OTEL_SERVICE_NAME": "agent",
            "MY_AGENT_OTEL_THING": "1",
            # What Kubernetes says of a service called agent-otel, and of one called agent-otel-collector.
            "AGENT_OTEL_SERVICE_HOST": "10.0.0.7",
            "AGENT_OTEL_SERVICE_PORT": "4317",
            "AGENT_OTEL_SERVICE_PORT_GRPC": "4317",
            "AGENT_OTEL_PORT": "tcp://10.0.0.7:4317",
            "AGENT_OTEL_COLLECTOR_PORT_4317_TCP": "tcp://10.0.0.7:4317",
            "AGENT_OTEL_COLLECTOR_PORT_4317_TCP_ADDR": "10.0.0.7",
        }
    )
    assert [] == caplog.messages


CONFLICTS = {
    "the warn ratio is above the near ratio": (
        {"AGENT_OTEL_PAYLOAD_WARN_RATIO": "0.9"},
        {"payload_warn_ratio": 0.8},
        "AGENT_OTEL_PAYLOAD_WARN_RATIO=0.9 is above AGENT_OTEL_PAYLOAD_NEAR_RATIO, 0.8; using 0.8 for both",
    ),
    "a port is to be served without metrics": (
        {"AGENT_OTEL_METRICS": "off", "AGENT_OTEL_PROMETHEUS_PORT": "9464"},
        {"metrics": "off", "prometheus_port": None},
        "AGENT_OTEL_PROMETHEUS_PORT=9464 is not served, because AGENT_OTEL_METRICS is off",
    ),
    "results are stored above a size from which on they are withheld": (
        {
            "AGENT_OTEL_CLAIM_CHECK": "memory:",
            "AGENT_OTEL_CLAIM_CHECK_BYTES": "64Ki",
            "AGENT_OTEL_RESULT_CEILING_BYTES": "32Ki",
        },
        {"claim_check": "memory:", "claim_check_bytes": 32768, "result_ceiling_bytes": 32768},
        "AGENT_OTEL_CLAIM_CHECK_BYTES=65536 is above AGENT_OTEL_RESULT_CEILING_BYTES, 32768; using 32768 for both",
    ),
    "the target of a summary is the size from which on there is one": (
        {"AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS": "1000", "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS": "1000"},
        {"summarize_above_tokens": 1000, "summarize_target_tokens": None},
        "AGENT_OTEL_SUMMARIZE_TARGET_TOKENS=1000 is no less than AGENT_OTEL_SUMMARIZE_ABOVE_TOKENS, 1000; using 500",
    ),
    "a cap is set for a runtime that nobody knows": (
        {"AGENT_OTEL_CAPS": "temporl.payload=2MiB"},
        {"caps": frozenset({("temporl", "payload", 2097152)})},
        (
            "AGENT_OTEL_CAPS: 'temporl' is no runtime that agent_otel knows; the cap counts for payloads that your "
            "program reports under this name, only. Do you mean temporal?"
        ),
    ),
    "a size is set for a store that is not": (
        {"AGENT_OTEL_CLAIM_CHECK_BYTES": "16KiB"},
        {"claim_check_bytes": 16384},
        "AGENT_OTEL_CLAIM_CHECK_BYTES has no effect without AGENT_OTEL_CLAIM_CHECK",
    ),
    "an address is set for a port that is not": (
        {"AGENT_OTEL_PROMETHEUS_HOST": "::1"},
        {"prometheus_host": "::1"},
        "AGENT_OTEL_PROMETHEUS_HOST has no effect without AGENT_OTEL_PROMETHEUS_PORT",
    ),
    "turns are kept of a history that nothing is taken from": (
        {"AGENT_OTEL_KEEP_TURNS": "3", "AGENT_OTEL_TRIM_RESULTS": "0"},
        {"keep_turns": 3},
        "AGENT_OTEL_KEEP_TURNS has no effect without AGENT_OTEL_TRIM_RESULTS",
    ),
}


@each_row(("environ", "expected", "message"), CONFLICTS.values(), ids=list(CONFLICTS), around=_said_anew)
def test_what_contradicts_is_one_warning(
    environ: dict[str, str], expected: dict[str, object], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert replace(Settings(), **expected) == settings.load(environ)  # type: ignore[arg-type]
    assert [message] == caplog.messages


AGREED = {
    "the near ratio below the usual warn ratio": (
        {"AGENT_OTEL_PAYLOAD_NEAR_RATIO": "0.4"},
        {"payload_near_ratio": 0.4, "payload_warn_ratio": 0.4},
    ),
    "a ceiling below the usual claim check": (
        {"AGENT_OTEL_CLAIM_CHECK": "memory:", "AGENT_OTEL_RESULT_CEILING_BYTES": "16Ki"},
        {"claim_check": "memory:", "claim_check_bytes": 16384, "result_ceiling_bytes": 16384},
    ),
    "caps of runtimes that are known": (
        {"AGENT_OTEL_CAPS": "temporal.payload=4MiB,dapr.message=16MiB"},
        {"caps": frozenset({("temporal", "payload", 4194304), ("dapr", "message", 16777216)})},
    ),
    "turns kept of a trimmed history": (
        {"AGENT_OTEL_KEEP_TURNS": "3", "AGENT_OTEL_TRIM_RESULTS": "1"},
        {"keep_turns": 3, "trim_results": True},
    ),
}


@each_row(("environ", "expected"), AGREED.values(), ids=list(AGREED), around=_said_anew)
def test_a_default_gives_way_without_a_word(
    environ: dict[str, str], expected: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    assert replace(Settings(), **expected) == settings.load(environ)  # type: ignore[arg-type]
    assert [] == caplog.messages
