"""The key that a result is stored under, and the reference to it that stands in the model's view and in the state.

Both are made here alone, for whoever writes and whoever reads.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple
from urllib.parse import quote

from agent_otel import _shield

#: A longer segment of a key is replaced by its digest. Five of this length and the rest fit a header of 1 KiB.
LONGEST_SEGMENT = 100
#: Hexadecimal digits of a result's digest, and of a seal, in a reference.
DIGEST_DIGITS = 16
SEAL_DIGITS = 32

_SEGMENT = r"[A-Za-z0-9_.~%=-]{1,100}"
_REFERENCE = re.compile(
    rf"claim:v1:(tool-result/{_SEGMENT}/{_SEGMENT}/{_SEGMENT})"
    rf":([0-9]{{1,15}}):([0-9a-f]{{{DIGEST_DIGITS}}}):([0-9a-f]{{{SEAL_DIGITS}}})"
)
_LONGEST_REFERENCE = 512


class BadReferenceError(ValueError):
    """A text is no reference to a result."""


def segment(text: str) -> str:
    """Return a text as one segment of a key: percent-encoded, or its digest when that is too long.

    Different texts give different segments; none is empty, ``.`` or ``..``, or has a ``/``. ``=`` begins what is no
    percent-encoded text.
    """
    encoded = quote(text, safe="", errors="surrogatepass")
    if len(encoded) > LONGEST_SEGMENT:
        return "=" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if encoded.strip(".") == "":
        return encoded.replace(".", "%2E") or "="
    return encoded


def key(execution: str, node: str, call: str) -> str:
    """Return the key of the result of one tool call, in one node (a step, an activity, an agent) of one execution.

    Models number their calls anew in each run, some in each turn: ``execution`` is to be the run, and ``node`` is to
    tell its turns apart. The same three are the same result, tried again; a second write replaces the first.
    """
    return f"tool-result/{segment(execution)}/{segment(node)}/{segment(call)}"


class Reference(NamedTuple):
    """What can be exchanged for a stored result: its key, its bytes, the first digits of its digest, and a seal.

    The seal binds the rest, and the owner, who is not named. ``str()`` is the text form.
    """

    key: str
    size: int
    digest: str
    seal: str

    def __str__(self) -> str:
        return f"claim:v1:{self.key}:{self.size}:{self.digest}:{self.seal}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read the text form; BadReferenceError when it is none. The seal is not looked at."""
        match = _REFERENCE.fullmatch(text.strip()) if len(text) <= _LONGEST_REFERENCE else None
        if match is None:
            raise BadReferenceError(
                "not a reference: claim:v1:tool-result/<execution>/<node>/<call>:<bytes>:<digest>:<seal>, unchanged"
            )
        return cls(match[1], int(match[2]), match[3], match[4])


class Signer:
    """Makes seals, and tells whether one is of its making.

    ``secret`` is any text. Without one it is random: what was stored then can be read by this process and the children
    it forks, and by nobody else.
    """

    def __init__(self, secret: str = "") -> None:
        if not secret:
            _shield.say_once(
                "claim check key",
                "AGENT_OTEL_CLAIM_CHECK_KEY is not set: references to stored results can be read in this process only.",
            )
        self._secret = secret.encode("utf-8", "surrogateescape") if secret else secrets.token_bytes(32)

    def seal(self, purpose: str, *parts: bytes) -> str:
        """Return the seal of some parts: the beginning of an HMAC with SHA-256."""
        mac = hmac.new(self._secret, purpose.encode(), hashlib.sha256)
        for part in parts:
            mac.update(len(part).to_bytes(8, "big"))
            mac.update(part)
        return mac.hexdigest()[:SEAL_DIGITS]

    def refer(self, key: str, owner: str, digest: str, size: int) -> Reference:
        """Return the reference to what is stored under a key and belongs to an owner; ``digest`` is the whole one."""
        digest = digest[:DIGEST_DIGITS]
        return Reference(key, size, digest, self._of_reference(key, owner, digest, size))

    def vouches(self, reference: Reference, owner: str) -> bool:
        """Whether this very reference was given to this owner."""
        expected = self._of_reference(reference.key, owner, reference.digest, reference.size)
        return hmac.compare_digest(expected, reference.seal)

    def _of_reference(self, key: str, owner: str, digest: str, size: int) -> str:
        parts = (key, segment(owner), digest, str(size))
        return self.seal("reference", *(part.encode() for part in parts))
