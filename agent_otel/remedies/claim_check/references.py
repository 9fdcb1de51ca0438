"""The storage key of a result, and the reference to it in the model's view and in the state.

Writer and reader both use this module. Seals are HMACs of the standard library, not itsdangerous' signatures, for two
reasons. Pages and the stores ``memory:`` and ``file:`` work with the core dependencies alone. And a seal also binds
data that is not in the text (the owner, the tenant, the scope of a cursor); itsdangerous signs only the text itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple
from urllib.parse import quote

from agent_otel._internal import errors
from agent_otel.core import execution_context
from agent_otel.settings.kinds import Secret, keys_of

#: A longer key segment is replaced by its digest. Five segments of this length and the other fields fit a header of 1
#: KiB.
LONGEST_SEGMENT = 100
DIGEST_DIGITS = 16
SEAL_DIGITS = 32
_KEY_ID_DIGITS = 8

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
