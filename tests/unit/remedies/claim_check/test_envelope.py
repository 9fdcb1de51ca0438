"""What is stored: readable where it may be, and nothing of it can be changed unnoticed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_otel.remedies.claim_check.envelope import (
    CHUNK_BYTES,
    HEADER_BYTES,
    Cipher,
    Claims,
    CorruptError,
    Origin,
    Reserved,
    Signer,
)
from agent_otel.remedies.claim_check.serialization import BINARY
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from tests.rows import each_row
from tests.unit.remedies.claim_check.stores.contract import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_otel.remedies.claim_check.envelope import Header
    from tests.environments import Environment

_KEY = "tool-result/=/run-1/agent/call_0"
_ORIGIN = Origin(owner="run-1", execution="run-1", node="agent", tool="search", call="call_0")
_SECRET = base64.b64encode(b"k" * 32).decode()
_NEW = base64.b64encode(b"n" * 32).decode()
_DATA = bytes(range(256)) * 1000  # four chunks, the last of them not full


def _claims(key: str, encryption_key: str = "") -> Claims:
    return Claims(MemoryStore(), key=key, encryption_key=encryption_key)


PLAIN = _claims("secret")
ENCRYPTED = _claims("secret", _SECRET)
both = pytest.mark.parametrize("envelopes", [PLAIN, ENCRYPTED], ids=["plain", "encrypted"])


def _pack(envelopes: Claims, data: bytes = _DATA, origin: Origin = _ORIGIN, **changed: Any) -> tuple[Header, bytes]:
    described = {"content_type": "text/plain", "encoding": "utf-8", "created": 1000.0, "ttl": 60.0}
    return envelopes.pack(_KEY, data, origin, **{**described, **changed})


def _by_hand(secret: str, *parts: bytes) -> str:
    """An HMAC-SHA-256 over parts, each with its length before it, as 32 hexadecimal digits."""
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.digest(secret.encode(), framed, "sha256").hex()[:32]


def test_the_header_is_readable_json_and_the_result_follows_it() -> None:
    _, stored = _pack(PLAIN, b"hello")

    header = json.loads(stored[:1024])
    seal = header.pop("seal")

    assert {
        "owner": "run-1",
        "execution": "run-1",
        "node": "agent",
        "tool": "search",
        "call": "call_0",
        "digest": _by_hand("secret", b"content", b"", hashlib.sha256(b"hello").digest()),
        "bytes": 5,
        "content_type": "text/plain",
        "encoding": "utf-8",
        "created": 1000.0,
        "expires_at": 1060.0,
        "key_id": _by_hand("secret", b"key id")[:8],
        "cipher_id": None,
        "salt": None,
        "version": 2,
        "asked": None,
    } == header
    assert 32 == len(seal)
    assert b"hello" == stored[1024:1029]
    assert hashlib.sha256(b"hello").digest() == stored[1029:]


@both
@each_row("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES - 1])
def test_what_is_packed_is_unpacked(envelopes: Claims, size: int) -> None:
    data = (b"0123456789abcde" * size)[:size]

    header, stored = _pack(envelopes, data)

    assert (header, data) == envelopes.unpack(_KEY, stored)
    chunks = -(-size // CHUNK_BYTES)
    assert len(stored) == 1024 + size + chunks * (16 if header.cipher_id else 32)


@each_row("text", [*HOSTILE, "\u4e2d" * 16, "\ud800" * 11, '"' * 33])
def test_a_header_has_room_for_any_ids(text: str) -> None:
    origin = Origin(*(text,) * 5)
    header, stored = _pack(ENCRYPTED, b"x", origin, content_type="a/" + "b" * 98, created=1e10 + 0.123, ttl=1e10)

    assert (header, b"x") == ENCRYPTED.unpack(_KEY, stored)
    assert ("}" + " ") in stored[:1025].decode("latin-1")


@each_row(
    ("given", "kept"),
    [
        ("text/html; charset=utf-8", "text/html; charset=utf-8"),
        ("image/svg+xml", "image/svg+xml"),
        ("", BINARY),
        ("html", BINARY),
        ("text/html\r\nset-cookie: a=b", BINARY),
        ("text/html; charset=utf-8\n", BINARY),
        ("text/html, text/plain", BINARY),
        ("täxt/plain", BINARY),
        ("a/" + "b" * 99, BINARY),
    ],
)
def test_a_content_type_is_one_or_just_bytes(given: str, kept: str) -> None:
    assert kept == _pack(PLAIN, content_type=given)[0].content_type


@both
def test_a_single_changed_bit_is_found(envelopes: Claims) -> None:
    _, stored = _pack(envelopes, b"0123456789")

    for at in range(len(stored)):
        changed = bytearray(stored)
        changed[at] ^= 1 << at % 8
        with pytest.raises(CorruptError):
            envelopes.unpack(_KEY, bytes(changed))


@both
def test_what_was_cut_or_lengthened_is_found(envelopes: Claims) -> None:
    _, stored = _pack(envelopes, b"0123456789")

    for changed in (stored + b"\0", *(stored[:end] for end in range(len(stored)))):
        with pytest.raises(CorruptError):
            envelopes.unpack(_KEY, changed)


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_anything_else_is_found(stored: bytes) -> None:
    for envelopes in (PLAIN, ENCRYPTED):
        with pytest.raises(CorruptError):
            envelopes.unpack(_KEY, stored)


def _forged(**changed: Any) -> bytes:
    """What somebody stores who knows all but the secret."""
    header, stored = _pack(PLAIN, b"hello")
    block = json.dumps({**asdict(header), **changed, "seal": "0" * 32}, separators=(",", ":")).encode().ljust(1024)
    return block + stored[1024:]


@each_row(
    "changed",
    [
        {"owner": "run-2"},
        {"expires_at": 1e300},
        {"bytes": -1},
        {"bytes": "5"},
        {"bytes": None},
        {"bytes": 10**30},
        {"version": 1},
        {"salt": "x"},
        {"cipher_id": "x"},
        {"key_id": "x"},
        {"key_id": []},
        {"more": 1},
    ],
)
def test_a_header_of_somebody_else_is_found(changed: dict[str, Any]) -> None:
    with pytest.raises(CorruptError):
        PLAIN.unpack(_KEY, _forged(**changed))


@both
def test_what_belongs_under_another_key_is_found(envelopes: Claims) -> None:
    _, stored = _pack(envelopes)

    with pytest.raises(CorruptError, match="its header is not of our making"):
        envelopes.unpack("tool-result/=/run-2/agent/call_0", stored)


def test_another_secret_reads_nothing() -> None:
    _, stored = _pack(PLAIN)

    with pytest.raises(CorruptError, match="its header is not of our making"):
        _claims("another").unpack(_KEY, stored)


def test_encrypted_content_is_nowhere_in_the_store() -> None:
    data = b"the balance is 4711 EUR" * 10_000

    header, stored = _pack(ENCRYPTED, data)

    assert b"4711" not in stored
    assert header.salt != _pack(ENCRYPTED, data)[0].salt


@both
def test_content_cannot_be_guessed_from_its_header(envelopes: Claims) -> None:
    """No digest in the header is one that can be made without the key of the seals."""
    header, stored = _pack(envelopes, b"4711")

    for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
        for key in (b"", b"k" * 32):
            plain = (
                hmac.new(key, b"4711", algorithm).hexdigest() if key else hashlib.new(algorithm, b"4711").hexdigest()
            )
            assert header.digest[:16] not in plain
            assert plain[:16].encode() not in stored[:1024]


def test_each_result_is_encrypted_with_a_derived_key() -> None:
    """By hand: HKDF-SHA-256 of the key, the result's salt and the purpose; the number of a chunk is its nonce."""
    header, stored = _pack(ENCRYPTED)
    derived = HKDF(SHA256(), 32, bytes.fromhex(header.salt or ""), b"agent_otel claim check v2: AES-256-GCM").derive(
        b"k" * 32
    )

    at = 1024 + 2 * (CHUNK_BYTES + 16)
    chunk = stored[at : at + CHUNK_BYTES + 16]
    decrypted = AESGCM(derived).decrypt((2).to_bytes(12, "big"), chunk, stored[:1024])

    assert _DATA[2 * CHUNK_BYTES : 3 * CHUNK_BYTES] == decrypted


