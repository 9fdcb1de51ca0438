"""Envelope of a stored result: a header of 1 KiB, the result in chunks, and a digest of each chunk.

The header is JSON, padded with spaces, so that the result begins at a fixed byte, and a part of it can be read and
checked alone. The header's seal binds the storage key, so that a store that returns another value is detected. With
encryption, each chunk is encrypted separately and its tag replaces the digest; the header, which contains no content,
stays readable.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from agent_otel._internal.errors import ours
from agent_otel.remedies.claim_check.cipher import TAG_BYTES, CorruptError
from agent_otel.remedies.claim_check.references import SEAL_DIGITS, owner_segment, segment
from agent_otel.remedies.claim_check.serialization import BINARY

if TYPE_CHECKING:
    from agent_otel.remedies.claim_check.cipher import Cipher
    from agent_otel.remedies.claim_check.references import Reserved, Signer

VERSION = 2
HEADER_BYTES = 1024
#: Bytes of a result that are checked and decrypted separately.
CHUNK_BYTES = 64 * 1024

_DIGEST_BYTES = 32
_CONTENT_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(; ?charset=[a-z0-9_.-]+)?", re.ASCII | re.IGNORECASE)
_LONGEST_CONTENT_TYPE = 100


class Origin(NamedTuple):
    """The origin of a result, from the server's own data. ``owner`` is the execution that may read it.

    ``asked`` is a keyed digest of the tool and the arguments, by which a retry differs from another call of the same
    id; None where the key has that digest already.
    """

    owner: str | Reserved
    execution: str
    node: str
    tool: str
    call: str
    asked: str | None = None


@dataclass(frozen=True)
class Header:
    """The description of a stored result.

    The first five fields are key segments. ``digest`` is a keyed digest of the raw bytes: a plain digest would confirm
    a guessed content. ``encoding`` is ``utf-8`` for text, else None. Times are seconds since 1970. ``key_id``
    names the key of the seal, ``cipher_id`` the key of the encryption; ``salt`` is random for each result. Both are
    None without encryption. ``asked`` is the origin's.
    """

    owner: str
    execution: str
    node: str
    tool: str
    call: str
    digest: str
    bytes: int
    content_type: str
    encoding: str | None
    created: float
    expires_at: float
    key_id: str
    cipher_id: str | None
    salt: str | None
    version: int = VERSION
    asked: str | None = None

    @property
    def digests_start(self) -> int:
        """Start of the digests in bytes, after the last chunk."""
        return self.span(0, self.bytes)[1]

    @property
    def digests_bytes(self) -> int:
        """Length of the digests in bytes; 0 with encryption, which has tags instead."""
        return _DIGEST_BYTES * self._chunks(self.bytes) if self.cipher_id is None else 0

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the stored byte range of the chunks that hold bytes ``start`` up to ``end`` of the result."""
        tag_bytes = 0 if self.cipher_id is None else TAG_BYTES
        first, last = start // CHUNK_BYTES, self._chunks(end)
        begin = first * (CHUNK_BYTES + tag_bytes)
        stop = min(last * CHUNK_BYTES, self.bytes) + last * tag_bytes
        return HEADER_BYTES + begin, HEADER_BYTES + max(begin, stop)

    @staticmethod
    def _chunks(size: int) -> int:
        return -(-size // CHUNK_BYTES)


class Envelopes:
    """Packer and unpacker of results, with the keys of this deployment."""

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
        created: float,
        ttl: float,
    ) -> tuple[Header, bytes]:
        """Return the header of a result and the bytes to store under its key."""
        cipher = self._cipher
        digests = _digests(data)
        header = Header(
            owner=owner_segment(origin.owner),
            execution=segment(origin.execution),
            node=segment(origin.node),
            tool=segment(origin.tool),
            call=segment(origin.call),
            digest=self._signer.seal("content", digests),
            bytes=len(data),
            content_type=_usable(content_type),
            encoding=encoding,
            created=round(created, 3),
            expires_at=round(created + ttl, 3),
            key_id=self._signer.key_id,
            cipher_id=cipher.key_id if cipher else None,
            salt=cipher.salt() if cipher else None,
            asked=origin.asked,
        )
        if cipher is None or header.salt is None:
            return header, b"".join((self._sealed(key, header, digests), data, digests))
        block = self._sealed(key, header, b"")
        return header, block + cipher.encrypted(_pieces(data, CHUNK_BYTES), header.salt, block)

    def read_header(self, block: bytes) -> Header:
        """Parse the first 1 KiB of a stored value without checking its seal; CorruptError when it is no header."""
        try:
            header = Header(**json.loads(_split(block)[0] + b"}"))
        except ours(ValueError, TypeError) as error:
            raise CorruptError("it has no header") from error
        if header.version != VERSION or not isinstance(header.bytes, int) or header.bytes < 0:
            raise CorruptError("it has no header of this version")
        return header

    def check_header(self, key: str, header: Header, block: bytes, digests: bytes) -> None:
        """Check that this header and the digests at the end were written under this key; CorruptError otherwise.

        With encryption configured, a result without encryption is rejected unless plain results are allowed.
        """
        body, seal = _split(block)
        if not isinstance(header.key_id, str) or not self._signer.is_seal(
            seal.decode("ascii", "replace"), "header", key.encode(), body, digests, key_id=header.key_id
        ):
            raise CorruptError("its header is not of our making")
        if header.cipher_id is None and self._cipher is not None and not self._cipher.reads_plain:
            raise CorruptError("it is not encrypted")

    def unpack(self, key: str, stored: bytes) -> tuple[Header, bytes]:
        """Return a result and its header; CorruptError unless every byte of both is unchanged."""
        block = stored[:HEADER_BYTES]
        header = self.read_header(block)
        at = header.digests_start
        if len(stored) != at + header.digests_bytes:
            raise CorruptError("it is not as long as its header says")
        self.check_header(key, header, block, stored[at:])
        return header, self.opened(header, block, stored[at:], 0, stored[HEADER_BYTES:at])

    def opened(self, header: Header, block: bytes, digests: bytes, first: int, chunks: bytes) -> bytes:
        """Return the content of the chunks from number ``first`` on, checked; ``block`` is the stored header."""
        if header.cipher_id is None:
            if not digests[first * _DIGEST_BYTES :].startswith(_digests(chunks)):
                raise CorruptError("a part of it has another digest")
            return chunks
        if self._cipher is None or header.salt is None:
            raise CorruptError("it is encrypted, and there is no key")
        pieces = _pieces(chunks, CHUNK_BYTES + TAG_BYTES)
        return self._cipher.decrypted(header.cipher_id, pieces, header.salt, block, first)

    def _sealed(self, key: str, header: Header, digests: bytes) -> bytes:
        body = json.dumps(asdict(header), separators=(",", ":"))[:-1].encode()
        block = _joined(body, self._signer.seal("header", key.encode(), body, digests).encode())
        if len(block) > HEADER_BYTES:
            raise ValueError(f"a header of {len(block)} bytes")
        return block.ljust(HEADER_BYTES)


def _pieces(data: bytes, size: int) -> list[memoryview]:
    view = memoryview(data)
    return [view[start : start + size] for start in range(0, len(view), size)]


def _digests(data: bytes) -> bytes:
    return b"".join(hashlib.sha256(piece).digest() for piece in _pieces(data, CHUNK_BYTES))


def _joined(body: bytes, seal: bytes) -> bytes:
    return body + b',"seal":"' + seal + b'"}'


def _split(block: bytes) -> tuple[bytes, bytes]:
    """Return the sealed part of a header and the seal, which is empty when the header has another form."""
    text = block[:HEADER_BYTES].rstrip(b" ")
    end = len(text) - len(_joined(b"", b"0" * SEAL_DIGITS))
    body, seal = text[:end], text[-len('"}') - SEAL_DIGITS : -len('"}')]
    return (body, seal) if _joined(body, seal) == text else (body, b"")


def _usable(content_type: str) -> str:
    """Return a content type that is valid in an HTTP header; octets for any other."""
    usable = len(content_type) <= _LONGEST_CONTENT_TYPE and _CONTENT_TYPE.fullmatch(content_type)
    return content_type if usable else BINARY
