"""What is stored: a header of 1 KiB, the result, and a digest of each part of it.

The header is JSON, filled up with spaces, so that the result begins at a known byte and a part of it can be read and
checked alone. It is sealed with the key it is stored under: a store that gives out something else is found out. With
encryption the result is unreadable in the store; its header, which has no content in it, is not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from agent_otel.remedies.raw import BINARY
from agent_otel.remedies.references import SEAL_DIGITS, segment
from agent_otel.remedies.stores.base import library

if TYPE_CHECKING:
    from agent_otel.remedies.references import Signer

VERSION = 1
HEADER_BYTES = 1024
#: Bytes of a result that have a digest of their own.
CHUNK_BYTES = 64 * 1024

_DIGEST_BYTES = 32
_KEY_BYTES = 32
_CONTENT_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(; ?charset=[a-z0-9_.-]+)?", re.ASCII | re.IGNORECASE)
_LONGEST_CONTENT_TYPE = 100


class CorruptError(Exception):
    """What is stored under a key is not what was written there, or cannot be decrypted."""


class Origin(NamedTuple):
    """Where a result comes from, as the server knows it. ``owner`` is who may read it."""

    owner: str
    execution: str
    node: str
    tool: str
    call: str


@dataclass(frozen=True)
class Header:
    """What is known of a stored result.

    The first five are segments, as in a key. ``sha256`` is of the raw bytes; where the store is encrypted it is keyed,
    because a digest alone gives away what can be guessed. ``encoding`` is ``utf-8`` for text, else None. Times are
    seconds since 1970. ``truncated`` says that the result had been cut before it came here. ``nonce`` is that of the
    encryption, None without one.
    """

    owner: str
    execution: str
    node: str
    tool: str
    call: str
    sha256: str
    bytes: int
    content_type: str
    encoding: str | None
    created: float
    expires_at: float
    truncated: bool
    nonce: str | None
    version: int = VERSION

    @property
    def stored_bytes(self) -> int:
        """The length of what is stored."""
        return HEADER_BYTES + self.bytes + self.digests_bytes + (0 if self.nonce is None else 16)

    @property
    def digests_bytes(self) -> int:
        """The length of the digests at its end; encryption has no need of them."""
        return _DIGEST_BYTES * math.ceil(self.bytes / CHUNK_BYTES) if self.nonce is None else 0


class Cipher:
    """AES-GCM with a key of 32 bytes, given in base64; ValueError for another, StoreError without ``cryptography``."""

    def __init__(self, key: str) -> None:
        try:
            self._key = base64.b64decode(key.strip().translate(str.maketrans("-_", "+/")), validate=True)
        except (ValueError, binascii.Error):
            self._key = b""
        if len(self._key) != _KEY_BYTES:
            raise ValueError("not a key of 32 bytes in base64, as `openssl rand -base64 32` makes one")
        self._aead = library("cryptography.hazmat.primitives.ciphers.aead", "encryption").AESGCM(self._key)

    def digest(self, data: bytes) -> str:
        """Return a digest that only who has the key can compare."""
        return hmac.new(self._key, data, hashlib.sha256).hexdigest()

    def encrypt(self, nonce: bytes, data: bytes, header: bytes) -> bytes:
        """Return what can be decrypted with the same nonce and header only."""
        encrypted: bytes = self._aead.encrypt(nonce, data, header)
        return encrypted

    def decrypt(self, nonce: bytes, data: bytes, header: bytes) -> bytes:
        """Undo ``encrypt``; CorruptError when anything differs."""
        try:
            decrypted: bytes = self._aead.decrypt(nonce, data, header)
        except Exception as error:
            raise CorruptError("it cannot be decrypted with this key") from error
        return decrypted


class Envelopes:
    """Packs results and unpacks them, with the keys of this deployment."""

    def __init__(self, signer: Signer, cipher: Cipher | None = None) -> None:
        self._signer = signer
        self._cipher = cipher

    def pack(  # noqa: PLR0913 - what a header says
        self,
        key: str,
        data: bytes,
        origin: Origin,
        *,
        content_type: str,
        encoding: str | None,
        truncated: bool,
        created: float,
        ttl: float,
    ) -> tuple[Header, bytes]:
        """Return the header of a result, and what to store under its key."""
        cipher = self._cipher
        digests = b"" if cipher else _digests(data)
        header = Header(
            owner=segment(origin.owner),
            execution=segment(origin.execution),
            node=segment(origin.node),
            tool=segment(origin.tool),
            call=segment(origin.call),
            sha256=cipher.digest(data) if cipher else hashlib.sha256(data).hexdigest(),
            bytes=len(data),
            content_type=_usable(content_type),
            encoding=encoding,
            created=round(created, 3),
            expires_at=round(created + ttl, 3),
            truncated=truncated,
            nonce=secrets.token_hex(12) if cipher else None,
        )
        block = self._sealed(key, header, digests)
        if cipher:
            data = cipher.encrypt(bytes.fromhex(header.nonce or ""), data, block)
        return header, b"".join((block, data, digests))

    def read_header(self, block: bytes) -> Header:
        """Read the first 1 KiB of what is stored, unchecked: ``check_header`` does that; CorruptError if it is none."""
        try:
            header = Header(**json.loads(_split(block)[0] + b"}"))
        except (ValueError, TypeError) as error:
            raise CorruptError("it has no header") from error
        if header.version != VERSION or not isinstance(header.bytes, int) or header.bytes < 0:
            raise CorruptError("it has no header of this version")
        return header

    def check_header(self, key: str, block: bytes, digests: bytes) -> None:
        """CorruptError unless this header, and the digests at the end, were written under this key."""
        body, seal = _split(block)
        if not hmac.compare_digest(self._signer.seal("header", key.encode(), body, digests).encode(), seal):
            raise CorruptError("its header is not of our making")

    def unpack(self, key: str, stored: bytes) -> tuple[Header, bytes]:
        """Return a result and its header; CorruptError unless every byte of both is as it was written."""
        block = stored[:HEADER_BYTES]
        header = self.read_header(block)
        if len(stored) != header.stored_bytes:
            raise CorruptError("it is not as long as its header says")
        end = len(stored) - header.digests_bytes
        self.check_header(key, block, stored[end:])
        data = stored[HEADER_BYTES:end]
        if header.nonce is None:
            digest = hashlib.sha256(data).hexdigest()
        elif self._cipher is None:
            raise CorruptError("it is encrypted, and there is no key")
        else:
            data = self._cipher.decrypt(bytes.fromhex(header.nonce), data, block)
            digest = self._cipher.digest(data)
        if not hmac.compare_digest(digest, header.sha256):
            raise CorruptError("it has another digest")
        return header, data

    def _sealed(self, key: str, header: Header, digests: bytes) -> bytes:
        body = json.dumps(asdict(header), separators=(",", ":"))[:-1].encode()
        block = _joined(body, self._signer.seal("header", key.encode(), body, digests).encode())
        if len(block) > HEADER_BYTES:
            raise ValueError(f"a header of {len(block)} bytes")
        return block.ljust(HEADER_BYTES)


def check_part(digests: bytes, first: int, data: bytes) -> None:
    """CorruptError unless these are a result's chunks from number ``first`` on; ``digests`` are checked ones."""
    expected = digests[first * _DIGEST_BYTES :]
    if not expected.startswith(_digests(data)):
        raise CorruptError("a part of it has another digest")


def _digests(data: bytes) -> bytes:
    view = memoryview(data)
    starts = range(0, len(view), CHUNK_BYTES)
    return b"".join(hashlib.sha256(view[start : start + CHUNK_BYTES]).digest() for start in starts)


def _joined(body: bytes, seal: bytes) -> bytes:
    return body + b',"seal":"' + seal + b'"}'


def _split(block: bytes) -> tuple[bytes, bytes]:
    """Return what of a header is sealed, and the seal: none where something else stands there."""
    text = block[:HEADER_BYTES].rstrip(b" ")
    end = len(text) - len(_joined(b"", b"0" * SEAL_DIGITS))
    body, seal = text[:end], text[-len('"}') - SEAL_DIGITS : -len('"}')]
    return (body, seal) if _joined(body, seal) == text else (body, b"")


def _usable(content_type: str) -> str:
    """A content type that can stand in an answer's header; what is none is just bytes."""
    usable = len(content_type) <= _LONGEST_CONTENT_TYPE and _CONTENT_TYPE.fullmatch(content_type)
    return content_type if usable else BINARY
