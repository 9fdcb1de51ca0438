"""Encryption of stored results, a chunk at a time."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.errors import attempt, ours
from agent_otel.remedies.claim_check.stores.base import library
from agent_otel.settings.kinds import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_otel.settings.kinds import Secret

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
    """AES-GCM with keys of 32 bytes, in base64 and separated by commas: the first encrypts, all decrypt.

    HKDF derives a separate key for each result from a random salt, so that a chunk's number can be its nonce. Chunks
    can be read alone, but not exchanged or left out. ValueError for an invalid key, StoreError without
    ``cryptography``.
    """

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
        return b"".join(aead.encrypt(_nonce(number), chunk, header) for number, chunk in enumerate(chunks))

    def decrypted(self, key_id: str, chunks: Iterable[memoryview], salt: str, header: bytes, first: int) -> bytes:
        """Decrypt the chunks from number ``first`` on; CorruptError when anything differs."""
        if key_id not in self._keys:
            raise CorruptError("it was encrypted with another key")
        try:
            aead = self._of_result(key_id, salt)
            return b"".join(aead.decrypt(_nonce(number), chunk, header) for number, chunk in enumerate(chunks, first))
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


def _nonce(number: int) -> bytes:
    return number.to_bytes(_NONCE_BYTES, "big")
