"""The key of a stored result, its reference, and its envelope: a header of 1 KiB, the chunks and their digests.

Seals are HMACs of the standard library, not itsdangerous' signatures, for two reasons. Pages and the stores ``memory:``
and ``file:`` work with the core dependencies alone. And a seal also binds data that is not in the text (the owner, the
tenant, the scope of a cursor); itsdangerous signs only the text itself.

The header is JSON, padded with spaces, so that the result begins at a fixed byte, and a part of it can be read and
checked alone. The header's seal binds the storage key, so that a store that returns another value is detected. With
encryption, each chunk is encrypted separately and its tag replaces the digest; the header, which contains no content,
stays readable.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from agent_otel._internal import errors
from agent_otel._internal.errors import attempt, ours
from agent_otel.core import execution_context
from agent_otel.remedies.claim_check.serialization import BINARY
from agent_otel.remedies.claim_check.stores.base import group_of, library
from agent_otel.settings.kinds import Secret, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from agent_otel.remedies.claim_check.stores.base import ClaimStore


#: A longer key segment is replaced by its digest. Five segments of this length and the other fields fit a header of 1
#: KiB.
LONGEST_SEGMENT = 100
DIGEST_DIGITS = 16
SEAL_DIGITS = 32

PREFIX = "claim:v2:"

_SEGMENT = r"[A-Za-z0-9_.~%=-]{1,100}"
_REFERENCE = re.compile(
    rf"claim:v2:(tool-result/{_SEGMENT}/{_SEGMENT}/{_SEGMENT}/{_SEGMENT})"
    rf":(0|[1-9][0-9]{{0,14}}):([0-9a-f]{{{DIGEST_DIGITS}}}):([0-9a-f]{{{SEAL_DIGITS}}})"
)
_LONGEST_REFERENCE = 512


class BadReferenceError(ValueError):
    """A text that is no reference to a result."""


def segment(text: str) -> str:
    """Return a text as one segment of a key: percent-encoded, or ``=`` and its digest when that is too long."""
    text = execution_context.short(text)
    encoded = quote(text, safe="", errors="surrogatepass")
    if len(encoded) > LONGEST_SEGMENT:
        return "=" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if encoded.strip(".") == "":
        return encoded.replace(".", "%2E") or "="
    return encoded


class Reserved(NamedTuple):
    """An owner that no id can equal; the seals of its references have a separate purpose."""

    name: str


def owner_segment(owner: str | Reserved) -> str:
    """Return an owner's segment in a header; a reserved owner's segment equals that of no text."""
    return f"={owner.name}" if isinstance(owner, Reserved) else segment(owner)


def key(execution: str, node: str, call: str, *, tenant: str = "") -> str:
    """Return the key of the result of one tool call, in one node of one execution; a retry has the same."""
    return f"tool-result/{segment(tenant)}/{segment(execution)}/{segment(node)}/{segment(call)}"


class Reference(NamedTuple):
    """A reference to a stored result; the seal binds all fields, the owner and the tenant."""

    key: str
    size: int
    digest: str
    seal: str

    def __str__(self) -> str:
        return f"claim:v2:{self.key}:{self.size}:{self.digest}:{self.seal}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Parse the text form without checking the seal; BadReferenceError for any other text."""
        match = _REFERENCE.fullmatch(text.strip()) if len(text) <= _LONGEST_REFERENCE else None
        if match is None:
            raise BadReferenceError(
                "not a reference: claim:v2:tool-result/<tenant>/<execution>/<node>/<call>:<bytes>:<digest>:<seal>, "
                "unchanged"
            )
        return cls(match[1], int(match[2]), match[3], match[4])


