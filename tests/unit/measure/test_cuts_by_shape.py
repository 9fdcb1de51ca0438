"""Cuts that no marker in its usual place reports: by lines, by a transport, by depth, and inside of a document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_otel.measure.truncation import Cut, find_cut
from tests.rows import each_row

PROSE = "The quick brown fox jumps over the lazy dog; nothing is missing here. " * 300


def _codex(lines: list[str], *, header: bool = True) -> str:
    """Return the head and tail that Codex keeps: 128 lines each, 5,120 bytes of the head, 10,240 bytes in all."""
    head = "".join(lines[:128]).encode()[:5_120].decode("utf-8", "ignore")
    omitted = len(lines) - 256
    notice = f"omitted {omitted} of {len(lines)} lines" if omitted > 0 else "output truncated to fit 10240 bytes"
    kept = f"{head}\n[... {notice} ...]\n\n"
    tail = "".join(lines[max(128, omitted + 128) :]).encode()[-(10_240 - len(kept.encode())) :]
    front = f"Total output lines: {len(lines)}\n\n" if header else ""
    return front + kept + tail.decode("utf-8", "ignore")


SHORT_THEN_LONG = [f"{number}\n" for number in range(200)] + [f"line {number} of the build\n" for number in range(250)]
LONG_THEN_SHORT = [f"line {number} of the whole build\n" for number in range(150)] + ["ok\n"] * 200
WIDE_TAIL = [f"{number}\n" for number in range(300)] + [f"{'word ' * 40}{number}\n" for number in range(128)]
FEW_LINES = ["a short line\n"] * 140 + [f"{'word ' * 200}\n"] * 40
OTHER_SIGNS = [f"{number}\n" for number in range(200)] + [f"数据 {number}\n" for number in range(400)]


@each_row("header", [True, False], ids=["header", "plain"])
@each_row(
    "lines",
    [SHORT_THEN_LONG, LONG_THEN_SHORT, WIDE_TAIL, FEW_LINES, OTHER_SIGNS],
    ids=["short then long", "long then short", "wide tail", "few lines", "other signs"],
)
@pytest.mark.shows("001.host_cuts")
def test_codex_cuts_by_lines(lines: list[str], header: bool) -> None:  # noqa: FBT001
    text = _codex(lines, header=header)
    size_bytes = len(text.encode())
    assert size_bytes <= 10_240 + 64
    assert Cut("marker") == find_cut(text, size_bytes)
    envelope = json.dumps({"output": text, "metadata": {"exit_code": 0, "duration_seconds": 1.2}})
    assert Cut("marker") == find_cut(envelope)
    assert Cut("marker") == find_cut(envelope.replace('": ', '":'))


@each_row("sign", ["x", "é", "数"])
@each_row(
    "front",
    [
        "Total output lines: 4000\n\n",
        "Exit code: 0\nWall time: 1.2 seconds\nTotal output lines: 4000\nOutput:\n",
        (
            "Chunk ID: 4f2a1c\nWall time: 0.0510 seconds\nProcess exited with code 0\nOriginal token count: 9000\n"
            "Output:\nTotal output lines: 4000\n\n"
        ),
    ],
    ids=["total", "exit code", "chunk"],
)
def test_codex_puts_a_header_before_equal_halves(front: str, sign: str) -> None:
    assert Cut("marker") == find_cut(f"{front}{'ok ' * 1_500}…8123 tokens truncated…{sign * 4_000}")


@each_row(
    "text",
    [
        "Total output lines: 12\n" + "a line\n" * 12,
        "Exit code: 0\nWall time: 1.2 seconds\nOutput:\n" + "a line of it\n" * 256,
        "Exit code: 0\nOutput:\n" + PROSE[:900] + "`[... omitted 144 of 400 lines ...]`" + PROSE[:9_000],
        "a line of a file\n" * 256,
        "a line of a file\n" * 120 + "    [... omitted 144 of 400 lines ...]\n" + "a line of a file\n" * 135,
    ],
    ids=["count", "whole", "quoted", "256 lines", "indented"],
)
def test_lines_that_no_program_cut(text: str) -> None:
    assert None is find_cut(text, len(text.encode()))


NGINX = (
    "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity "
    "Too Large</h1></center>\r\n<hr><center>nginx/1.27.2</center>\r\n</body>\r\n</html>\r\n"
)
APACHE = (
    '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n<title>413 Request Entity Too Large</title>\n'
    "</head><body>\n<h1>Request Entity Too Large</h1>\nThe requested resource<br />/rows<br />\ndoes not allow request "
    "data with POST requests, or the amount of data provided in\nthe request exceeds the capacity limit.\n</body>"
    "</html>"
)
TOO_LARGE = [
    NGINX,
    APACHE,
    NGINX.replace("Request Entity", "Payload"),
    NGINX.replace("Request Entity", "Content"),
    "413 Payload Too Large",
    "413 Request Entity Too Large\n",
    "HTTP 413: Content Too Large",
    "HTTP/1.1 413 Payload Too Large",
    "Error: 413 Request Entity Too Large",
    "413 Client Error: Request Entity Too Large for url: https://api.example.com/rows",
    (
        "Client error '413 Payload Too Large' for url 'https://api.example.com/rows'\nFor more information check: "
        "https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/413"
    ),
    "Request failed with status code 413",
    "Request Entity Too Large\n\nFUNCTION_PAYLOAD_TOO_LARGE\n\nfra1::abcde-1732270000000-0123456789ab",
    '{"message":"Request Too Long"}',
    '{"message": "Request Entity Too Large"}',
    '{"statusCode":413,"error":"Request Entity Too Large","message":"Request body is too large"}',
    (
        '{"errorType":"Function.ResponseSizeTooLarge","errorMessage":"Response payload size exceeded maximum allowed '
        'payload size (6291556 bytes)."}'
    ),
]


@each_row("text", TOO_LARGE, ids=lambda text: text[:40])
@pytest.mark.shows("001.transport_cuts")
def test_a_413_page_in_place_of_a_result(text: str) -> None:
    assert Cut("marker") == find_cut(text)
    assert Cut("marker") == find_cut([{"type": "text", "text": text}])


@each_row(
    "text",
    [
        "<html>\n<head><title>413 Content Too Large - HTTP | MDN</title></head>\n<body>The 413 status</body></html>",
        f"<html>\n<head><title>413 Payload Too Large</title></head>\n<body>{PROSE}</body></html>",
        "413 Payload Too Large: the server answers so when a request is larger than its limit.",
        "10:30:07 POST /upload 413 Payload Too Large 12 ms",
        "The API answers 413 Payload Too Large",
        '{"rows": [{"status": 413, "message": "Request Entity Too Large"}]}',
        '{"codes": {"413": "Request Entity Too Large"}}',
        "413 rows",
    ],
    ids=lambda text: text[:40],
)
def test_a_text_about_413(text: str) -> None:
    assert None is find_cut(text)


@each_row(
    ("expected", "value"),
    [
        (Cut("marker"), {"message": "Request Too Long"}),
        (Cut("marker"), {"title": "Content Too Large", "status": 413, "instance": "/rows", "type": "a"}),
        (None, {"code": 413, "name": "Content Too Large"}),
        (None, {"id": 7, "at": "10:30", "message": "Payload Too Large"}),
        (None, {"error": "413"}),
    ],
)
def test_an_object_in_place_of_a_result(expected: Cut | None, value: Any) -> None:
    assert expected == find_cut(value)
    assert expected == find_cut(json.dumps(value))


@each_row(
    "cap",
    [4_500_000, 4_718_592, 6_000_000, 6_291_456, 6_291_556, 10_000_000, 10_485_760, 4_194_304],
)
@pytest.mark.shows("001.transport_cuts")
def test_a_length_that_is_the_cap_of_a_transport_is_suspected(cap: int) -> None:
    assert Cut("suspected") == find_cut("x" * cap)
    assert None is find_cut("x" * (cap - 1))
    text = "é" + "x" * (cap - 2)
    assert Cut("suspected") == find_cut(text, cap)
    blocks: Any = [{"type": "text", "text": text}]
    assert Cut("suspected") == find_cut(blocks, cap)
    assert "cut_json" == (find_cut('["' + "x" * (cap - 2)) or Cut("")).reason
