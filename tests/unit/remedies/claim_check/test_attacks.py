"""Attacks on references: by another execution, by the owner himself, by look-alikes, across tenants and payloads."""

from __future__ import annotations

import base64
import contextvars
import functools
import hashlib
import random
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel.core import execution_context, handler, tool_invocation
from agent_otel.core.types import Invocation, Replacement, ToolCall, ToolReader, ToolResult
from agent_otel.remedies.claim_check.envelope import BadReferenceError, Claims, Origin, Reference, Signer
from agent_otel.remedies.claim_check.payload_store import Payloads
from agent_otel.remedies.claim_check.reader import ClaimReader, Place
from agent_otel.remedies.claim_check.stores import NotFoundError
from agent_otel.remedies.claim_check.stores.base import MemoryStore
from agent_otel.remedies.claim_check.writer import ClaimWriter, Stored
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "the secret of this test"
REFUSAL = {"error": "tool_result_unavailable", "hint": "there is no such result"}
ALICE = "thread-1"
_READER = ToolReader(lambda invocation: invocation.instance, ToolResult, replace=lambda _, found, __: found)
_ASKED: Any = Invocation(None, (), {})


@pytest.fixture
def _store(set_variables: Callable[..., None]) -> None:
    set_variables(
        AGENT_OTEL="1",
        AGENT_OTEL_CLAIM_CHECK="memory:",
        AGENT_OTEL_CLAIM_CHECK_KEY=KEY,
        AGENT_OTEL_CLAIM_CHECK_BUDGET="30",
    )


def _asks(thread: str, value: object = "s" * 100_000, tool: str = "search") -> Any:
    """What a framework hands to the model, in a thread that a client has named."""
    visit = handler.enter_tool(_READER, Invocation(ToolCall(tool, {}, "call_1", execution=thread), (), {}))
    assert isinstance(visit, handler.Visit)
    with visit:
        return visit.remedied(value, _ASKED)


def _stored(thread: str) -> str:
    found = _asks(thread)
    assert isinstance(found, Replacement)
    match = re.search(r'ref="(claim:[^"]+)"', found.text)
    assert match is not None
    return match[1]


def _read_by(thread: str, ref: str) -> Any:
    """The answer to a model that was told to read a reference, in a thread that a client has named."""
    visit = handler.enter_tool(_READER, Invocation(ToolCall("get_tool_result", {}, "call_2", execution=thread), (), {}))
    assert isinstance(visit, handler.Visit)
    with visit:
        return agent_otel.remedies.get_tool_result(ref)


def _in_a_fresh_thread(read: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(contextvars.Context().run(read)))
    thread.start()
    thread.join()
    return answers[0]


def _as_execution(read: Callable[[], Any], name: str) -> Any:
    with agent_otel.execution(name):
        return read()


def _as_run(read: Callable[[], Any], name: str) -> Any:
    token = execution_context.runtime.set(execution_context.Carrier(name))
    try:
        return read()
    finally:
        execution_context.runtime.reset(token)


@pytest.mark.usefixtures("_store")
def test_a_reference_is_worth_nothing_to_any_other() -> None:
    ref = _stored(ALICE)

    def read() -> Any:
        return agent_otel.remedies.get_tool_result(ref)

    answers = [
        _read_by("thread-2", ref),  # a prompt that smuggles a foreign reference in
        read(),  # no execution
        _in_a_fresh_thread(read),
        _as_execution(read, "thread-2"),
        _as_run(read, "thread-2"),
        _as_execution(lambda: _read_by(ALICE, ref), "bob/1"),
        _as_run(lambda: _read_by(ALICE, ref), "bob/1"),
    ]

    assert [REFUSAL] * 7 == answers
    assert "s" * 16_384 == _read_by(ALICE, ref)["content"]
    assert tool_invocation.current.get() is None


@pytest.mark.usefixtures("_store")
@pytest.mark.shows("000.authorised")
def test_a_client_that_names_anothers_thread_reads_nothing_where_the_server_names_executions() -> None:
    with agent_otel.execution("alice/1"):
        ref = _stored(ALICE)

    with agent_otel.execution("bob/1"):
        assert REFUSAL == _read_by(ALICE, ref)
    assert REFUSAL == _read_by(ALICE, ref)
    with agent_otel.execution("alice/1"):
        assert "s" * 16_384 == _read_by("any", ref)["content"]


_LOOK_ALIKES = [
    "a ", " a", "A", "\uff21", "\uff41", "%61", "a\u200b", "\u0430", "a\0", "a/", "./a", "=a", "a\u0301", "",
    "=ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",  # SHA-256 of the owner
    "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
]  # fmt: skip


@each_row("caller", _LOOK_ALIKES)
def test_look_alikes_of_an_owner_read_nothing(caller: str) -> None:
    claims = Claims(MemoryStore(), key=KEY)
    ref = _put(claims, "a")

    for what in (ref, Place("run", "node", "call")):
        with pytest.raises(NotFoundError):
            ClaimReader(claims).resolve(what, caller=caller)
    assert b"secret" == ClaimReader(claims).resolve(ref, caller="a").data


