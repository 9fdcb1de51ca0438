"""The policy's file: read at start-up, read again when it changes, and never the reason for a call that goes on."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

import agent_otel
from agent_otel._internal import errors
from agent_otel.remedies.dispatch_policy import source
from agent_otel.remedies.dispatch_policy.rules import has_forbidden
from agent_otel.remedies.dispatch_policy.source import PolicySource
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEYS = "workflow, agent, tools, require, forbid, inject, approve"
KINDS = "is not a text, a number or a truth value, a list of them, or a table of such"
ALLOWS = '[[rules]]\ntools = "{}"\n'


@contextlib.contextmanager
def _said_anew() -> Iterator[None]:
    """Log each warning again, although it was logged before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "_said", set())
        yield


@pytest.fixture(autouse=True)
def _said_nothing() -> Iterator[None]:
    with _said_anew():
        yield


def allows(policy: PolicySource, tool: str) -> bool:
    return policy.policy is not None and policy.policy.rule_for(None, None, tool) is not None


@each_row(
    ("content", "reason"),
    [
        (b"rules = [", "it is not TOML: at end of document"),
        (b'rules = "secret text', "it is not TOML: at end of document"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"[[rules]]\nfoo = 1", f"rules[0] has unknown keys: foo; possible are {KEYS}"),
        (b"#" * (1024 * 1024 + 1), "it is no file of at most 1 MiB"),
        (b"[[rules]]\ntools = 1979-05-27", "rules[0].tools is not a text, in which * stands for any characters"),
        (b"[rules]\ntools = 'a'", "rules is not a list of tables"),
        (b"rules = [1]", "rules[0] is not a table"),
        (b"mode = true", "mode is not one of enforce, monitor"),
        (b"[[rules]]\ntools = 'a'\nforbid = { n = nan }", "rules[0].forbid.n is a number that equals no other"),
        (b"[[rules]]\ntools = 'a'\nforbid = { n = [inf] }", "rules[0].forbid.n is a number that equals no other"),
        (b"[[rules]]\ntools = 'a'\nforbid = { n = 07:32:00 }", f"rules[0].forbid.n {KINDS}"),
        (b"[[rules]]\ntools = 'a'\nforbid = { n = [[1]] }", f"rules[0].forbid.n {KINDS}"),
        (b"[[rules]]\ntools = 'a'\nforbid = { n = {} }", f"rules[0].forbid.n {KINDS}"),
        (b"[[rules]]\ntools = 'a'\ninject = { t = 'secret' }", "rules[0].inject.t is not a table"),
        (b"[[rules]]\ntools = 'a'\ntools = 'b'", "it is not TOML: at end of document"),
    ],
around=_said_anew)  # fmt: skip
def test_an_unreadable_file_denies_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, reason: str
) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(content)
    assert PolicySource(str(file)).policy is None
    assert caplog.messages == [f"AGENT_OTEL_TOOL_POLICY={file} cannot be read, every tool call is denied: {reason}"]


def test_a_file_that_is_not_there_denies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = PolicySource(str(tmp_path / "none.toml"))
    assert found.policy is None
    assert "every tool call is denied: FileNotFoundError: No such file or directory" in caplog.text
    (tmp_path / "none.toml").write_text(ALLOWS.format("read"))
    found.refresh()
    assert allows(found, "read")
    assert PolicySource(str(tmp_path)).policy is None  # a folder