class Signer:
    """Maker and checker of seals: the first secret makes them, all are accepted; a random one without any."""

    def __init__(self, secret: str = "", tenant: str = "") -> None:
        keys = keys_of(secret)
        if not keys:
            errors.warn_once(
                "claim check key",
                "AGENT_OTEL_CLAIM_CHECK_KEY has no usable key: stored results can be read in this process only.",
            )
            keys = [Secret(secrets.token_hex(32))]
        self._tenant = tenant.encode("utf-8", "surrogateescape")
        self._keys = {_mac(key, "key id")[:_KEY_ID_DIGITS]: key for key in keys}
        #: Id of the key that makes seals; it reveals nothing about the key.
        self.key_id = next(iter(self._keys))

    def seal(self, purpose: str, *parts: bytes) -> str:
        """Return the seal of some parts: the beginning of an HMAC with SHA-256."""
        return _mac(self._keys[self.key_id], purpose, self._tenant, *parts)[:SEAL_DIGITS]

    def is_seal(self, seal: str, purpose: str, *parts: bytes, key_id: str | None = None) -> bool:
        """Return True for the seal of these parts, made with any of the keys, or with the key of this id."""
        keys = [key for each, key in self._keys.items() if key_id in (None, each)]
        given = seal.encode("utf-8", "replace")
        seals = (_mac(key, purpose, self._tenant, *parts)[:SEAL_DIGITS].encode() for key in keys)
        return any(hmac.compare_digest(each, given) for each in seals)

    def refer(self, key: str, owner: str | Reserved, digest: str, size: int) -> Reference:
        """Return the reference to the value of a key and an owner; ``digest`` is the full digest."""
        digest = digest[:DIGEST_DIGITS]
        return Reference(key, size, digest, self.seal(*_bound(key, owner, digest, size)))

    def vouches(self, reference: Reference, owner: str | Reserved) -> bool:
        """Return True when this reference was issued to this owner."""
        return self.is_seal(reference.seal, *_bound(reference.key, owner, reference.digest, reference.size))


def _mac(key: Secret, purpose: str, *parts: bytes) -> str:
    mac = hmac.new(key.encode("utf-8", "surrogateescape"), digestmod=hashlib.sha256)
    for part in (purpose.encode(), *parts):
        mac.update(len(part).to_bytes(8, "big"))
        mac.update(part)
    return mac.hexdigest()


def _bound(key: str, owner: str | Reserved, digest: str, size: int) -> tuple[str, bytes, bytes, bytes, bytes]:
    """Return the purpose of a reference's seal, and the parts that it binds."""
    purpose = f"reference of {owner.name}" if isinstance(owner, Reserved) else "reference"
    return purpose, key.encode(), owner_segment(owner).encode(), digest.encode(), str(size).encode()


PLAIN: Final = "plain"
"""Word after the keys in the setting: results stored without encryption stay readable."""

TAG_BYTES: Final = 16
"""Bytes that encryption adds to a chunk."""

_KEY_BYTES = 32
_NONCE_BYTES = 12
_SALT_BYTES = 16
_KEY_ID_DIGITS = 8
#: A key is derived for each purpose and each result; the setting's key itself encrypts nothing.
_KEY_OF_RESULT = b"agent_otel claim check v2: AES-256-GCM"
_KEY_ID = b"agent_otel claim check v2: key id"


class CorruptError(Exception):
    """A stored value that is not what was written under its key, or cannot be decrypted."""


