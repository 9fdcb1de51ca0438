"""The commands against servers that are hostile: endless, slow, packed answers, and texts that command a terminal."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from agent_otel.cli import http_client
from tests.unit.cli.running import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

BAD = "\x1b[31mred\x1b]0;title\x07\u202e\x9b2J"


@contextmanager
def serving(head: str, body: bytes, *, is_endless: bool = False) -> Iterator[str]:
    """Serve one answer to each request, over and over if it ``is_endless``."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with closing(connection), suppress(OSError):
                    connection.recv(65_536)
                    connection.sendall(f"HTTP/1.1 {head}\r\nConnection: close\r\n\r\n".encode() + body)
                    while is_endless:
                        connection.sendall(body)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def commands(url: str) -> list[tuple[str, ...]]:
    """Return the commands that ask a server."""
    return [
        ("alerts", "check", "--url", url),
        ("report", "--url", url),
        ("dashboards", "push", "--url", url),
        ("metrics", url),
    ]


def test_an_answer_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MOST_BYTES", 2_000_000)
    packed = gzip.compress(b" " * 50_000_000)
    double = gzip.compress(packed)
    answers = (
        ("200 OK", b" " * 65_536, True, "more than 2,000,000 bytes"),
        ("500 Bad", b" " * 65_536, True, "more than 2,000,000 bytes"),
        (f"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}", packed, False, "more than 2,000,000"),
        (f"200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: {len(double)}", double, False, "encoding"),
        ("200 OK\r\nContent-Encoding: br", b"x", False, "encoding"),
        ("200 OK", b"[" * 1_000_000, False, "address"),
    )
    for head, body, is_endless, message in answers:
        with serving(head, body, is_endless=is_endless) as url:
            for command in commands(url)[: 3 if body[:1] == b"[" else 4]:
                ran = run(*command, env={"GRAFANA_TOKEN": "t"})
                assert 1 == ran.code, (command, ran)
                assert message in ran.err, (command, ran)


def test_a_slow_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MOST_SECONDS", 0.0)
    with serving("200 OK", b" ", is_endless=True) as url:
        assert "more than" in run("metrics", url).err


def test_what_a_server_says_is_shown_and_not_obeyed() -> None:
    error = json.dumps({"message": BAD, "error": BAD}, ensure_ascii=False).encode()
    location = "http://user:SECRET@other/login?token=SECRET"
    for head, body in (
        ("500 Bad", error),
        ("401 No", error),
        ("403 No", error),
        ("404 No", error),
        (f"500 {BAD.encode('unicode_escape').decode()}", b""),
        (f"302 Moved\r\nLocation: {location}", b""),
        ("200 OK\r\nContent-Type: te\u00ffxt", error),
    ):
        with serving(head, body) as url:
            for command in commands(url):
                ran = run(*command, env={"GRAFANA_TOKEN": "t"})
                shown = ran.out + ran.err
                assert [] == [sign for sign in shown if sign != "\n" and not sign.isprintable()], (head, command)
                assert "SECRET" not in shown
