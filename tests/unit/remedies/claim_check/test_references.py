"""Keys and references: nothing leads anywhere else, and nothing is believed that was not given out."""

from __future__ import annotations

import hmac
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_otel._internal import errors
from agent_otel.remedies.claim_check import envelope
from agent_otel.remedies.claim_check.envelope import (
    BadReferenceError,
    Reference,
    Reserved,
    Signer,
    key,
    owner_segment,
    segment,
)
from tests.rows import each_row
from tests.unit.remedies.claim_check.stores.contract import HOSTILE

_DIGEST = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # SHA-256 of "hello"
_IDS = st.text(st.characters(), max_size=60) | st.sampled_from(HOSTILE)  # surrogates, too


@each_row(
    ("ids", "expected"),
    [
        (("run-1", "agent", "call_0"), "tool-result/=/run-1/agent/call_0"),
        (("a/b", "::", "ä"), "tool-result/=/a%2Fb/%3A%3A/%C3%A4"),
        (("", ".", ".."), "tool-result/=/=/%2E/%2E%2E"),
        (("...", "=", "~-_.x"), "tool-result/=/%2E%2E%2E/%3D/~-_.x"),
        (("a" * 100, "a", "\ud800"), f"tool-result/=/{'a' * 100}/a/%ED%A0%80"),
        # 64 hexadecimal digits of SHA-256 over 101 times the letter a
        (("a" * 101, "a", "a"), "tool-result/=/=9d0793397991b57a99a07c6e6b4a92bab68dbf605345cd0b87f385a448a726bc/a/a"),
    ],
)
@pytest.mark.shows("000.key")
def test_a_key_is_four_segments(ids: tuple[str, str, str], expected: str) -> None:
    assert expected == key(*ids)


@settings(deadline=None)
@given(st.tuples(_IDS, _IDS, _IDS), st.tuples(_IDS, _IDS, _IDS))
@pytest.mark.shows("000.key")
def test_different_ids_give_different_keys(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (one == other) == (key(*one) == key(*other))


@settings(deadline=None)
@given(_IDS)
def test_no_segment_leads_anywhere(text: str) -> None:
    made = segment(text)

    assert re.fullmatch(r"[A-Za-z0-9_.~%=-]{1,100}", made)
    assert made.strip(".")


@settings(deadline=None)
@given(_IDS, _IDS, _IDS, _IDS, st.integers(0, 2**40))
def test_a_reference_is_read_as_it_was_written(execution: str, node: str, call: str, owner: str, size: int) -> None:
    signer = Signer("secret")
    reference = signer.refer(key(execution, node, call), owner, _DIGEST, size)

    read = Reference.parse(f" {reference}\n")

    assert reference == read
    assert signer.vouches(read, owner)


def _by_hand(secret: str, *parts: str) -> str:
    """An HMAC-SHA-256 over parts, each with its length before it, as 32 hexadecimal digits."""
    framed = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    return hmac.digest(secret.encode(), framed, "sha256").hex()[:32]


def test_the_text_of_a_reference() -> None:
    key = "tool-result/=/run-1/agent/call_0"
    seal = _by_hand("secret", "reference", "", key, "run-1", "2cf24dba5fb0a30e", "5")

    assert f"claim:v2:{key}:5:2cf24dba5fb0a30e:{seal}" == str(Signer("secret").refer(key, "run-1", _DIGEST, 5))


def test_the_seal_of_a_tenants_reference() -> None:
    key = envelope.key("run-1", "agent", "call_0", tenant="acme/eu")
    reference = Signer("secret", "acme/eu").refer(key, "run-1", _DIGEST, 5)

    assert "tool-result/acme%2Feu/run-1/agent/call_0" == reference.key
    assert _by_hand("secret", "reference", "acme/eu", key, "run-1", "2cf24dba5fb0a30e", "5") == reference.seal
    assert Signer("secret", "acme/eu").vouches(reference, "run-1")
    for tenant in ("", "acme", "acme/eu ", "acme/us"):
        assert not Signer("secret", tenant).vouches(reference, "run-1")


def test_no_id_is_the_owner_of_payloads() -> None:
    payloads = Reserved("payloads")
    reference = Signer("secret").refer("tool-result/=/run-1/agent/call_0", payloads, _DIGEST, 5)

    assert Signer("secret").vouches(reference, payloads)
    for text in ("payloads", "=payloads", "%3Dpayloads", str(payloads), "agent_otel: payloads of durable runtimes"):
        assert not Signer("secret").vouches(reference, text)


@given(_IDS)
def test_the_segment_of_a_reserved_owner_is_that_of_no_text(text: str) -> None:
    assert "=payloads" == owner_segment(Reserved("payloads")) != owner_segment(text)


def test_an_old_key_is_accepted_until_it_is_taken_away() -> None:
    made = {key: Signer(key).refer("tool-result/=/run-1/agent/call_0", "run-1", _DIGEST, 5) for key in ("old", "new")}
    rotating = Signer("new, old")

    assert made["new"] == rotating.refer("tool-result/=/run-1/agent/call_0", "run-1", _DIGEST, 5)
    assert rotating.vouches(made["new"], "run-1")
    assert rotating.vouches(made["old"], "run-1")
    assert not rotating.vouches(made["old"], "run-2")
    assert not Signer("new").vouches(made["old"], "run-1")
    assert (Signer("new").key_id, 8) == (rotating.key_id, len(rotating.key_id))
    assert Signer("new").key_id != Signer("old").key_id


@each_row(
    "text",
    [
        "",
        "claim:",
        "claim:v2:",
        "claim:v1:tool-result/=/a/b/c:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/=/a/b/c:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a",
        "claim:v2:tool-result/=/a/b/c:5:2cf24dba5fb0a30e",
        "claim:v2:tool-result/=/a/b/c:05:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/=/a/b/c:-5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/=/a/b/c:\u0665:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/a/b/c:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/a/b/c/d/e:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:secrets/=/a/b/c:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/=/a//c:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "claim:v2:tool-result/=/a/b\n/c:5:2cf24dba5fb0a30e:8a1d3b9c0f0a4a5e9a0a86d6dbb7c6a7",
        "x" * 1_000_000,
    ],
)
def test_a_text_that_is_no_reference(text: str) -> None:
    with pytest.raises(BadReferenceError, match=r"^not a reference: claim:v2:tool-result/<tenant>/<execution>"):
        Reference.parse(text)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_reference_or_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadReferenceError):
        Reference.parse(text)