class Cipher:
    """AES-GCM with keys of 32 bytes in base64: the first encrypts, all decrypt. Each result has its own key."""

    def __init__(self, keys: str) -> None:
        listed = keys_of(keys)
        self.reads_plain = PLAIN in listed[1:]
        usable = [key for at, key in enumerate(listed) if not at or key != PLAIN]
        if not usable or None in map(_decoded, usable):
            raise ValueError("not a key of 32 bytes in base64, as `openssl rand -base64 32` makes one")
        self._aead = library("cryptography.hazmat.primitives.ciphers.aead", "encryption").AESGCM
        self._hashes = library("cryptography.hazmat.primitives.hashes", "encryption")
        self._hkdf = library("cryptography.hazmat.primitives.kdf.hkdf", "encryption").HKDF
        self._keys = {self._derived(key, b"", _KEY_ID).hex()[:_KEY_ID_DIGITS]: key for key in usable}
        #: Id of the encrypting key; it reveals nothing about the key.
        self.key_id = next(iter(self._keys))

    def salt(self) -> str:
        """Return a salt for one result, in hexadecimal digits."""
        return secrets.token_hex(_SALT_BYTES)

    def encrypted(self, chunks: Iterable[memoryview], salt: str, header: bytes) -> bytes:
        """Return encrypted chunks that only the same salt and header decrypt."""
        aead = self._of_result(self.key_id, salt)
        return b"".join(
            aead.encrypt(number.to_bytes(_NONCE_BYTES, "big"), chunk, header) for number, chunk in enumerate(chunks)
        )

    def decrypted(self, key_id: str, chunks: Iterable[memoryview], salt: str, header: bytes, first: int) -> bytes:
        """Decrypt the chunks from number ``first`` on; CorruptError when anything differs."""
        if key_id not in self._keys:
            raise CorruptError("it was encrypted with another key")
        try:
            aead = self._of_result(key_id, salt)
            return b"".join(
                aead.decrypt(number.to_bytes(_NONCE_BYTES, "big"), chunk, header)
                for number, chunk in enumerate(chunks, first)
            )
        except ours(Exception) as error:
            raise CorruptError("it cannot be decrypted with this key") from error

    def _of_result(self, key_id: str, salt: str) -> Any:
        return self._aead(self._derived(self._keys[key_id], bytes.fromhex(salt), _KEY_OF_RESULT))

    def _derived(self, key: Secret, salt: bytes, purpose: bytes) -> bytes:
        hkdf = self._hkdf(algorithm=self._hashes.SHA256(), length=_KEY_BYTES, salt=salt, info=purpose)
        derived: bytes = hkdf.derive(_decoded(key))
        return derived


def _decoded(key: Secret) -> bytes | None:
    """Return the bytes of a key; None for an invalid key."""
    decoded = attempt(base64.b64decode, key.translate(str.maketrans("-_", "+/")), None, True)
    return decoded if decoded is not None and len(decoded) == _KEY_BYTES else None


VERSION = 2
HEADER_BYTES = 1024
CHUNK_BYTES = 64 * 1024

_DIGEST_BYTES = 32
_CONTENT_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+(; ?charset=[a-z0-9_.-]+)?", re.ASCII | re.IGNORECASE)
_LONGEST_CONTENT_TYPE = 100


class Origin(NamedTuple):
    """The origin of a result, from the server's own data; ``asked`` is a keyed digest of the tool and the arguments."""

    owner: str | Reserved
    execution: str
    node: str
    tool: str
    call: str
    asked: str | None = None


@dataclass(frozen=True)
class Header:
    """The description of a stored result; the first five fields are key segments.

    ``digest`` is keyed: a plain digest would confirm a guessed content. Times are seconds since 1970. ``cipher_id`` and
    ``salt`` are None without encryption.
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
    def digests(self) -> tuple[int, int]:
        """Start and end of the digests in bytes, after the last chunk; no bytes with encryption, which has tags."""
        start = self.span(0, self.bytes)[1]
        return start, start + (_DIGEST_BYTES * -(-self.bytes // CHUNK_BYTES) if self.cipher_id is None else 0)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the stored byte range of the chunks that hold bytes ``start`` up to ``end`` of the result."""
        tag_bytes = 0 if self.cipher_id is None else TAG_BYTES
        first, last = start // CHUNK_BYTES, -(-end // CHUNK_BYTES)
        begin = first * (CHUNK_BYTES + tag_bytes)
        stop = min(last * CHUNK_BYTES, self.bytes) + last * tag_bytes
        return HEADER_BYTES + begin, HEADER_BYTES + max(begin, stop)


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


#: Keys and ids that are recognised when another call or text of the process would have them.
_MOST_FIRSTS: Final = 8192

Operation = Literal["put", "get", "range", "head", "delete"]
Result = Literal["ok", "skipped", "error", "timeout", "open", "too_large", "not_found", "denied", "expired", "corrupt"]


#: Callback for each operation on the store, called from any thread, with the bytes of the result, 0 when none was
#: transferred, and the seconds.
Report: TypeAlias = "Callable[[Operation, Result, int, float], object]"


