"""Properties of ``agent_otel.measure`` that hold for every input.

The first byte chooses a property and the rest is a text. Each property is what the functions document: the size of
the text, the size of the compact JSON, the same digest for the same arguments, and no exception for any text.
"""

import json
from typing import Any, NoReturn

from agent_otel.measure.arguments_hash import arguments
from agent_otel.measure.breakdown.report import breakdown_text
from agent_otel.measure.preview import clean, preview
from agent_otel.measure.prints import hashes_in, prints
from agent_otel.measure.size import json_size, size
from agent_otel.measure.truncation import find_cut, has_shrunk
from agent_otel.measure.truncation.paging import asks_for_a_page, is_page

_KEY = b"fuzz"
_PREVIEW_BYTES = 64


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return True


def measure_text(text: str) -> None:
    """Check what holds for every text."""
    encoded = text.encode("utf-8", "surrogatepass")
    assert size(text) == (len(encoded), True)
    assert len(preview(text, _PREVIEW_BYTES).encode()) <= _PREVIEW_BYTES
    clean(text).encode("utf-8")  # raises for what no exporter can encode
    known = prints(text)
    assert known is None or known.is_quoted(hashes_in([text]))
    assert known is None or known.find(text) is not None
    cut = find_cut(text)
    assert find_cut(text, len(encoded)) == cut or cut is None or cut.reason == "suspected"
    assert not has_shrunk(len(encoded), len(encoded), text)


def measure_json(text: str) -> None:
    """Check what holds for every value that JSON can say."""
    try:
        value = json.loads(text, parse_constant=_refused)
        compact = _compact(value)
    except (ValueError, RecursionError):
        return
    measured = json_size(value)
    assert measured.bytes == len(compact) if measured.exact else measured.bytes <= len(compact)
    digest = arguments(value, _KEY)
    if isinstance(value, dict):
        assert arguments(dict(reversed(value.items())), _KEY) == digest
    assert arguments(json.loads(text), _KEY) == digest
    for read in (find_cut, is_page, asks_for_a_page):
        read(value)


def take_apart(text: str) -> None:
    """Check what holds for every payload; sizes are promised for what is JSON."""
    data = text.encode("utf-8", "surrogatepass")
    found = breakdown_text(data, lambda call_id: f"tool of {call_id}")
    if found is not None and _is_json(text):
        assert found.total_bytes == len(data)
        assert 0 <= found.largest_path_bytes <= found.total_bytes
        assert all(part >= 0 for part in found.paths.values())
        assert sum(found.paths.values()) <= found.total_bytes


PROPERTIES = (measure_text, measure_json, take_apart)


def one(data: bytes) -> None:
    """Check the property that the first byte names."""
    if data:
        PROPERTIES[data[0] % len(PROPERTIES)](data[1:].decode("utf-8", "surrogateescape"))
