"""The key that a result is stored under, and the reference to it that stands in the model's view and in the state.

Both are made here alone, for the writer and the reader. Seals are HMACs of the standard library, not itsdangerous'
signatures, for two reasons. Pages and the stores ``memory:`` and ``file:`` work with the core dependencies alone. And a
seal binds what does not stand in the text beside it (the owner, the tenant, the scope of a cursor), whereas
itsdangerous signs a text that it hands out.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple
from urllib.parse import quote

from agent_otel._internal import errors
from agent_otel._internal.setting_kinds import Secret, keys_of
from agent_otel.core import execution_context

#: A longer segment of a key is replaced by its digest. Five of this length and the rest fit a header of 1 KiB.
LONGEST_SEGMENT = 100
#: Hexadecimal digits of a result's digest, and of a seal, in a reference.
DIGEST_DIGITS = 16
SEAL_DIGITS = 32
_KEY_ID_DIGITS = 8

_SEGMENT = r"[A-Za-z0-9_.~%=-]{1,100}"
_REFERENCE = re.compile(
    rf"claim:v2:(tool-result/{_SEGMENT}/{_SEGMENT}/{_SEGMENT}/{_SEGMENT})"
    rf":(0|[1-9][0-9]{{0,14}}):([0-9a-f]{{{DIGEST_DIGITS}}}):([0-9a-f]{{{SEAL_DIGITS}}})"
)
_LONGEST_REFERENCE = 512


class BadReferenceError(ValueError):
    """A text is no reference to a result."""


def segment(text: str) -> str:
    """Return a text as one segment of a key: percent-encoded, or its digest when that is too long.

    An id above 128 characters is the digest that stands for it elsewhere, too. Other different texts give different
    segments; none is empty, ``.`` or ``..``, or has a ``/``. ``=`` begins what is no percent-encoded text.
    """
    text = execution_context.short(text)
    encoded = quote(text, safe="", errors="surrogatepass")
    if len(encoded) > LONGEST_SEGMENT:
        return "=" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if encoded.strip(".") == "":
        return encoded.replace(".", "%2E") or "="
    return encoded


class Reserved(NamedTuple):
    """An owner that no id can spell: its references are sealed for a purpose of their own."""

    name: str


def owner_segment(owner: str | Reserved) -> str:
    """Return an owner as a header has it; that of a reserved one is no segment of any text."""
    return f"={owner.name}" if isinstance(owner, Reserved) else segment(owner)


def key(execution: str, node: str, call: str, *, tenant: str = "") -> str:
    """Return the key of the result of one tool call, in one node (a step, an activity, an agent) of one execution.

    Models number their calls anew in each run, some in each turn: ``execution`` is to be the run, and ``node`` is to
    tell its turns apart. The same three are the same result, tried again; a second write replaces the first.
    """
    return f"tool-result/{segment(tenant)}/{segment(execution)}/{segment(node)}/{segment(call)}"


class Reference(NamedTuple):
    """A text that can be exchanged for a stored result: its key, its bytes, the beginning of its digest, and a seal.

    The digest is keyed: it gives nothing away of a result that can be guessed. The seal binds the rest, and the owner
    and the tenant, who are not named. ``str()`` is the text form.
    """

    key: str
    size: int
    digest: str
    seal: str

    def __str__(self) -> str:
        return f"claim:v2:{self.key}:{self.size}:{self.digest}:{self.seal}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read the text form; BadReferenceError when it is none. The seal is not looked at."""
        match = _REFERENCE.fullmatch(text.strip()) if len(text) <= _LONGEST_REFERENCE else None
        if match is None:
            raise BadReferenceError(
                "not a reference: claim:v2:tool-result/<tenant>/<execution>/<node>/<call>:<bytes>:<digest>:<seal>, "
                "unchanged"
            )
        return cls(match[1], int(match[2]), match[3], match[4])


class Signer:
    """Makes seals, and tells whether one is of its making.

    ``secret`` is any text, or several separated by commas: the first makes seals, and those of all are accepted.
    Without one it is random: only this process and the children it forks can read what it has stored. ``tenant`` enters
    every seal: what is sealed for one is worth nothing to another.
    """

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
        #: Names the key that seals are made with, and gives nothing of it away.
        self.key_id = next(iter(self._keys))

    def seal(self, purpose: str, *parts: bytes) -> str:
        """Return the seal of some parts: the beginning of an HMAC with SHA-256."""
        return self._seal(self._keys[self.key_id], purpose, parts)

    def is_seal(self, seal: str, purpose: str, *parts: bytes, key_id: str | None = None) -> bool:
        """Tell whether this is the seal of these parts, made with any of the keys, or with the one of this id."""
        keys = [key for each, key in self._keys.items() if key_id in (None, each)]
        given = seal.encode("utf-8", "replace")
        return any(hmac.compare_digest(self._seal(key, purpose, parts).encode(), given) for key in keys)

    def refer(self, key: str, owner: str | Reserved, digest: str, size: int) -> Reference:
        """Return the reference to what is stored under a key and belongs to an owner; ``digest`` is the whole one."""
        digest = digest[:DIGEST_DIGITS]
        return Reference(key, size, digest, self.seal(*_bound(key, owner, digest, size)))

    def vouches(self, reference: Reference, owner: str | Reserved) -> bool:
        """Tell whether this very reference was given to this owner."""
        return self.is_seal(reference.seal, *_bound(reference.key, owner, reference.digest, reference.size))

    def _seal(self, key: Secret, purpose: str, parts: tuple[bytes, ...]) -> str:
        return _mac(key, purpose, self._tenant, *parts)[:SEAL_DIGITS]


def _mac(key: Secret, purpose: str, *parts: bytes) -> str:
    mac = hmac.new(key.encode("utf-8", "surrogateescape"), digestmod=hashlib.sha256)
    for part in (purpose.encode(), *parts):
        mac.update(len(part).to_bytes(8, "big"))
        mac.update(part)
    return mac.hexdigest()


def _bound(key: str, owner: str | Reserved, digest: str, size: int) -> tuple[str, bytes, bytes, bytes, bytes]:
    """Return what the seal of a reference is for, and what it binds."""
    purpose = f"reference of {owner.name}" if isinstance(owner, Reserved) else "reference"
    return purpose, key.encode(), owner_segment(owner).encode(), digest.encode(), str(size).encode()
