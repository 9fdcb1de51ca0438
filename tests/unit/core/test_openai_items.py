"""The items of a request to OpenAI's Responses API: each that the model reads is a part of the request."""

from __future__ import annotations

from typing import Any

from agent_otel.core.types import RequestPart
from agent_otel.messages.openai import item_parts
from agent_otel.semconv import ASSISTANT, TOOL_RESULTS, TOOLS
from tests.rows import each_row

TOOL = {"type": "function", "name": "search", "parameters": {}}
APPROVAL = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "search", "arguments": "{}"}


@each_row(
    ("item", "part"),
    [
        ({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [TOOL]}, RequestPart(TOOLS, [TOOL])),
        ({"type": "tool_search_output", "call_id": "c", "tools": [TOOL]}, RequestPart(TOOLS, [TOOL])),
        ({"type": "additional_tools", "tools": [TOOL]}, RequestPart(TOOLS, [TOOL])),
        ({"type": "program_output", "id": "po_1", "call_id": "c", "result": "r"}, RequestPart(TOOL_RESULTS, "r", "c")),
        ({"type": "local_shell_call_output", "id": "c", "output": "r"}, RequestPart(TOOL_RESULTS, "r", "c")),
        (APPROVAL, RequestPart(ASSISTANT, APPROVAL)),
    ],
)
def test_no_item_is_left_out(item: dict[str, Any], part: RequestPart) -> None:
    assert list(item_parts(item)) == [part]


def test_a_reference_has_no_content() -> None:
    assert list(item_parts({"type": "item_reference", "id": "msg_1"})) == []