@pytest.mark.parametrize(
    ("envelopes", "said"),
    [
        (PLAIN, "it is encrypted, and there is no key"),
        (_claims("secret", _NEW), "it was encrypted with another key"),
    ],
)
def test_without_the_right_key_nothing_is_decrypted(envelopes: Claims, said: str) -> None:
    _, stored = _pack(ENCRYPTED)

    with pytest.raises(CorruptError, match=said):
        envelopes.unpack(_KEY, stored)


def test_both_keys_change_without_loss() -> None:
    header, stored = _pack(ENCRYPTED)
    rotating = _claims("new,secret", f"{_NEW},{_SECRET}")
    renewed, stored_anew = _pack(rotating)

    assert (header, _DATA) == rotating.unpack(_KEY, stored)
    assert (renewed, _DATA) == rotating.unpack(_KEY, stored_anew)
    assert (renewed, _DATA) == _claims("new", _NEW).unpack(_KEY, stored_anew)
    assert (Signer("new").key_id, Cipher(_NEW).key_id) == (renewed.key_id, renewed.cipher_id)
    assert (Signer("secret").key_id, Cipher(_SECRET).key_id) == (header.key_id, header.cipher_id)


def test_where_there_is_encryption_nothing_else_is_read() -> None:
    _, stored = _pack(PLAIN)

    with pytest.raises(CorruptError, match="it is not encrypted"):
        ENCRYPTED.unpack(_KEY, stored)


