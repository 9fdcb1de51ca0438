"""Old results as one line, and restored messages once: expected values by hand."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from agent_otel.remedies.claim_check.envelope import Signer, key
from agent_otel.remedies.history.request_rewriter import Views
from agent_otel.remedies.history.trimming import LineForm, deduplicate, references, trim
from tests.rows import each_row
from tests.unit.remedies.history.histories import SHAPES, Asked, Turn, reading, rendered

LONG = "line of a file\n" * 20  # 300 bytes
HEAD = " ".join(["line of a file"] * 10) + "…"  # 150 characters, the last of them a line's end
TRIMMED = f"[trimmed 300 bytes] read: {HEAD}"
each_shape = each_row("shape", list(SHAPES))


def history(turns: int, result: str = LONG) -> list[Any]:
    return rendered("chat", [reading(number, result) for number in range(turns)])


def contents(messages: list[Any]) -> list[Any]:
    return [message["content"] for message in messages if message["role"] == "tool"]


@each_row(("turns", "trimmed"), [(0, 0), (1, 0), (6, 0), (7, 5), (11, 5), (12, 10), (16, 10), (17, 15)])
@pytest.mark.shows("003.last_two_turns")
def test_the_cut_moves_five_turns_at_a_time_and_leaves_the_last_two(turns: int, trimmed: int) -> None:
    assert [TRIMMED] * trimmed + [LONG] * (turns - trimmed) == contents(trim(history(turns)))


def test_the_steps_and_the_kept_turns_are_options() -> None:
    assert [TRIMMED] * 3 + [LONG] == contents(trim(history(4), keep_turns=1, step_turns=1))
    assert [TRIMMED] * 2 + [LONG] * 2 == contents(trim(history(4), keep_turns=1, step_turns=2))


def test_what_is_left_in_each_shape() -> None:
    expected: dict[str, Any] = {
        "chat": {"role": "tool", "tool_call_id": "call_0", "content": TRIMMED},
        "responses": {"type": "function_call_output", "call_id": "call_0", "output": TRIMMED},
        "anthropic": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_0", "content": [{"type": "text", "text": TRIMMED}]}
            ],
        },
        "gemini": {
            "role": "user",
            "parts": [{"functionResponse": {"name": "read", "response": {"result": TRIMMED}}}],
        },
        "bedrock": {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "call_0", "content": [{"text": TRIMMED}]}}],
        },
        "langchain": {"type": "tool", "tool_call_id": "call_0", "content": TRIMMED, "status": "success"},
    }
    for shape in SHAPES:
        messages = rendered(shape, [reading(number, LONG) for number in range(7)])
        place = 2 if shape == "responses" else 1
        assert expected[shape] == trim(messages)[place], shape


@each_shape
def test_the_history_is_not_touched_and_what_stays_is_the_same_object(shape: str) -> None:
    messages = rendered(shape, [reading(number, LONG) for number in range(7)])
    before = copy.deepcopy(messages)
    view = trim(messages)
    assert before == messages
    same = [one is other for one, other in zip(view, messages, strict=True)]
    per_turn = 3 if shape == "responses" else 2
    assert ([True] * (per_turn - 1) + [False]) * 5 + [True] * (per_turn * 2) == same


def test_a_result_that_is_no_longer_than_its_line_stays() -> None:
    assert ["x" * 150] * 7 == contents(trim(history(7, "x" * 150)))
    line = "[trimmed 178 bytes] read: " + "x" * 150 + "…"  # 179 bytes: the dots have three
    assert ["x" * 178] * 7 == contents(trim(history(7, "x" * 178)))
    assert line.replace("178", "180") == contents(trim(history(7, "x" * 180)))[0]
    short = contents(trim(history(7, "x" * 178), head_characters=20))[0]
    assert "[trimmed 178 bytes] read: " + "x" * 20 + "…" == short


def test_bytes_are_of_utf_8_and_blocks_are_added_up_while_images_stay() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    messages = rendered("anthropic", [reading(number, LONG) for number in range(7)])
    messages[1]["content"][0]["content"] = [
        {"type": "text", "text": "字" * 100},
        image,
        {"type": "text", "text": "x" * 100, "cache_control": {"type": "ephemeral"}},
    ]
    line = "[trimmed 400 bytes] read: " + "字" * 100
    block = {"type": "text", "text": line, "cache_control": {"type": "ephemeral"}}
    assert [image, block] == trim(messages)[1]["content"][0]["content"]


def test_json_blocks_and_structured_responses_are_text_to_the_model() -> None:
    rows = [{"n": number} for number in range(100, 140)]  # 40 of 9 bytes, 39 commas, 2 brackets
    head = ",".join(f'{{"n":{number}}}' for number in range(100, 115))  # 149 characters
    bedrock = rendered("bedrock", [reading(number, LONG) for number in range(7)])
    bedrock[1]["content"][0]["toolResult"]["content"] = [{"json": rows}]
    line = f"[trimmed 401 bytes] read: [{head}…"
    assert [{"text": line}] == trim(bedrock)[1]["content"][0]["toolResult"]["content"]
    gemini = rendered("gemini", [reading(number, LONG) for number in range(7)])
    gemini[1]["parts"][0]["functionResponse"]["response"] = {"rows": rows, "ref_id": "art_7"}
    view = trim(gemini)
    head = ",".join(f'{{"n":{number}}}' for number in range(100, 114)) + ","
    expected = {"result": f'[trimmed 427 bytes] read: {{"rows":[{head}{{… ref_id=art_7'}
    assert expected == view[1]["parts"][0]["functionResponse"]["response"]
    assert trim(view) == view


def test_documents_of_cohere_are_trimmed() -> None:
    rows = [{"n": number} for number in range(100, 140)]
    for data in ({"rows": rows}, json.dumps({"rows": rows}, separators=(",", ":"))):
        messages = history(7)
        messages[1]["content"] = [{"type": "document", "document": {"id": "0", "data": data}}]
        head = ",".join(f'{{"n":{number}}}' for number in range(100, 114)) + ","
        view = trim(messages)
        assert [{"type": "text", "text": f'[trimmed 410 bytes] read: {{"rows":[{head}{{…'}] == view[1]["content"]
        assert trim(view) == view


@each_row(
    ("begin", "status"),
    [
        ("", None),
        ("Error: ", "error"),
        ("ValueError('", "error"),
        ('{"error": "', "error"),
        ("HTTP 403 Forbidden: ", "error"),
        ("HTTP/1.1 503 Service Unavailable\n", "error"),
        ("GET /pulls answered 404 Not Found. ", "error"),
        ('{"status": 500, "body": "', "error"),
        ('{"status_code":"429", "body": "', "error"),
        ("status: 500 ", "error"),
        ("2 of 30 tests failed: ", "error"),
        ("The job ended with an error. ", "error"),
        ('{"success": false, "rows": "', "error"),
        ('{"success": true, "rows": "', "success"),
        ("Successfully written. ", "success"),
        ("HTTP 200 OK: ", "success"),
        ('{"status": 200, "rows": "', "success"),
        ('{"ok": true, "rows": "', "success"),
        ('{"status": 200, "data": {"error": "quota exceeded", "rows": "', "error"),
        ('{"id": 7, "error": "none", "rows": "', None),
        ('{"http_status": 502, "rows": "', "error"),
        ("HTTP 403: a success page ", "error"),
        ("Not successful: ", None),
        ('{"error": null, "rows": "', None),
        ('{"errors": [], "rows": "', None),
        ("0 failed, 30 passed: ", None),
        ("No errors. ", None),
        ("403 commits, 500 lines: ", None),
        ("unsuccessful ", None),
        ("A failsafe and a terror: ", None),
    ],
)
@pytest.mark.shows("003.trimmed_line")
def test_the_status_is_read_from_the_beginning_and_has_three_values(begin: str, status: str | None) -> None:
    result = begin + LONG
    line = trim(history(7, result))[1]["content"]
    shown = " ".join(result[:150].split())
    assert f"[trimmed {len(result)} bytes] read{f' {status}' if status else ''}: {shown}…" == line


def test_flags_of_errors() -> None:
    for begin, flag, status in (
        ("", True, " error"),
        ("", False, " success"),
        ("No errors in all services: ", False, " success"),
        ("The request failed, permission denied. ", False, ""),
        ("The request failed, permission denied. ", None, " error"),
        ("HTTP 403 Forbidden: ", False, " error"),
    ):
        shown = " ".join(f"{begin}{LONG}"[:150].split())
        line = f"[trimmed {len(begin) + 300} bytes] read{status}: {shown}…"
        anthropic = rendered("anthropic", [reading(number, begin + LONG) for number in range(7)])
        anthropic[1]["content"][0] |= {} if flag is None else {"is_error": flag}
        assert line == trim(anthropic)[1]["content"][0]["content"][0]["text"]
        bedrock = rendered("bedrock", [reading(number, begin + LONG) for number in range(7)])
        bedrock[1]["content"][0]["toolResult"] |= {} if flag is None else {"status": "error" if flag else "success"}
        assert line == trim(bedrock)[1]["content"][0]["toolResult"]["content"][0]["text"]
    gemini = rendered("gemini", [reading(number, LONG) for number in range(7)])
    gemini[1]["parts"][0]["functionResponse"]["response"] = {"error": LONG}
    expected = {"error": f"[trimmed 300 bytes] read error: {HEAD}"}
    assert expected == trim(gemini)[1]["parts"][0]["functionResponse"]["response"]
    langchain = rendered("langchain", [reading(number, "HTTP 403: " + LONG) for number in range(7)])
    assert "success" == langchain[1]["status"]  # LangChain's default
    assert trim(langchain)[1]["content"].startswith("[trimmed 310 bytes] read error: HTTP 403: line")


@each_row(
    ("content", "expected"),
    [
        ("kept at claim://memory/run-1/call-9.", ["claim://memory/run-1/call-9"]),
        ('{"rows": 30, "ref_id": "art_7"}', ["ref_id=art_7"]),
        ('{"resultRef":"tool-result/e/n/c"}', ["resultRef=tool-result/e/n/c"]),
        ('{"artifacts": [{"id": "a-2", "kind": "csv"}]}', ["artifacts=a-2"]),
        ('{"full_payload_id": "p1"}', ["full_payload_id=p1"]),
        ("{'ref_id': 'z9'} and ref=abc", ["ref_id=z9", "ref=abc"]),
        ('{\\"ref_id\\": \\"z9\\"}', ["ref_id=z9"]),
        ("a" * 5000 + ' ref="last"', ["ref=last"]),
        ('ref="first" ' + "a" * 5000, ["ref=first"]),
        ("a" * 5000 + ' ref="middle" ' + "a" * 5000, ["ref=middle"]),
        ("b" * 900_000 + ' "ref_id": "r-1" ' + "a" * 900_000, ["ref_id=r-1"]),
        ("REF-2031-a is open, refs are not", ["REF-2031-a"]),
        ("your ref_id is 8842 (ref no. 7); ref #12, REF#9, ref-3",
         ["ref_id=8842", "ref_no=7", "ref=12", "REF#9", "ref-3"]),
        ("| ref_id | A-1 |, **ref_id**: b2, <ref_id>42</ref_id>", ["ref_id=A-1", "ref_id=b2", "ref_id=42"]),
        ('{"ref_ids": ["a1", "b2"], "reference_number": "X-9"}',
         ["ref_ids=a1", "ref_ids=b2", "reference_number=X-9"]),
        ({"ref_ids": [1, "b"], "refs": [{"id": "q"}]}, ["ref_ids=1", "ref_ids=b", "refs=q"]),
        ("preference 5, docref 6, references/7", []),
        ("Row 5 Ref: 12", ["Ref=12"]),
        ("Größe: Reference no. 7", ["Reference_no=7"]),
        ("see https://example.com/a/b?c=d#e, and s3://bucket/key.", ["https://example.com/a/b?c=d#e", "s3://bucket/key"]),
        ("wrote /srv/out/a.csv and src/app/main.py; and/or 3/4", ["/srv/out/a.csv", "src/app/main.py"]),
        ("in ./build/log.txt: ~/notes/a", ["./build/log.txt", "~/notes/a"]),
        ('<a href="x1">, prefer: 12, ref: see below, reference: none', []),
        (f"in {'d' * 100}/out/a.csv", [f"{'d' * 100}/out/a.csv"]),
        ("iVBORw0KGgo" + ("/" + "b" * 79) * 4, []),  # base64
        (("iVBORw0KGgo/" + "b" * 79) * 200, []),
        ("src/a.py//b#c/d.txt e/f.txt //cdn/x/y", ["src/a.py", "e/f.txt"]),
        ("payload_id=7, " * 40 + "ref=1 " + "R" * 20 + ' "myRef": "r2", REF#3',
         ["payload_id=7", "ref=1", "myRef=r2", "REF#3"]),
        ("a" * 9000 + f" src/README {'b' * 9000} claim:v2:tool-result/e/n/c", ["claim:v2:tool-result/e/n/c"]),
        (f"{'x/ ' * 9}{'a' * 9000} claim:v2:e", ["claim:v2:e"]),
        (f"{'f/ ' * 8}https://a.b/c http+x://d", ["https://a.b/c", "http+x://d"]),
        ("xhttps://a git+https://b", ["xhttps://a", "git+https://b"]),
        ("preferred, " * 9 + "ref=1 " + "a" * 5000 + " ref=2 xref=3", ["ref=1", "ref=2"]),
        ([{"type": "text", "text": "ref=1"}, {"type": "text", "text": "ref=2"}], ["ref=1", "ref=2"]),
        ({"a": {"ref_id": 5}, "b": ["claim://x"], "artifact": {"id": "q"}}, ["ref_id=5", "claim://x", "artifact=q"]),
    ],
)  # fmt: skip
@pytest.mark.shows("003.trimmed_line")
def test_references(content: Any, expected: list[str]) -> None:
    assert expected == references(content)


def test_a_pattern_names_further_references() -> None:
    text = "x" * 5000 + " TICKET-12 " + "x" * 5000 + " TICKET-7"
    assert ["TICKET-12", "TICKET-7"] == references(text, re.compile(r"TICKET-\d+"))
    assert trim(history(7, text), pattern=re.compile(r"TICKET-\d+"))[1]["content"].endswith("… TICKET-12 TICKET-7")


@pytest.mark.shows("003.trimmed_line")
def test_references_have_room_of_their_own() -> None:
    reference, places = "claim://" + "r" * 93, [f"https://example.com/{'x' * 80}/{number}" for number in range(10)]
    result = f"{LONG} {' '.join(places)} {reference} ref_id=art_7"
    line = trim(history(7, result))[1]["content"]
    # 600 characters: the id and five URLs of 102; the claim check does not count.
    assert f"[trimmed {len(result)} bytes] read: {HEAD} {reference} ref_id=art_7 {' '.join(places[:5])}" == line


@pytest.mark.shows("003.trimmed_line")
def test_with_more_room_more_references_are_found() -> None:
    places = [f"https://example.com/{'x' * 80}/{number}" for number in range(10, 60)]
    paths = [f"/srv/{'y' * 20}/{number}.txt" for number in range(10, 60)]
    messages = history(7, f"{LONG} {' '.join([*places, *paths])}")
    [line, *_] = contents(Views(form=LineForm(reference_characters=10_000)).of(messages).messages)
    assert line.endswith(f"… {' '.join([*places, *paths])}")
    # 600 characters: five URLs of 103, and two of the paths of 32.
    [line, *_] = contents(Views().of(messages).messages)
    assert line.endswith(f"… {' '.join([*places[:5], *paths[:2]])}")


def test_a_reference_of_a_claim_check_is_never_left_out() -> None:
    signer = Signer("secret")
    for execution, node, expected in (
        ("run-1", "agent", "[trimmed {bytes} bytes] read: {head} {ref}"),
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "list_pull_requests", "[trimmed {bytes} bytes] read: {head} {ref}"),
        ("r", "n", "[trimmed {bytes} bytes] read: {head} {ref}"),
    ):
        ref = str(signer.refer(key(execution, node, "call_9aBcDeFgHiJkLmNoPqRsTuVw"), "owner", "a" * 64, 312345))
        result = f'{LONG * 20}\n[6000 of 312345 bytes shown; read on with get_tool_result(ref="{ref}")]'
        messages = history(7, result)
        view = trim(messages)
        assert expected.format(bytes=len(result), head=HEAD, ref=ref) == view[1]["content"]
        assert view == trim(view)
        gemini = rendered("gemini", [reading(number, LONG) for number in range(7)])
        gemini[1]["parts"][0]["functionResponse"]["response"] = {"content": LONG * 20, "ref": ref, "note": f"({ref})"}
        view = trim(gemini)
        assert view[1]["parts"][0]["functionResponse"]["response"]["result"].endswith(f"… {ref}")
        assert view == trim(view)


def test_a_name_is_one_word_on_one_line() -> None:
    messages = history(7, LONG * 2)
    messages[0]["tool_calls"][0]["function"]["name"] = "a\nb c" + "d" * 200
    assert f"[trimmed 600 bytes] a_b_c{'d' * 59}: {HEAD}" == trim(messages)[1]["content"]


def test_one_text_has_the_line_of_its_own_result() -> None:
    """The lines are remembered by texts: the tool, the flag, the length of the head and the form count, too."""
    text = "x" * 400

    def first(message: dict[str, Any], tool: str = "read", **options: Any) -> str:
        messages = rendered("anthropic", [Turn((Asked("call", tool, {}, text),)), reading(1, "y"), reading(2, "y")])
        messages[1]["content"][0] |= message
        [block] = trim(messages, step_turns=1, **options)[1]["content"][0]["content"]
        return str(block["text"])

    plain = {"content": [{"type": "text", "text": text}]}
    head = "x" * 150 + "…"
    assert f"[trimmed 400 bytes] read: {head}" == first(plain)
    assert f"[trimmed 400 bytes] write: {head}" == first(plain, "write")
    assert f"[trimmed 400 bytes] read error: {head}" == first({**plain, "is_error": True})
    assert f"[trimmed 400 bytes] read success: {head}" == first({**plain, "is_error": False})
    assert f"[trimmed 400 bytes] read: {head[140:]}" == first(plain, head_characters=10)
    cited = {"content": [{"type": "text", "text": text, "citations": [{"url": "https://example.com/a"}]}]}
    assert f"[trimmed 400 bytes] read: {head} https://example.com/a" == first(cited)
    named = {"content": [{"type": "text", "text": text, "artifact_id": "art_7"}]}
    assert f"[trimmed 400 bytes] read: {head} artifact_id=art_7" == first(named)
    assert f"[trimmed 400 bytes] read: {head}" == first(plain)


def test_a_text_under_the_key_of_a_reference_is_one_and_stays() -> None:
    reference = "art-" + "7" * 100

    def left(key: str) -> str:
        messages = rendered("gemini", [reading(number, "y") for number in range(3)])
        messages[1]["parts"][0]["functionResponse"]["response"] = {key: reference}
        [part] = trim(messages, step_turns=1, head_characters=20)[1]["parts"]
        return str(part["functionResponse"]["response"][key])

    assert f"[trimmed 104 bytes] read: {reference[:20]}…" == left("result")
    assert reference == left("ref")


def test_parallel_calls_are_one_turn_and_ids_may_come_again() -> None:
    messages = rendered("chat", [reading(0, LONG) for _ in range(7)])
    for turn in range(7):
        messages[turn * 2]["tool_calls"][0]["function"]["name"] = f"tool_{turn}"
    assert [f"[trimmed 300 bytes] tool_{turn}: {HEAD}" for turn in range(5)] == contents(trim(messages))[:5]
    asked = {"role": "assistant", "tool_calls": [*messages[0]["tool_calls"], *messages[2]["tool_calls"]]}
    parallel = [asked, messages[1], messages[3], *messages[4:]]
    assert 6 == len(contents(parallel)) - 1
    assert contents(parallel) == contents(trim(parallel))  # 6 turns
    longer = [*parallel, *history(1)]
    expected = [f"[trimmed 300 bytes] tool_{turn}: {HEAD}" for turn in range(6)]
    assert expected == contents(trim(longer))[:6]


def test_orphans_and_unknown_messages_stay() -> None:
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": LONG}
    unknown: list[Any] = [object(), 7, None, LONG, {"content": LONG}, {"role": "alien", "content": LONG}, [LONG]]
    unanswered = history(1)[0]
    messages = [orphan, *unknown, unanswered, {"role": "user", "content": LONG}, orphan, *history(7)]
    view = trim(messages)
    assert [True] * 11 == [one is other for one, other in zip(view[:11], messages, strict=False)]
    assert TRIMMED == view[12]["content"]
    assert trim(unknown) == unknown


def test_what_a_framework_answers_for_a_call_without_a_result_stays() -> None:
    placeholder = (
        f"Tool call read with id {'c' * 90} did not complete - no result was recorded. It may have been cancelled."
    )
    assert 170 < len(placeholder)
    assert [placeholder] * 7 == contents(trim(history(7, placeholder)))


def test_an_answer_without_an_id_is_the_first_open_call_of_its_tool() -> None:
    messages = rendered("gemini", [reading(number, LONG) for number in range(7)])
    messages[0]["parts"][0]["functionCall"]["id"] = "only the call has one"
    assert {"result": TRIMMED} == trim(messages)[1]["parts"][0]["functionResponse"]["response"]


@each_row("wrong", [None, 7, "text", b"bytes", {"role": "user"}, object(), iter([])])
@each_row("function", [trim, deduplicate, lambda messages: Views().of(messages)])
def test_what_is_no_sequence_of_messages(function: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match="messages must be a sequence of messages, not "):
        function(wrong)


def test_options_that_are_too_small() -> None:
    wrong: list[dict[str, Any]] = [{"keep_turns": 0}, {"step_turns": 0}, {"head_characters": 0}]
    for options in wrong:
        with pytest.raises(ValueError, match="at least"):
            trim([], **options)


# --- restored histories ------------------------------------------------------------------------------------------


def stored(number: int, result: str = "r") -> list[Any]:
    asked, answer = history(1, result)
    asked, answer = copy.deepcopy(asked), copy.deepcopy(answer)
    asked["tool_calls"][0]["id"] = answer["tool_call_id"] = f"call_{number}"
    return [{"id": f"ask-{number}", **asked}, {"id": f"answer-{number}", **answer}]


@pytest.mark.shows("003.deduplicated")
def test_a_history_that_was_restored_twice_is_there_once() -> None:
    user = {"id": "u1", "role": "user", "content": "hello"}
    messages = [user, *stored(1), *stored(2)]
    assert messages == deduplicate([*messages, *copy.deepcopy(messages)])
    assert messages == deduplicate([*messages[:3], *copy.deepcopy(messages)])


def said(shape: str, role: str, text: str) -> dict[str, Any]:
    """Return a message of text alone."""
    if shape == "gemini":
        return {"role": {"assistant": "model"}.get(role, role), "parts": [{"text": text}]}
    if shape in ("anthropic", "bedrock"):
        return {"role": role, "content": [{"type": "text", "text": text} if shape == "anthropic" else {"text": text}]}
    kind = {"responses": {"type": "message"}}.get(shape, {})
    return {**kind, "role": role, "content": text}


def talk(shape: str, *answers: str) -> list[Any]:
    """Return a conversation in which the user asks the same each time."""
    return [each for text in answers for each in (said(shape, "user", "And then?"), said(shape, "assistant", text))]


FIRST = "The invoice of March was paid on the second of April."
SECOND = "The invoice of April is open, and two reminders were sent."


@each_row("shape", ["chat", "responses", "anthropic", "bedrock", "gemini"])
@pytest.mark.shows("003.deduplicated")
def test_a_conversation_of_texts_without_ids_is_restored_once(shape: str) -> None:
    whole, user = talk(shape, FIRST, SECOND), said(shape, "user", "And then?")
    third = talk(shape, "The invoice of May is not yet due.")
    system = [said(shape, "system", "You answer.")]
    assert [*whole, user] == deduplicate([*whole, *copy.deepcopy(whole), user])
    assert [*whole, user] == deduplicate([*whole, *copy.deepcopy(whole), *copy.deepcopy(whole), user])
    assert [*whole, *third, user] == deduplicate([*whole, *copy.deepcopy(whole), *third, user])
    assert [*whole, *third, user] == deduplicate([*whole, *third, *copy.deepcopy(whole), user])
    assert [*system, *whole, user] == deduplicate([*system, *whole, *copy.deepcopy([*system, *whole]), user])


@each_row(
    "answers",
    [
        (FIRST, FIRST),  # the user asks the same twice
        ("yes", "no", "yes", "no"),
        (FIRST, "yes", FIRST, "yes"),
        (FIRST, SECOND, "Something else was said here, of some length.", SECOND, FIRST),
    ],
)
def test_a_user_who_asks_again_is_no_restored_checkpoint(answers: tuple[str, ...]) -> None:
    messages = talk("chat", *answers)
    assert messages == deduplicate(messages)


def test_texts_with_ids_of_their_own_are_no_copies() -> None:
    twice = [{**each, "id": f"m{number}"} for number, each in enumerate(talk("chat", FIRST, SECOND) * 2)]
    assert twice == deduplicate(twice)


def test_two_different_messages_with_one_id_stay() -> None:
    messages = [{"id": "m", "role": "user", "content": "one"}, {"id": "m", "role": "user", "content": "two"}]
    assert messages == deduplicate(messages)


def test_equal_messages_without_an_id_stay() -> None:
    messages = [{"role": "user", "content": "again"}] * 2 + [
        {"type": "message", "id": "__fake_id__", "role": "user"}
    ] * 2
    assert messages == deduplicate(messages)


def test_a_result_that_answers_its_call_a_second_time_goes() -> None:
    asked, answer = history(1)
    assert [asked, answer] == deduplicate([asked, answer, copy.deepcopy(answer)])
    assert [asked, answer] == deduplicate([asked, answer, {**answer, "id": "new"}])
    other = {**answer, "content": "other"}
    assert [asked, answer, other] == deduplicate([asked, answer, other])


def test_a_doubled_call_stays_while_its_result_is_another() -> None:
    asked, answer = stored(1)
    other = {**answer, "id": "answer-2", "content": "other"}
    messages = [asked, answer, copy.deepcopy(asked), other]
    assert messages == deduplicate(messages)


@each_shape
def test_a_wire_format_without_message_ids_is_restored_once(shape: str) -> None:
    ids = [f"call_9aBcDeFgHiJkLmNoPqRsTu{number}" for number in range(3)]
    turns = [Turn((Asked(call_id, "read", {}, "r"),), user="again") for call_id in ids]
    messages = rendered(shape, turns)
    restored = deduplicate([*messages, *copy.deepcopy(messages)])
    if shape == "gemini":  # its calls have no ids
        assert 2 * len(messages) == len(restored)
        return
    # The last message stays: the user may have said the same again.
    said = [] if shape in ("anthropic", "bedrock") else messages[-1:]
    assert [*messages, *said] == restored
    first = len(rendered(shape, turns[:2]))
    assert messages == deduplicate([*messages[:first], *copy.deepcopy(messages)])
    twice = [*messages, *copy.deepcopy(messages)]
    twice[-2 if shape not in ("anthropic", "bedrock") else -1]["role"] = "alien"
    assert len(messages) < len(deduplicate(twice))


@each_shape
def test_a_history_with_short_ids_is_restored_once(shape: str) -> None:
    if shape == "gemini":  # its calls have no ids
        return
    turns = [Turn((Asked(f"a{number}", "read", {"n": number}, f"r{number}"),)) for number in range(2)]
    messages = rendered(shape, turns)
    assert messages == deduplicate([*messages, *copy.deepcopy(messages)])


def test_a_repeated_call_with_the_same_id_and_result_is_no_doubled_one() -> None:
    messages = history(1, "pending") * 2  # a framework that numbers the calls of each turn anew
    assert messages == deduplicate(messages)


def test_what_cannot_be_compared_stays() -> None:
    class Awkward:
        def __eq__(self, other: object) -> bool:
            raise ValueError

        __hash__ = None  # type: ignore[assignment]

    messages = [{"id": "m", "role": "user", "content": [Awkward()]} for _ in range(2)]
    assert [0, 1] == [next(at for at, one in enumerate(messages) if one is each) for each in deduplicate(messages)]


def test_results_without_id_and_name_are_of_the_calls_of_their_turn_where_these_are_as_many() -> None:
    calls: list[dict[str, Any]] = [{"function": {"name": name, "arguments": {}}} for name in ("read", "list")]
    turn = [{"role": "assistant", "tool_calls": calls}, *({"role": "tool", "content": LONG} for _ in calls)]
    made = trim(turn * 3, keep_turns=1, step_turns=1)
    heads = [message["content"].partition(": ")[0] for message in made if message["role"] == "tool"]
    size = len(LONG)
    assert heads[:4] == [f"[trimmed {size} bytes] read", f"[trimmed {size} bytes] list"] * 2
    assert made[6:] == turn
    fewer = turn[:2] + turn * 2
    assert trim(fewer, keep_turns=1, step_turns=1)[:2] == turn[:2]


def test_a_summary_stays_whole() -> None:
    """It stands in the first turn, for all the turns that it replaces."""
    call = {"id": "sum_1", "type": "function", "function": {"name": "context_summarize", "arguments": "{}"}}
    summary = {"role": "tool", "tool_call_id": "sum_1", "content": "The user wants 30 sources compared. " * 20}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    sent = trim([{"role": "user", "content": "go"}, asked, summary, *history(12)], step_turns=1)
    assert sent[2] is summary
    assert contents(sent)[1:] == [TRIMMED] * 10 + [LONG] * 2
