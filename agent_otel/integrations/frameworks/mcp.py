"""The client of the Model Context Protocol, and FastMCP's, which ends in it.

Produced is read at ``ClientSession.call_tool``. mcp 2's ``Client`` and FastMCP's may go through that several times
for one call, because the server asks something back or the listing was stale; they stand outside, as what hands back,
so that this is one call and its last answer counts. A program that drives those rounds itself makes a call of each.

Inside a tool of a framework none of this is a call of its own: it is how that tool gets its result.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agent_otel.core.types import HANDED_BACK, PRODUCED, ToolCall, ToolReader, ToolResult, Watch
from agent_otel.semconv import TOOL_ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_otel.core.types import Replacement, WrappedCall

# The names of the structured result and of the error flag, by class: asking a model of pydantic's for a field that it
# has not costs microseconds.
_FIELDS: dict[type, tuple[str, str] | None] = {}
_listed: WeakKeyDictionary[Any, dict[str, tuple[str, ...]]] = WeakKeyDictionary()
_SPELLINGS = (("structured_content", "is_error"), ("structuredContent", "isError"))


def _call(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
    name = kwargs["name"] if "name" in kwargs else args[0]
    arguments = kwargs["arguments"] if "arguments" in kwargs else args[1] if len(args) > 1 else None
    return ToolCall(name, arguments or {}, type="extension")


def _result(answer: Any) -> ToolResult | None:
    """Read an answer; one without content is a question back, or an extension's."""
    kind = type(answer)
    names = _FIELDS[kind] if kind in _FIELDS else _FIELDS.setdefault(kind, _field_names(kind))
    if names is None:
        return None
    fields = vars(answer)
    structured = fields.get(names[0])
    error_type = TOOL_ERROR if fields.get(names[1]) else None
    content = fields["content"]
    texts, others = [], []
    for block in content:
        text = _block_text(block)
        if text is None:
            others.append({name: value for name, value in vars(block).items() if value is not None})
        else:
            texts.append(text)
    if not texts and structured is not None:
        return ToolResult(structured, error_type=error_type)
    text = texts[0] if len(texts) == 1 else "".join(texts)
    value = [{"type": "text", "text": text}, *others] if others else text
    return ToolResult(value, structured, error_type)


def _replace(answer: Any, replacement: Replacement, _: WrappedCall) -> Any:
    """Put a replacement into an answer, in both of its forms."""
    types = sys.modules["mcp.types"]
    content = [types.TextContent(type="text", text=replacement.text)]
    kind = types.CallToolResult if answer is None else type(answer)
    structured, is_error = _FIELDS.get(kind) or _field_names(kind) or _SPELLINGS[0]
    data = _structured(replacement, None if answer is None else vars(answer).get(structured))
    update = {"content": content, structured: data, is_error: replacement.is_error}
    return kind(**update) if answer is None else answer.model_copy(update=update)


def _structured(replacement: Replacement, produced: Any) -> Any:
    """Return the structured form: the replacement's data if it is an error or there was no form, else the text or None.

    Servers wrap the text of a tool in ``{"result": …}``; only this form can carry a text. Clients do not validate the
    structured form of errors.
    """
    if replacement.is_error or produced is None:
        return replacement.data
    is_wrapped = isinstance(produced, dict) and produced.keys() == {"result"} and isinstance(produced["result"], str)
    return {"result": replacement.text} if is_wrapped else None


def _parameters(asked: WrappedCall) -> Iterable[str]:
    """Return the parameters of the tool if the session has listed it, else those of the call."""
    session, args, kwargs = asked
    call = _call(None, args, kwargs)
    return _listed.get(session, {}).get(call.name) or call.arguments  # type: ignore[return-value]


def _listing(session: Any, _: tuple[Any, ...], __: Mapping[str, Any], listed: Any, error: BaseException | None) -> None:
    """Remember which parameters the tools of a session have, as long as there is the session."""
    if error is None:
        known = _listed.setdefault(session, {})
        for tool in listed.tools:
            fields = vars(tool)
            schema = fields.get("inputSchema") or fields.get("input_schema") or {}
            known[tool.name] = tuple(schema.get("properties") or ())


def _field_names(kind: type) -> tuple[str, str] | None:
    fields = getattr(kind, "model_fields", {})
    if "content" not in fields:
        return None
    return next((names for names in _SPELLINGS if names[1] in fields), None)


def _block_text(block: Any) -> str | None:
    """Return the text of a text block or of an embedded text resource."""
    fields = vars(block)
    if "resource" in fields:
        fields = vars(fields["resource"])
    text = fields.get("text")
    return text if isinstance(text, str) else None


session = ToolReader(PRODUCED, _call, _result, replace=_replace, parameters=_parameters)
client = ToolReader(HANDED_BACK, _call, _result, session)
listing = Watch(_listing)
