"""Keys: which are refused, what is left of the remedies then, how they change, and that nothing shows them."""

from __future__ import annotations

import base64
import logging
import secrets
import traceback
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel import settings
from agent_otel._internal import errors
from agent_otel.remedies.claim_check import policy
from agent_otel.remedies.claim_check.envelope import Claims, Origin, Reference, Signer
from agent_otel.remedies.claim_check.payload_store import open_payloads
from agent_otel.remedies.claim_check.stores import open_store
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.settings.kinds import Secret

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = {
    "short": "fifteen bytes..",
    "one of several": f"{'n' * 32},fifteen bytes..",
    "between commas": f"{'n' * 15}, ,",
}
HOW = "a key of at least 16 bytes, as `openssl rand -base64 32` makes one; it stays unset"
NO_KEY = "AGENT_OTEL_CLAIM_CHECK_KEY has no usable key: stored results can be read in this process only."


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(errors, "_said", set())
    caplog.set_level(logging.WARNING, "agent_otel")


@pytest.mark.parametrize("key", REFUSED.values(), ids=REFUSED)
def test_a_short_key_is_refused_and_says_how_to_make_one(key: str, caplog: pytest.LogCaptureFixture) -> None:
    loaded = [settings.load({"AGENT_OTEL_CLAIM_CHECK_KEY": key}) for _ in range(2)]

    assert [settings.load({})] * 2 == loaded
    assert [f"AGENT_OTEL_CLAIM_CHECK_KEY is not {HOW}"] == caplog.messages


def test_a_short_key_of_hashes_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert not settings.load({"AGENT_OTEL_HASH_KEY": "hunter2"}).hash_key
    assert "sixteen bytes ok" == settings.load({"AGENT_OTEL_HASH_KEY": "sixteen bytes ok"}).hash_key
    assert [f"AGENT_OTEL_HASH_KEY is not {HOW}"] == caplog.messages


def test_with_a_refused_key_results_are_stored_for_this_process_alone(
    set_variables: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    set_variables(
        AGENT_OTEL_CLAIM_CHECK="memory:", AGENT_OTEL_CLAIM_CHECK_KEY="a secret", AGENT_OTEL_CLAIM_CHECK_BUDGET="30"
    )
    with agent_otel.execution("run-refused"):
        ref = agent_otel.remedies.summarize_result("x" * 100, tool="search")["full_payload_id"]
        assert "x" * 100 == agent_otel.remedies.resolve(ref).text

    assert [f"AGENT_OTEL_CLAIM_CHECK_KEY is not {HOW}"] == caplog.messages
    assert not Signer("a secret").vouches(Reference.parse(ref), "run-refused")


@pytest.mark.parametrize(("store", "messages"), [("memory:", []), ("file:", [NO_KEY])])
def test_a_missing_key_is_said_where_another_process_could_read(
    store: str,
    messages: list[str],
    tmp_path: Path,
    set_variables: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = store if store == "memory:" else tmp_path.as_uri()
    set_variables(AGENT_OTEL_CLAIM_CHECK=url, AGENT_OTEL_CLAIM_CHECK_BUDGET="30")
    with agent_otel.execution("run-keyless"):
        ref = agent_otel.remedies.summarize_result("x" * 100, tool="search")["full_payload_id"]
        assert "x" * 100 == agent_otel.remedies.resolve(ref).text

    assert messages == caplog.messages


def test_with_an_encryption_key_that_is_none_nothing_is_stored(
    set_variables: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    set_variables(
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY="k" * 32,
        AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY="c2hvcnQ=",
    )

    assert policy.current() is None
    (message,) = caplog.messages
    assert message.endswith("not a key of 32 bytes in base64, as `openssl rand -base64 32` makes one")


# --- nothing shows them --------------------------------------------------------------------------------------------


class Deployment:
    """Settings with all secrets that there are, none of which stands in this file."""

    def __init__(self, *, encryption_key: str = "") -> None:
        self.claim_key, self.old_key, self.hash_key, self.password = (secrets.token_hex(16) for _ in range(4))
        self.encryption_key = encryption_key or base64.b64encode(secrets.token_bytes(32)).decode()
        self.url = f"redis://user:{self.password}@127.0.0.1:1/0"
        self.variables = {
            "AGENT_OTEL_HASH_KEY": self.hash_key,
            "AGENT_OTEL_CLAIM_CHECK": self.url,
            "AGENT_OTEL_CLAIM_CHECK_KEY": f"{self.claim_key},{self.old_key}",
            "AGENT_OTEL_CLAIM_CHECK_ENCRYPTION_KEY": self.encryption_key,
        }

    def shown_in(self, text: str) -> list[str]:
        """Return what of the secrets stands in a text."""
        keys = (self.claim_key, self.old_key, self.hash_key, self.password, self.encryption_key)
        decoded = [repr(base64.b64decode(self.encryption_key + "=="))[2:-1]]
        encoded = [repr(key.encode())[2:-1] for key in keys]
        return [key for key in (*keys, *decoded, *encoded) if key in text]


def crash_report(fail: Callable[[], object]) -> str:
    """A traceback with the variables of each frame but those of this file, as crash reporters send it."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each
        fail()
    frames: Any = raised.value.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    report = traceback.TracebackException(type(raised.value), raised.value, frames, capture_locals=True)
    return "".join(report.format())


def test_no_repr_shows_a_secret() -> None:
    deployment = Deployment()
    chosen = settings.load(deployment.variables)

    assert deployment.url == chosen.claim_check
    for shown in (repr(chosen), str(chosen), f"{chosen}", repr(vars(chosen))):
        assert [] == deployment.shown_in(shown)


def test_no_crash_report_shows_a_secret(set_variables: Callable[..., None]) -> None:
    deployment = Deployment()
    set_variables(**deployment.variables)
    chosen = settings.current()
    origin = Origin("run", "run", "node", "tool", "call")
    claims = Claims(
        MemoryStore(), key=chosen.claim_check_key, encryption_key=chosen.claim_check_encryption_key, tenant="t"
    )
    unreadable: Any = 5
    reports = [
        crash_report(lambda: claims.sealed(unreadable, origin, content_type="text/plain", ttl=60)),
        crash_report(lambda: claims.unpack("key", b"{}")),
        crash_report(lambda: open_payloads(None, None, 1, 0)),
        crash_report(lambda: open_payloads(None, None, 60, 1).put(b"x", "run", "node")),
        crash_report(lambda: open_store(Secret(f"ftp://x:{deployment.password}@host"))),
        crash_report(lambda: open_store(Secret(f"redis://x:{deployment.password}@host:none"))),
    ]

    assert [[]] * 6 == [deployment.shown_in(report) for report in reports]


def test_no_crash_report_shows_an_encryption_key_that_is_none(set_variables: Callable[..., None]) -> None:
    deployment = Deployment(encryption_key=base64.b64encode(secrets.token_bytes(33)).decode())
    set_variables(**deployment.variables)

    assert [] == deployment.shown_in(crash_report(lambda: open_payloads("memory:", None, 60, 1)))
