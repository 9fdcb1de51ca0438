"""Copies of large arguments in texts: prompts of summarisers, and what providers keep beside a call."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import pytest

from agent_otel.remedies.history.argument_compaction import LargeArguments, compact
from agent_otel.remedies.history.request_rewriter import Views
from tests.rows import each_row
from tests.unit.remedies.history.histories import Asked, Turn, reading, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = "if a < b and c > \"d\":\n\tprint('字\\n')  # & so on\n" * 60
MARK = f"[argument removed: {len(LARGE.encode())} bytes]"
WRITTEN = {"path": "a.py", "content": LARGE}
LEFT = {"path": "a.py", "content": MARK}
CALL = {"name": "write_file", "args": WRITTEN, "id": "call_0", "type": "tool_call"}
MARKED = {**CALL, "args": LEFT}


HTML = "<ul>\n" + "<li>one & <b>two</b></li>\n" * 120 + "</ul>"


def _json(content: str) -> str:
    return json.dumps({"path": "a.py", "content": content})


#: Other forms that models write, that frameworks print, and that prompts quote.
WRITERS: dict[str, Callable[[str], str]] = {
    "GLM": lambda content: f"<arg_key>content</arg_key>\n<arg_value>{content}</arg_value>",
    "CDATA": lambda content: f'<parameter name="content"><![CDATA[{content}]]></parameter>',
    "Python's call": lambda content: f"write_file(path='a.py', content={content!r})",
    "JSON inside Python": lambda content: repr({"arguments": _json(content)}),
    "Python inside JSON": lambda content: json.dumps({"text": repr({"content": content})}),
    "Python inside Python": lambda content: repr([str([{"content": content, "it's": ""}])]),
    "JSON four times": lambda content: json.dumps({"a": json.dumps({"b": json.dumps({"c": _json(content)})})}),
    "JSON as HTML": lambda content: html.escape(_json(content)),
    "name and value": lambda content: json.dumps([{"name": "content", "value": content}]),
}


def known(value: Any = WRITTEN) -> LargeArguments:
    found = LargeArguments(2000)
    found.add(value)
    return found


@each_row(
    ("text", "left"),
    [
        (json.dumps(WRITTEN), json.dumps(LEFT)),
        (json.dumps(WRITTEN, ensure_ascii=False, indent=2), json.dumps(LEFT, indent=2)),
        (str([CALL]), str([MARKED])),  # LangChain's get_buffer_string
        (escape(json.dumps(WRITTEN, ensure_ascii=False)), json.dumps(LEFT)),  # the same as XML
        (json.dumps({"arguments": json.dumps(WRITTEN)}), json.dumps({"arguments": json.dumps(LEFT)})),  # Codex
        (f"<parameter=content>\n{LARGE}</parameter>", f"<parameter=content>\n{MARK}</parameter>"),  # MindIE
        (f'<parameter name="content">{LARGE}</parameter>', f'<parameter name="content">{MARK}</parameter>'),
        *((write(LARGE), write(MARK)) for write in WRITERS.values()),
    ],
    ids=["JSON", "JSON with indents", "Python", "XML", "JSON in JSON", "tags", "tags with attributes", *WRITERS],
)
@pytest.mark.shows("004.provider_copies")
def test_each_written_form(text: str, left: str) -> None:
    for around in ("{}", 'He said: "the content" is {}, and "content": "short", then {}.', "content content: '{}'"):
        both = around.replace("{}", text), around.replace("{}", left)
        found = known().replaced(both[0])
        assert found is not None
        assert found == (both[1], len(both[0].encode()) - len(both[1].encode()))


@each_row(
    "text",
    [
        json.dumps({"content": LARGE + "!"}),  # not the same
        json.dumps({"text": LARGE}),  # another argument
        json.dumps({"content": LARGE})[:-3],  # cut
        f"content: {LARGE}",
        LARGE,
        '"content": "' * 1000,
        "content>" * 1000,
        "",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert known().replaced(text) is None


@pytest.mark.parametrize("tags", [("<content>", "</content>"), ("<parameter=content>\n", "</parameter>")])
def test_an_argument_with_tags_of_its_own_is_found_between_tags(tags: tuple[str, str]) -> None:
    found = known({"content": HTML}).replaced(HTML.join(tags))
    assert found is not None
    assert f"[argument removed: {len(HTML)} bytes]".join(tags) == found[0]


def test_the_text_of_a_custom_tool_is_found_by_the_name_that_openai_gives_it() -> None:
    views, large = Views(), LargeArguments(2000)
    call = {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": LARGE}
    prompt = [{"role": "user", "content": f"Summarise.\n{call}"}]
    views.of([call, {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}], large)
    view = views.of(prompt, large)
    assert [{"role": "user", "content": f"Summarise.\n{ {**call, 'input': MARK} }"}] == view.messages


def test_arguments_that_differ_in_one_letter_are_both_known() -> None:
    other = {"content": LARGE[:900] + "!" + LARGE[901:]}
    both = known()
    both.add(other)
    found = both.replaced(json.dumps([WRITTEN, other]))
    assert found is not None
    assert json.dumps([LEFT, {"content": MARK}]) == found[0]


def test_texts_inside_an_argument_are_found_by_their_own_names() -> None:
    edits = {"path": "a.py", "edits": [{"old": "a", "new": LARGE}]}
    left = {"path": "a.py", "edits": [{"old": "a", "new": MARK}]}
    found = known(edits).replaced(str(edits))
    assert found is not None
    assert str(left) == found[0]


@pytest.mark.shows("004.summariser")
def test_a_prompt_without_calls_is_compacted_once_a_call_has_completed() -> None:
    views, large = Views(), LargeArguments(2000)
    prompt = [{"role": "user", "content": f"Summarise.\n{[CALL]}"}]
    assert prompt == views.of(prompt, large).messages
    views.of(rendered("chat", [reading(0, "done", WRITTEN)]), large)
    view = views.of(prompt, large)
    assert [{"role": "user", "content": f"Summarise.\n{[MARKED]}"}] == view.messages
    assert {"compact": len(str(CALL).encode()) - len(str(MARKED).encode())} == view.removed_bytes
    assert f"Summarise.\n{[CALL]}" == prompt[0]["content"]
    # What a user has written in a conversation with calls stays.
    chat = [*prompt, *rendered("chat", [reading(1, "done")])]
    assert chat == views.of(chat, large).messages


def test_a_call_in_flight_is_not_in_the_prompts() -> None:
    views, large = Views(), LargeArguments(2000)
    views.of(rendered("chat", [Turn((Asked("call_0", "write_file", WRITTEN, None),))]), large)
    prompt = [{"role": "user", "content": str([CALL])}]
    assert prompt == views.of(prompt, large).messages


@pytest.mark.shows("004.provider_copies")
def test_a_providers_own_form_of_a_call_is_rewritten_in_step() -> None:
    messages = rendered("langchain", [reading(0, "done", WRITTEN)])
    raw = f"<tool_call>\n<function=write_file>\n<parameter=content>\n{LARGE}</parameter>\n</function>\n</tool_call>"
    item = json.dumps({"type": "function_call", "call_id": "call_0", "arguments": json.dumps(WRITTEN)})
    messages[0]["content"] = [{"type": "thinking", "thinking": raw, "signature": "c2ln"}, {"type": "text", "text": raw}]
    messages[0]["additional_kwargs"] |= {"raw": raw, "function": {"args": WRITTEN}}
    messages[0]["response_metadata"] = {"output": [item]}
    view = compact(messages)[0]
    short = raw.replace(LARGE, MARK)
    assert [messages[0]["content"][0], {"type": "text", "text": short}] == view["content"]
    assert (short, {"args": LEFT}) == (view["additional_kwargs"]["raw"], view["additional_kwargs"]["function"])
    expected = json.dumps({"type": "function_call", "call_id": "call_0", "arguments": json.dumps(LEFT)})
    assert [expected] == view["response_metadata"]["output"]
    assert view == compact([view, messages[1]])[0]


def test_texts_beside_a_call_in_flight_stay() -> None:
    both = Turn((Asked("done", "write", WRITTEN, "done"), Asked("flight", "write", WRITTEN, None)))
    messages = rendered("langchain", [both])
    messages[0]["additional_kwargs"]["raw"] = f"<parameter=content>{LARGE}</parameter>"
    assert messages[0]["additional_kwargs"]["raw"] == compact(messages)[0]["additional_kwargs"]["raw"]
