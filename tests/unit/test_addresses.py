"""Addresses in texts: users, passwords, queries and tokens are hidden, hosts and ports are shown."""

from __future__ import annotations

import time

from agent_otel._internal import errors
from agent_otel._internal.errors import masked

ADDRESSES = {
    "http://user:SECRET@host:4318/v1": "http://***@host:4318/v1",
    "https://SECRET@host/x": "https://***@host/x",
    "HTTPS://U:SECRET@HOST": "HTTPS://***@HOST",
    "http://u:SECRET%40SECRET@host": "http://***@host",
    "http://u:SE@CR/ET?SEC#RET@host:1/v1": "http://***@host:1/v1",
    "http://u:SECRET@[::1]:4317": "http://***@[::1]:4317",
    "user:SECRET@host:4317": "***@host:4317",
    "u:SE/CRET@host:4317": "***@host:4317",
    "SECRET@host:4317": "***@host:4317",
    "u:SECRET@[::1]:4317": "***@[::1]:4317",
    "http://host/v1?api_key=SECRET&x=1": "http://host/v1?***",
    "http://[::1]:1/?SECRET": "http://[::1]:1/?***",
    "https://host/#access_token=SECRET": "https://host/#***",
    "/v1/traces?api_key=SECRET": "/v1/traces?***",
    "https://host/services/SECRET00000000000000": "https://host/services/***",
    "https://host/bot123456:SECRET-abcdefghijk/send": "https://host/***/send",
    "redis://:SECRET@host:6379/0": "redis://***@host:6379/0",
    "s3://ID:SECRET@bucket/prefix": "s3://***@bucket/prefix",
    "unix://u:SECRET@/run/x.sock?db=0": "unix://***@/run/x.sock?***",
    "postgresql+psycopg://u:SECRET@host/db": "postgresql+psycopg://***@host/db",
    "http://u:SECRET@a:1,http://u:SECRET@b:2": "http://***@a:1,http://***@b:2",
    "endpoint=u:SECRET@host:1": "endpoint=***@host:1",
    "'http://u:SECRET@host/x'": "'http://***@host/x'",
}
PLAIN = (
    *("http://host:4318/v1/traces", "host:4317", "[::1]:4317", "Do you mean caps?", "langgraph@1.0", "a.b@c.de"),
    *("file:///var/folders/x1/abcdefgh1234567890abcdefgh", "AGENT_OTEL_CAPS=a.b=1", "@agent_otel.tool", "docs/a.md#b"),
)


def test_secrets_of_addresses_are_hidden() -> None:
    for text, shown in ADDRESSES.items():
        assert shown == masked(text)
        assert f"spans to {shown} are lost, {shown}" == masked(f"spans to {text} are lost, {text}")
    for text in PLAIN:
        assert text == masked(text)


def test_warnings_hide_them() -> None:
    for number, (text, shown) in enumerate(ADDRESSES.items()):
        errors.warn_once(f"address {number}", f"cannot reach {text}")
        assert f"cannot reach {shown}" == errors.warnings()[-1]


def test_a_long_text_takes_no_time() -> None:
    for part in ("a", "a:", "a/", "?a", "a@", "http://", "a:/", "/a1", "(", "'a=", "é"):
        before = time.process_time()
        masked(part * (1_000_000 // len(part)) + "/@?")
        assert time.process_time() - before < 2