@settings(deadline=None)
@given(st.data())
def test_a_reference_that_was_changed_anywhere_is_not_vouched_for(data: st.DataObject) -> None:
    signer = Signer("secret")
    text = str(signer.refer("tool-result/=/run-1/agent/call_0", "run-1", _DIGEST, 12345))
    place = data.draw(st.integers(0, len(text) - 1))
    character = data.draw(st.sampled_from("0123456789abcdef/.%:=~").filter(lambda drawn: drawn != text[place]))
    try:
        changed = Reference.parse(text[:place] + character + text[place + 1 :])
    except BadReferenceError:
        return

    assert not signer.vouches(changed, "run-1")


def test_a_reference_is_for_its_owner_alone() -> None:
    reference = Signer("secret").refer("tool-result/=/run-1/agent/call_0", "run-1", _DIGEST, 5)

    assert Signer("secret").vouches(reference, "run-1")
    assert not Signer("secret").vouches(reference, "run-2")
    assert not Signer("secret").vouches(reference, "")
    assert not Signer("another").vouches(reference, "run-1")


def test_without_a_key_a_reference_is_for_this_process_and_its_children(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(errors, "_said", set())
    signer = Signer()
    reference = signer.refer("tool-result/=/run-1/agent/call_0", "run-1", _DIGEST, 5)

    assert signer.vouches(reference, "run-1")
    assert not Signer().vouches(reference, "run-1")
    assert [
        "AGENT_OTEL_CLAIM_CHECK_KEY has no usable key: stored results can be read in this process only."
    ] == caplog.messages


def test_with_a_key_every_process_makes_the_same_reference() -> None:
    code = (
        "from agent_otel.remedies.claim_check.envelope import Signer, key;"
        f"print(Signer('secret').refer(key('run-1', 'agent', 'call_0'), 'run-1', {_DIGEST!r}, 5))"
    )
    said = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True).stdout.strip()

    assert str(Signer("secret").refer("tool-result/=/run-1/agent/call_0", "run-1", _DIGEST, 5)) == said