def test_what_was_stored_before_encryption_is_read_when_that_is_asked_for() -> None:
    header, stored = _pack(PLAIN)
    moving = _claims("secret", f"{_SECRET},plain")

    assert (header, _DATA) == moving.unpack(_KEY, stored)
    assert moving.unpack(_KEY, _pack(moving)[1])[0].cipher_id == Cipher(_SECRET).key_id


def test_chunks_cannot_be_exchanged() -> None:
    _, stored = _pack(ENCRYPTED)
    _, other = _pack(ENCRYPTED)
    size = CHUNK_BYTES + 16
    first, second = stored[1024 : 1024 + size], stored[1024 + size : 1024 + 2 * size]

    for changed in (
        stored[:1024] + second + first + stored[1024 + 2 * size :],
        stored[:1024] + first + first + stored[1024 + 2 * size :],
        stored[:1024] + other[1024:],
        stored[:-size],
    ):
        with pytest.raises(CorruptError):
            ENCRYPTED.unpack(_KEY, changed)


@each_row(
    "key",
    [
        "",
        ",",
        "plain",
        f"plain,{_SECRET}",
        f"{_SECRET},x",
        "x",
        "k" * 32,
        base64.b64encode(b"k" * 31).decode(),
        _SECRET[:-1],
        "ä" * 44,
    ],
)
def test_an_encryption_key_that_is_none(key: str) -> None:
    with pytest.raises(ValueError, match=r"^not a key of 32 bytes in base64, as `openssl rand -base64 32` makes one$"):
        Cipher(key)


def test_a_key_in_urls_alphabet_is_the_same_key() -> None:
    key = b"\xfb\xff" * 16

    assert Cipher(base64.b64encode(key).decode()).key_id == Cipher(base64.urlsafe_b64encode(key).decode()).key_id


def test_without_cryptography_the_error_says_what_installs_it(environment: Callable[[str], Environment]) -> None:
    code = f"""
        from agent_otel.remedies.claim_check.envelope import Cipher
        try:
            Cipher({_SECRET!r})
        except Exception as error:
            print(type(error).__name__, str(error).partition("; ")[2])
    """

    assert "StoreError pip install 'cryptography>=42'\n" == environment("bare").run(code, check=True).stdout


@both
def test_a_part_is_checked_by_itself(envelopes: Claims) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(64_000))
    header, stored = _pack(envelopes, data)
    block, digests = stored[:HEADER_BYTES], stored[header.digests[0] :]
    begin, stop = header.span(CHUNK_BYTES, 3 * CHUNK_BYTES - 1)
    part = stored[begin:stop]

    envelopes.check_header(_KEY, header, block, digests)
    assert data[CHUNK_BYTES : 3 * CHUNK_BYTES] == envelopes.opened(header, block, digests, 1, part)

    for first, other in ((0, part), (2, part), (1, part[:-1]), (1, bytes([part[0] ^ 1]) + part[1:]), (4, part)):
        with pytest.raises(CorruptError, match=r"a part of it has another digest|it cannot be decrypted"):
            envelopes.opened(header, block, digests, first, other)
    with pytest.raises(CorruptError, match="its header is not of our making"):
        envelopes.check_header(_KEY, header, block, digests + b"x")


def test_the_owner_of_payloads_is_no_segment() -> None:
    header, stored = _pack(PLAIN, origin=_ORIGIN._replace(owner=Reserved("payloads")))

    assert "=payloads" == header.owner == PLAIN.unpack(_KEY, stored)[0].owner