def test_an_empty_policy_is_valid_and_says_what_it_does(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "policy.toml"
    file.write_bytes(b"\xef\xbb\xbf# nothing yet")
    found = PolicySource(str(file))
    assert found.policy is not None
    assert not allows(found, "read")
    assert caplog.messages == [f"AGENT_OTEL_TOOL_POLICY={file} has no rules: no tool may be called."]


def test_an_edit_is_read_and_a_broken_one_keeps_the_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("agent_otel.remedies.dispatch_policy.source.time.monotonic", lambda: now[0])
    file = tmp_path / "policy.toml"
    file.write_text(ALLOWS.format("read"))
    found = PolicySource(str(file))

    def edit(content: str | None) -> None:
        assert [found.is_due] == [False]
        if content is None:
            file.unlink()
        else:
            file.write_text(content)
            os.utime(file, ns=(int(now[0]) * 10**9, int(now[0]) * 10**9))
        now[0] += 5.0
        assert [found.is_due] == [True]
        found.refresh()

    edit(ALLOWS.format("write"))
    assert (allows(found, "read"), allows(found, "write")) == (False, True)
    assert caplog.messages == []
    edit("[[rules]]\ntools = ")
    assert (allows(found, "read"), allows(found, "write")) == (False, True)
    assert "cannot be read, the last policy that could be read stays: it is not TOML" in caplog.text
    edit(None)
    assert allows(found, "write")
    edit(ALLOWS.format("read"))
    assert (allows(found, "read"), allows(found, "write")) == (True, False)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_a_file_is_read_when_it_is_written_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, clock = [100.0], [1_000_000.0]
    monkeypatch.setattr("agent_otel.remedies.dispatch_policy.source.time.monotonic", lambda: now[0])
    monkeypatch.setattr("agent_otel.remedies.dispatch_policy.source.time.time", lambda: clock[0])
    file = tmp_path / "policy.toml"

    def write(content: str, seconds: float = 0.0) -> None:
        file.write_text(content)
        os.utime(file, (clock[0] - seconds, clock[0] - seconds))

    write(ALLOWS.format("read") + 'forbid = { path = "/etc/*" }\n', 60)
    found = PolicySource(str(file))

    def forbids() -> bool:
        rule = None if found.policy is None else found.policy.rule_for(None, None, "read")
        return rule is not None and bool(rule.forbid)

    write(ALLOWS.format("read"))  # the first half
    now[0] += 5.0
    found.refresh()
    assert forbids()
    write(ALLOWS.format("read") + 'forbid = { path = "/root/*" }\n')
    now[0], clock[0] = now[0] + 1.0, clock[0] + 1.0
    assert found.is_due
    found.refresh()
    assert found.policy is not None
    assert has_forbidden("/root/a", found.policy.rules[0].forbid[("path",)])


def test_an_edit_of_the_same_size_and_time_is_read(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(ALLOWS.format("read"))
    os.utime(file, (1, 1))
    found = PolicySource(str(file))
    file.write_text(ALLOWS.format("edit"))
    os.utime(file, (1, 1))
    found.refresh()
    assert (allows(found, "read"), allows(found, "edit")) == (False, True)


def test_a_link_to_another_policy_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for tool in ("read", "edit"):
        (tmp_path / f"{tool}.toml").write_text(ALLOWS.format(tool))
        os.utime(tmp_path / f"{tool}.toml", (1, 1))
    link, other = tmp_path / "policy.toml", tmp_path / "other"
    link.symlink_to("read.toml")
    found = PolicySource(str(link))
    other.symlink_to("edit.toml")
    other.replace(link)
    found.refresh()
    assert (allows(found, "read"), allows(found, "edit")) == (False, True)
    link.unlink()
    link.symlink_to("policy.toml")  # to itself
    found.refresh()
    assert allows(found, "edit")
    assert "the last policy that could be read stays: OSError: Too many levels of symbolic links" in caplog.text


def test_a_pipe_holds_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "policy.toml")
    assert PolicySource(str(tmp_path / "policy.toml")).policy is None
    assert "every tool call is denied: it is no file of at most 1 MiB" in caplog.text


def test_a_thread_does_not_wait_for_another_that_reads(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(ALLOWS.format("read"))
    found = PolicySource(str(file))
    file.write_text(ALLOWS.format("another"))
    os.utime(file, (1, 1))
    with found._lock:  # as held by a thread that reads
        found.refresh()
    assert allows(found, "read")
    found.refresh()
    assert allows(found, "another")


def test_the_program_gives_the_policy(set_variables: Callable[..., None]) -> None:
    with pytest.raises(RuntimeError, match="AGENT_OTEL_TOOL_POLICY is unset; set it to code"):
        agent_otel.remedies.use_policy({})
    set_variables(AGENT_OTEL_TOOL_POLICY="code")
    found: Any = source.current()
    assert found.policy is None
    agent_otel.remedies.use_policy({"rules": [{"tools": "read"}]})
    assert allows(found, "read")
    with pytest.raises(agent_otel.remedies.PolicyError):
        agent_otel.remedies.use_policy({"rules": 5})
    assert allows(found, "read")


def test_a_file_of_others_and_a_long_key_deny(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(ALLOWS.format("read"))
    for mode in (0o664, 0o646, 0o666):
        file.chmod(mode)
        assert PolicySource(str(file)).policy is None
    assert "another user than root and the one of this process can write to it" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    file.chmod(0o600)
    assert allows(PolicySource(str(file)), "read")
    keys = (
        "a." * 200_000 + "a = 1",
        "[" + "a . " * 100_000 + "a]",
        "'a'." * 100_000 + "a = 1",
        "x = { " + "a." * 99_999 + "a = 1 }",
    )
    for key in (*keys, "x = " + "[" * 400_000, "x = " + "{a=" * 100_000):
        file.write_text(key)
        began = time.monotonic()
        assert PolicySource(str(file)).policy is None
        assert time.monotonic() - began < 5


def test_ten_thousand_rules_are_read_and_asked_fast(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    rules = (f'[[rules]]\ntools = "tool_{number}"\nrequire = {{ n = {number} }}\n' for number in range(10_000))
    file.write_text("".join(rules))
    found = PolicySource(str(file))
    began = time.monotonic()
    assert [allows(found, "tool_9999") for _ in range(1_000)] == [True] * 1_000
    assert not allows(found, "tool_10000")
    assert time.monotonic() - began < 5


def test_utf_16_denies_with_a_clear_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(ALLOWS.format("read"), encoding="utf-16")
    assert PolicySource(str(file)).policy is None
    assert "every tool call is denied: it is not UTF-8" in caplog.text