class Claims:
    """A store and its keys: the first signs, all are accepted. ValueError for an invalid one."""

    def __init__(
        self,
        store: ClaimStore,
        *,
        key: str = "",
        encryption_key: str = "",
        tenant: str = "",
        report: Report | None = None,
    ) -> None:
        self.store = store
        self._tenant = tenant
        self.signer = Signer(key, tenant)
        self._cipher = Cipher(encryption_key) if encryption_key else None
        self._report = report
        #: Digests of the calls that used a key first, and of the first texts that were kept under an id.
        self._firsts: dict[int, str] = {}

    def sealed(
        self, data: bytes, origin: Origin, *, content_type: str, ttl: float, encoding: str | None = None
    ) -> tuple[Reference, bytes]:
        """Return the reference of a result, and the envelope to store for ``ttl`` seconds."""
        key = self.key(origin.execution, origin.node, origin.call)
        header, stored = self.pack(
            key, data, origin, content_type=content_type, encoding=encoding, created=time.time(), ttl=ttl
        )
        return self.signer.refer(key, origin.owner, header.digest, len(data)), stored

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
        if len(content_type) > _LONGEST_CONTENT_TYPE or not _CONTENT_TYPE.fullmatch(content_type):
            content_type = BINARY  # an HTTP header takes no other
        header = Header(
            owner=owner_segment(origin.owner),
            execution=segment(origin.execution),
            node=segment(origin.node),
            tool=segment(origin.tool),
            call=segment(origin.call),
            digest=self.signer.seal("content", digests),
            bytes=len(data),
            content_type=content_type,
            encoding=encoding,
            created=round(created, 3),
            expires_at=round(created + ttl, 3),
            key_id=self.signer.key_id,
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
        """Check that header and digests were written under this key, and encrypted where that is required."""
        body, seal = _split(block)
        if not isinstance(header.key_id, str) or not self.signer.is_seal(
            seal.decode("ascii", "replace"), "header", key.encode(), body, digests, key_id=header.key_id
        ):
            raise CorruptError("its header is not of our making")
        if header.cipher_id is None and self._cipher is not None and not self._cipher.reads_plain:
            raise CorruptError("it is not encrypted")

    def unpack(self, key: str, stored: bytes) -> tuple[Header, bytes]:
        """Return a result and its header; CorruptError unless every byte of both is unchanged."""
        block = stored[:HEADER_BYTES]
        header = self.read_header(block)
        at, end = header.digests
        if len(stored) != end:
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
        block = _joined(body, self.signer.seal("header", key.encode(), body, digests).encode())
        if len(block) > HEADER_BYTES:
            raise ValueError(f"a header of {len(block)} bytes")
        return block.ljust(HEADER_BYTES)

    def apart(self, origin: Origin) -> Origin:
        """Return the origin of a result, with its call's digest in the key where another call has the key already."""
        if origin.asked is None:
            return origin
        key = self.key(origin.execution, origin.node, origin.call)
        first = None
        with errors.suppressed(Exception):  # mostly there is nothing; a write is tried in any case
            first = self.read_header(self.store.get_range(key, 0, HEADER_BYTES)).asked
        if first is None:
            first = self.first(key, origin.asked)
        return origin if first == origin.asked else origin._replace(call=f"{origin.call}-{origin.asked}")

    def first(self, place: Hashable, digest: str) -> str:
        """Return the digest that came first for a place; the last places of the process are remembered."""
        first = self._firsts.setdefault(hash(place), digest)
        with errors.suppressed(RuntimeError):  # another thread writes
            while len(self._firsts) > _MOST_FIRSTS:
                self._firsts.pop(next(iter(self._firsts)), None)
        return first

    def key(self, execution: str, node: str, call: str) -> str:
        """Return the key of a result of this tenant."""
        return key(execution, node, call, tenant=self._tenant)

    def group(self, execution: str) -> str:
        """Return the common prefix of the keys of an execution's results; see `group_of`."""
        return group_of(self.key(execution, "", ""))

    @errors.guarded("remedies.report")
    def report(self, operation: Operation, result: Result, size: int, started: float) -> None:
        """Report an operation that started at this value of ``time.perf_counter``."""
        if self._report is not None:
            self._report(operation, result, size, time.perf_counter() - started)


def current_owner() -> str | None:
    """Return the owner of a call made in this context, from the server's own data; None without any.

    A client that chooses the id of a thread or session chooses the owner, unless the server names the execution.
    """
    return execution_context.owner_here()