def _put(claims: Claims, owner: str, data: str = "secret") -> str:
    outcome = ClaimWriter(claims, budget=30).put(data, Origin(owner, "run", "node", "search", "call"))
    assert isinstance(outcome, Stored)
    return str(outcome.reference)


def _edits(text: str, others: list[str], count: int) -> list[str]:
    """What an owner may make of references of his: cut, edited, recombined."""
    chance = random.Random(4711)  # noqa: S311 - the same edits each time
    letters = "0123456789abcdefABCXYZ:/%=.~-_ \n\0\u0660"
    edited: list[str] = []
    while len(edited) < count:
        at, to = sorted(chance.sample(range(len(text) + 1), 2))
        parts, foreign = text.split(":"), chance.choice(others).split(":")
        place = chance.randrange(len(parts))
        edited += [
            text[:at] + text[to:],
            text[:at] + chance.choice(letters) + text[at + 1 :],
            text[:at] + chance.choice(letters) + text[at:],
            text[:at] + text[at:to][::-1] + text[to:],
            ":".join([*parts[:place], foreign[place], *parts[place + 1 :]]),
            ":".join([*parts[: place + 1], *foreign[place + 1 :]]),
            text[:at] + text[at:to].swapcase() + text[to:],
        ]
    return [each for each in edited[:count] if each.strip() != text and each not in others]


def test_twenty_thousand_edited_references_are_refused() -> None:
    signer = Signer(KEY)
    key = "tool-result/=/run/node/call_{}"
    mine = [str(signer.refer(key.format(at), "mallory", f"{at:064x}", 1_000 + at)) for at in range(4)]
    foreign = [str(signer.refer(key.format(at), ALICE, f"{at + 7:064x}", 1_000 + at)) for at in range(4)]
    edited = _edits(mine[0], mine[1:] + foreign, 30_000)
    accepted = []
    for text in edited:
        try:
            reference = Reference.parse(text)
        except BadReferenceError:
            continue
        if signer.vouches(reference, "mallory"):
            accepted.append(text)

    assert 20_000 < len(edited)
    assert [] == accepted
    assert all(not signer.vouches(Reference.parse(text), "mallory") for text in foreign)


def test_a_tenant_neither_reads_nor_replaces_what_is_anothers() -> None:
    store = MemoryStore()
    acme, other = Claims(store, key=KEY, tenant="acme"), Claims(store, key=KEY, tenant="other")
    ref, theirs = _put(acme, ALICE), _put(other, ALICE, "of the other")

    assert b"secret" == ClaimReader(acme).resolve(ref, caller=ALICE).data
    assert b"secret" == ClaimReader(acme).resolve(Place("run", "node", "call"), caller=ALICE).data
    assert b"of the other" == ClaimReader(other).resolve(Place("run", "node", "call"), caller=ALICE).data
    for reader, what in ((ClaimReader(other), ref), (ClaimReader(acme), theirs), (ClaimReader(Claims(store)), ref)):
        with pytest.raises(NotFoundError):
            reader.resolve(what, caller=ALICE)

    assert 1 == store.delete_group(other.group("run"))
    assert b"secret" == ClaimReader(acme).resolve(ref, caller=ALICE).data


@each_row(
    "name",
    ["agent_otel: payloads of durable runtimes", "payloads", "=payloads", "%3Dpayloads", "Reserved(name='payloads')"],
)
def test_payloads_of_durable_runtimes_are_no_executions(name: str) -> None:
    claims = Claims(MemoryStore(), key=KEY)
    payloads = Payloads(claims, keep_seconds=60, timeout=30)
    reference = payloads.put(b"a payload", "workflow-1", "activity")
    reader = ClaimReader(claims)

    place = Place("workflow-1", "activity", reference.key.rpartition("/")[2])
    for what in (reference, place):
        with pytest.raises(NotFoundError):
            reader.resolve(what, caller=name)
        with agent_otel.execution(name), pytest.raises(NotFoundError):
            reader.resolve(what)
    assert b"a payload" == payloads.get(str(reference))
    assert not payloads.knows(_put(claims, name))


@pytest.mark.parametrize("encryption_key", ["", base64.b64encode(b"k" * 32).decode()], ids=["plain", "encrypted"])
def test_a_balance_cannot_be_recovered_from_an_exported_reference(encryption_key: str) -> None:
    """No run of digits in the reference is one that the content gives without the key, however it is digested."""
    data = b"balance: 4711 EUR"
    claims = Claims(MemoryStore(), key=KEY, encryption_key=encryption_key)
    outcome = ClaimWriter(claims, budget=30).put(data, Origin("run", "run", "node", "search", "call"), distinct=True)
    assert isinstance(outcome, Stored)
    exported = re.findall(r"[0-9a-f]{16,}", str(outcome.reference))
    named = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2s")
    makers: list[Callable[[bytes], Any]] = [functools.partial(hashlib.new, name) for name in named]
    makers += [functools.partial(hashlib.blake2b, digest_size=size) for size in range(4, 65)]
    guesses = (data, hashlib.sha256(data).digest(), b"search" + data)
    digests = {make(guess).hexdigest() for make in makers for guess in guesses}

    assert [16, 16, 32] == [len(each) for each in exported]
    assert [] == [digest for digest in digests for each in exported if each[:8] in digest]
