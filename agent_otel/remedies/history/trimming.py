"""Views of a history for a request: old results as one line each, and no duplicate messages.

The first request of a process may bring megabytes of new texts. So each text is searched for references in few passes:
`str.find` for rare words, and one pattern for all paths.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel.measure.preview import preview
from agent_otel.measure.size import text_bytes
from agent_otel.messages.fields import fields, is_list
from agent_otel.remedies.history import turns
from agent_otel.remedies.history.turns import (
    KEEP_TURNS,
    MOST_NODES,
    STEP_TURNS,
    Changes,
    are_equal,
    replaced,
    text_of,
    value_of,
    weight,
)
from agent_otel.semconv import CONTEXT_SUMMARIZE, TRIM, TRIMMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_otel.remedies.history.turns import History, Weight


DEDUPLICATE: Final = "deduplicate"
_UNIQUE: Final = 16

HEAD_CHARACTERS: Final = 150
"""Characters of a result's beginning that its line keeps."""

REFERENCE_CHARACTERS: Final = 600
"""Characters of references in a line; claim checks are kept beyond them."""

MOST_PLACES: Final = 16
"""URLs and paths: a listing has thousands, and its first ones say what it lists. There are twice as many ids."""

#: Characters reserved for a URL or path: 16 fit into the default limit.
_PLACE_CHARACTERS: Final = 37
_MOST_NAME: Final = 64


class LineForm(NamedTuple):
    """The parts of a line: characters of the beginning and of references, and the program's pattern."""

    characters: int = HEAD_CHARACTERS
    reference_characters: int = REFERENCE_CHARACTERS
    pattern: re.Pattern[str] | None = None

    @property
    def places(self) -> int:
        """The number of URLs and paths to search for: as many as fit, but at least the first 16."""
        return max(self.reference_characters // _PLACE_CHARACTERS, MOST_PLACES)


DEFAULT_FORM: Final = LineForm()


class View(NamedTuple):
    """Messages for a request, the UTF-8 bytes that each strategy removed, and the turns of the history."""

    messages: list[Any]
    removed_bytes: Mapping[str, int]
    turns: int = 0


def trim(
    messages: Sequence[Any],
    *,
    keep_turns: int = KEEP_TURNS,
    step_turns: int = STEP_TURNS,
    head_characters: int = HEAD_CHARACTERS,
    pattern: re.Pattern[str] | None = None,
) -> list[Any]:
    """Return the messages with old results as one line each.

    The line gives the removed bytes, the tool's name, success or error if the result shows it, the first
    ``head_characters`` of the content, and the references to data stored elsewhere: claim checks, ids, URLs, paths, and
    matches of ``pattern``. The last ``keep_turns`` turns stay unchanged, and up to ``step_turns - 1`` turns before
    them: the cut moves ``step_turns`` turns at a time, so that a prompt cache keeps hitting between two moves. A turn
    is a model's calls and their results.

    These stay unchanged: results not longer than their line, images and other blocks without text, results without a
    call, and messages of unknown type. Unchanged messages are the same objects, changed ones are copies. Raises
    TypeError when ``messages`` is not a sequence, ValueError for options that are too small.
    """
    history = turns.read(messages)
    changes = Changes()
    form = LineForm(head_characters, pattern=pattern)
    trimming(history, history.cut(keep_turns, step_turns), changes, form)
    return changes.apply(history.messages)[0]


def trimming(history: History, cut: int, changes: Changes, form: LineForm) -> None:
    """Replace the results of the turns before the cut by lines."""
    if form.characters < 1:
        raise ValueError(f"head_characters is at least 1, not {form.characters}")
    for result in history.results:
        content, is_summary = (
            result.answered.content,
            result.name == CONTEXT_SUMMARIZE,
        )  # which stands for the old turns
        if result.call is None or result.turn >= cut or is_summary:
            continue
        heavy = weight(content)
        if heavy.characters <= form.characters or is_line(content) or is_placeholder(content):
            continue
        made = line(content, heavy, result.name, said=result.answered.failed, form=form)
        removed_bytes = heavy.bytes - text_bytes(made)
        if removed_bytes > 0:
            changes.put(result.at, result.answered.path, replaced(content, made), TRIM, removed_bytes)


_TRIMMED: Final = re.compile(r"\[trimmed \d+\+? bytes\] [^\n]*")


def line(content: Any, weight: Weight, tool: str | None, *, said: bool | None, form: LineForm = DEFAULT_FORM) -> str:
    """Return the line for a result. Drop references that do not fit, except claim checks."""
    head, characters = text_of(content), form.characters
    if head is None:  # the first structured block, or the content itself
        values = map(value_of, content) if is_list(content) else ()
        head = preview(next((value for value in values if value is not None), content), 4 * characters)
    status = status_of(head[:HEAD_CHARACTERS], said)
    shown = _printable(head[:characters].strip())
    name = _printable((tool or "")[:_MOST_NAME]).replace(" ", "_")
    begin = " ".join(filter(None, (name, status)))
    kept, left = [], form.reference_characters
    for reference in references(content, form.pattern, form.places):
        if is_claim(reference):
            kept.append(reference)
        elif len(reference) < left and reference not in shown:
            kept.append(reference)
            left -= len(reference) + 1
    body = f"{begin}: {shown}" if begin and shown else begin or shown
    more = "…" if shown and len(head) > characters else ""
    return " ".join((f"{TRIMMED}{weight.bytes}{'' if weight.exact else '+'} bytes] {body}{more}", *kept))


def _printable(text: str) -> str:
    """Return a text on one line, with single blanks."""
    one = " ".join(text.split())
    return one if one.isprintable() else "".join(letter if letter.isprintable() else " " for letter in one)


def is_line(content: Any) -> bool:
    """Return True if a result is already trimmed."""
    text = text_of(content)
    if text is None or not text.startswith(TRIMMED):
        return False
    return len(text) == weight(content).characters and _TRIMMED.fullmatch(text) is not None


_NOT: Final = r"(?<!no )(?<!not )(?<!non-)(?<!zero )(?<!without )(?<!\b0 )(?<!un)"
_NOTHING: Final = r"(?![\w-]{0,12}[\"']?\s{0,2}[:=]\s{0,2}(?:[\"']?(?:0\b|null|none|false|\[\]|\{\})|\"\"|''))"
_STATUS: Final = r"status(?<=\bstatus)[_ ]?(?:code)?[\"']?"
_ERROR: Final = re.compile(
    r"http(?<=\bhttp)(?:/[\d.]{1,3})?[ \w]{0,20}[\"']?[:= ]{0,3}[\"']?[45]\d\d\b"
    rf"|{_STATUS}(?:\s{{0,2}}[:=]\s{{0,2}}|\s)[\"']?[45]\d\d\b"
    r"|(?:success|ok)[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:false|no)\b"
    r"|[45](?<![\d.,][45])\d\d (?:bad request|unauthorized|forbidden|not found|conflict|gone|too many requests"
    r"|unprocessable|internal server error|bad gateway|service unavailable|gateway time)"
)
_SUCCESS: Final = re.compile(
    r"http(?<=\bhttp)(?:/[\d.]{1,3})? 2\d\d\b"
    rf"|{_STATUS}\s{{0,2}}[:=]\s{{0,2}}[\"']?(?:2\d\d|ok)\b"
    r"|success(?<!unsuccess)(?<!not success)(?<!no success)(?<!without success)(?:ful|fully|_)?\b"
    r"|ok(?<=[\"']ok)[\"']\s{0,2}:\s{0,2}true\b"
)
_WORD_OF_ERROR: Final = re.compile(_NOT + r"(?<![a-z])(?:error|failed|failure)(?:s?\b|_)" + _NOTHING)
_FAILED: Final = re.compile(
    r"\s{0,9}(?:[\w.]{0,60}(?:Error|Exception)\s?[:(]|(?:ERROR|FAILED|[Ee]rror|[Ff]ailed)\s?[:(]"
    r"|Traceback \(most recent|An error occurred|Error (?:executing|invoking|calling|running) "
    r"|\{\s{0,9}\"(?:error\"\s{0,2}:\s{0,2}(?!null|false|\"\"|\{\}|\[\]|\s)|is_?[eE]rror\"\s{0,2}:\s{0,2}true"
    r"|(?:success|ok)\"\s{0,2}:\s{0,2}false|status\"\s{0,2}:\s{0,2}\"(?:error|fail)))"
)


def has_failed(content: Any, said: bool | None) -> bool:  # noqa: FBT001 - the message's flag
    """Return True for an error. Use the message's flag, else the usual beginnings of error texts."""
    if said is not None:
        return said
    text = text_of(content)
    return text is not None and _FAILED.match(text) is not None


def status_of(head: str, said: bool | None) -> str | None:  # noqa: FBT001 - the message's flag
    """Return ``error`` or ``success`` from a result's flag and beginning, or None if neither shows it."""
    plain = head.lower()
    if said or _ERROR.search(plain) or _FAILED.match(head):
        return "error"
    if _WORD_OF_ERROR.search(plain):
        return None if said is False else "error"
    return "success" if said is False or _SUCCESS.search(plain) else None


_TEXTS: Final = (
    r"\[Tool call (?:was interrupted and did not return a result|could not be executed because its )",  # DeerFlow
    r"\[write_file failed before execution: ",  # DeerFlow
    r"Tool call .{0,200}? with id .{0,100}? (?:did not complete|was cancelled|could not be executed)",  # deepagents
    r"The tool call was interrupted before a result was produced",  # pydantic-ai
    r"(?:Output t|T)ool not (?:executed|used) - a final result",  # pydantic-ai
    r"Tool execution was interrupted by an error|The tool call was denied\.",  # pydantic-ai
    r"Tool execution (?:for .{0,100}? was manually rejected by user|cancelled\.?\s*$)",  # openai-agents
    r"Tool execution was not approved\.",  # openai-agents
    r"User rejected the tool call for |Tool call limit exceeded\. Do not ",  # langchain
    r"Tool was interrupted|This tool call was not executed|Tool cancelled by hook|Tool call cancelled\. ",  # strands
    r"Tool execution cancelled locally; ",  # strands
    r"Tool call limit reached\. Tool call .{0,200}? not executed",  # agno
    r"Tool call was rejected\s*$|Function call was rejected by the user",  # agno
    r"Error: Missing tool result |This tool call is rejected\.",  # google-adk
    r"Tool '.{1,200}?' has reached its (?:maximum )?usage limit ",  # crewai
    r"Tool execution for '.{1,200}?' was rejected by the user\.",  # haystack
    r"Error: Tool call (?:invocation was rejected by user|was cancelled)\.",  # agent-framework
    r"User denied the tool call request|The turn was cancelled before this tool finished\.",  # ag2
    r"This tool call was not completed: ",  # ag2
    r"\{\"error\": \"(?:limit_reached|repeated_call|tool_denied)\", ",  # a limit and the policy of this package
    r"\[System: Tool execution skipped/interrupted by user",  # litellm
)
_PLACEHOLDER: Final = re.compile("|".join(_TEXTS), re.DOTALL)
_LONGEST: Final = 1024


def is_placeholder(content: Any) -> bool:
    """Return True for a framework's placeholder: its call is not completed, and its arguments may still be needed."""
    text = text_of(content)
    return text is not None and len(text) <= _LONGEST and _PLACEHOLDER.match(text) is not None


_MOST_TEXTS: Final = 4096

_found: dict[tuple[int, int, re.Pattern[str] | None, int], tuple[str, ...]] = {}


def references(content: Any, pattern: re.Pattern[str] | None = None, places: int = MOST_PLACES) -> list[str]:
    """Return the references to data stored elsewhere, in order and without duplicates. Claims hide their paths."""
    found = list(dict.fromkeys(_references(content, pattern, places)))
    claims = [reference for reference in found if is_claim(reference)]
    # The path inside a claim check is not a separate reference.
    return [each for each in found if is_claim(each) or not any(each in claim for claim in claims)]


def is_claim(reference: str) -> bool:
    """Return True for the reference of a claim check. Only a claim check resolves to the whole result."""
    return reference.startswith("claim:")


def _references(content: Any, pattern: re.Pattern[str] | None, places: int, depth: int = 4) -> Iterator[str]:
    if type(content) is str:  # cached by its hash, because each request repeats it
        cached = (hash(content), len(content), pattern, places)
        if cached not in _found:
            if len(_found) >= _MOST_TEXTS:
                _found.clear()
            _found[cached] = tuple(_in_text(content, pattern, places))
        yield from _found[cached]
    elif depth and is_list(content):
        for value in content[:MOST_NODES]:
            yield from _references(value, pattern, places, depth - 1)
    elif depth:
        known = fields(content)
        for key in list(known)[:MOST_NODES]:
            value = known[key]
            if type(key) is str and _is_reference(key):
                values = value if is_list(value) else (value,)
                ids = [each.get("id") if type(each) is dict else each for each in values[: 2 * places]]
                said = [f"{key}={each}" if type(each) in (str, int) else "" for each in ids]
                named = [each if "claim:" not in each and _NAMED.fullmatch(each) else "" for each in said]
                yield from filter(None, named)
                if all(named) and len(named) == len(values):
                    continue
            yield from _references(value, pattern, places, depth - 1)


_STEMS: Final = {
    stem: re.compile(stem + rest)
    for stem, rest in (
        ("claim:", r"(?://|v\d)"),
        ("ref", r"(?:s|erence)?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),  # no href, nor prefer
        ("Ref", r"(?:s|erence)?(?:_?[iI][dD])?(?:\\?\"|')?\s{0,2}[:=]"),
        ("REF", r"S?(?:_?ID)?(?:\\?\"|')?\s{0,2}[:=-]"),
        ("rtifact", r"s?(?:_?[iI]d)?(?:\\?\"|')?\s{0,2}[:=]"),
        ("ayload", r"_?[iI]d(?:\\?\"|')?\s{0,2}[:=]"),
    )
}
_KEYS: Final = (
    *("ref", "refid", "refids", "refs", "refno", "refnumber", "reference", "references", "referenceid", "referenceids"),
    *("referenceno", "referencenumber", "artifact", "artifacts", "artifactid", "artifactids", "payloadid"),
)
# An id in prose, a table, Markdown, XML or a list: "ref no. 8842", "| ref_id | A-1 |", "ref_ids: [1, 2]", "REF#7".
_WRITTEN: Final = {
    stem: re.compile(
        rf"{stem}(?:erence|ERENCE)?[sS]?(?:[_ ]?(?:[iI][dD]s?|IDS|[nN]o|NO|[nN]r|[nN]umber|NUMBER))?"
        r"(?P<is>[^\w\n/]{1,8}|[^\w\n/]{0,4} is )(?P<value>[\w./:#@+~-]{0,100}\d[\w./:#@+~-]{0,100})"
    )
    for stem in ("ref", "Ref", "REF")
}
_NEXT: Final = re.compile(r"\\?[\"']?\s{0,9},\s{0,9}\\?[\"']?(?P<value>[\w./:#@+~-]{1,120})")
#: A claim check, or a ticket.
_PLAIN: Final = re.compile(r"claim:(?://|v\d{1,3}:)[^\s\"'`<>()\[\]{},;\\]{1,500}|REF-\w[\w-]{0,60}")
_NAMED: Final = re.compile(
    r"(?P<key>\w{3,40})(?P<quoted>\\?\"|')?\s{0,2}(?P<is>[:=])\s{0,2}"
    r"(?:\[?\s{0,9}\{\s{0,9}\\?\"id\\?\"\s{0,2}:\s{0,2})?"  # an artifact is an object with an id
    r"(?:\\?\"|')?(?P<value>[\w./:#@+~-]{1,120})"
)
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]{1,15}://[^\s\"'`<>()\[\]{},;\\|]{1,300}")
_PATH: Final = r"(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)+|[\w.@+-]+(?:/[\w.@+-]+)+\.[a-zA-Z]\w{0,7}"
# Match from one slash to the next: the blank or sign before its word, then a path or the text up to the next blank. A
# URL's path is a part of the URL. A word of 600 or more characters is not a path. Every text matches to its end.
_TO_BLANK: Final = r"[^ \n\t\"'<>]{0,298}(?=[ \n\t\"'<>])"
_SLASH: Final = re.compile(
    r"(?:[^/]*[^\w.@+~/-]|(?<![\w.@+~/-]))"
    rf"(?:(?<!:)(?![\w.@+~/-]{{600}})(?![\w.@+~-]*//)({_PATH})|[\w.@+~-]*/(?:{_TO_BLANK})?)"
    rf"|[^/]*/(?:(?=/){_TO_BLANK})?|[^/]+"
)
_REST: Final = re.compile(r"[^ \n\t\"'<>]{0,600}[ \n\t\"'<>]?")


def _is_reference(key: str) -> bool:
    """Return True if the value of the key is a reference."""
    plain = key.replace("_", "").lower()
    return plain.endswith(_KEYS) and plain not in ("href", "prefs", "xref")


def _in_text(text: str, pattern: re.Pattern[str] | None, places: int) -> list[str]:
    """Return the references in a text and the matches of ``pattern``, ordered by kind."""
    most = 2 * places
    named = {start for stem in _STEMS for start in islice(_names(text, stem), most)}
    found = [said for said in (_named(text, start) for start in sorted(named)) if said is not None]
    written = (hit for stem in _WRITTEN for hit in islice(_writings(text, stem), most))
    for hit in sorted(written, key=re.Match.start):
        found += _written(text, hit, most)
    if pattern is not None:
        found += [hit[0] for hit in islice(pattern.finditer(text), most) if hit[0]]
    if "/" in text:
        found += islice(_urls(text), places)
        end = _REST.match(text, text.rfind("/") + 1)  # no path follows, so the search ends here
        hits = _SLASH.finditer(text, 0, end.end() if end is not None else len(text))
        found += [path.rstrip(".") for path in (hit[1] for hit in islice(hits, 4 * places)) if path]
    return found


def _every(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _names(text: str, stem: str) -> Iterator[int]:
    """Yield the positions of the references that a stem names."""
    for at in _every(text, stem):
        if (stem != "ref" or not text[at - 1 : at].isalpha()) and _STEMS[stem].match(text, at):
            yield _word_start(text, at, 24, "_")


def _writings(text: str, stem: str) -> Iterator[re.Match[str]]:
    """Yield the ids that are written after a stem."""
    end = 0
    for at in _every(text, stem):
        hit = _WRITTEN[stem].match(text, at) if at >= end and not text[at - 1 : at].isalpha() else None
        if hit is not None:
            yield hit
            end = hit.end()


def _named(text: str, start: int) -> str | None:
    """Return the reference that begins at a position of a text."""
    plain = _PLAIN.match(text, start)
    if plain is not None:
        return plain[0].rstrip(".:")
    named = _NAMED.match(text, start)
    # Prose may contain a colon too: "ref: see below".
    if named is not None and _is_reference(named["key"]) and "claim:" not in named[0]:
        value, is_id = named["value"].rstrip(".:"), named["key"].lower().endswith(("id", "ids"))
        if named["quoted"] or named["is"] == "=" or is_id or any(map(str.isdigit, value)):
            return f"{named['key']}={value}"
    return None


def _written(text: str, hit: re.Match[str], most: int) -> Iterator[str]:
    """Yield an id as the text writes it, then the next ids of its list."""
    value = hit["value"].rstrip(".:")
    if "claim:" in value:
        return
    key = text[hit.start() : hit.start("is")].replace(" ", "_")
    yield f"{key}{hit['is']}{value}" if hit["is"] in ("-", "#") else f"{key}={value}"
    if "[" in hit["is"]:
        following = _NEXT.match(text, hit.end())
        for _ in range(most):
            if following is None:
                return
            yield f"{key}={following['value'].rstrip('.:')}"
            following = _NEXT.match(text, following.end())


def _urls(text: str) -> Iterator[str]:
    end = 0
    for at in _every(text, "://"):
        url = _URL.match(text, _word_start(text, at, 80, "+.-")) if at >= end else None
        if url is not None:
            end = url.end()
            if not is_claim(url[0]):
                yield url[0].rstrip(".:!?")


def _word_start(text: str, at: int, longest: int, signs: str) -> int:
    """Return the start of the word that ends at a position. A word has letters, digits and ``signs``."""
    earliest = max(at - longest, 0)
    while at > earliest and (text[at - 1].isalnum() or text[at - 1] in signs):
        at -= 1
    return at


def deduplicate(messages: Sequence[Any]) -> list[Any]:
    """Return the messages without the ones that a restored checkpoint has duplicated; the first of each stays.

    A message is a duplicate when an earlier one has its id and is equal to it. A result is also a duplicate when an
    earlier one answers the same call with the same content. Without ids of messages, the ids of calls decide. In a
    history of texts alone, a copy of its beginning is removed when it has two different answers of 40 characters or
    more. A call stays with its result. Raises TypeError when ``messages`` is not a sequence.
    """
    history = turns.read(messages)
    places = doubled(history)
    return [message for place, message in enumerate(messages) if place not in places]


def doubled(history: History) -> set[int]:
    """Return the places of duplicates whose removal separates no call from its result."""
    found = _doubled(history)
    if not found:
        return found
    partners: dict[int, set[int]] = defaultdict(set)
    for call in history.calls:
        if call.answer is not None:
            partners[call.at].add(call.answer.at)
            partners[call.answer.at].add(call.at)
    pending = [place for place in found if not partners[place] <= found]
    while pending:
        place = pending.pop()
        found.discard(place)
        pending.extend(partners[place] & found)
    return found


def _doubled(history: History) -> set[int]:
    found: set[int] = set()
    known: dict[object, tuple[int, ...]] = {}  # the first and the last message with a key
    for place, seen in enumerate(history.seen):
        keys: list[object] = [("id", seen.id)] if seen.id is not None else []
        calls = tuple([answered.id for answered in seen.answered]) if seen.answered else (None,)
        if None not in calls:
            keys.append(("calls", calls))
        before: set[int] = set()
        for key in keys:
            earlier = known.get(key, ())
            before.update(earlier)
            known[key] = (*earlier[:1], place)
        if before and any(_same(history.messages[other], history.messages[place]) for other in before):
            found.add(place)
    return found | _repeated(history) | _copied(history)


def _repeated(history: History) -> set[int]:
    """Return the places of messages that repeat earlier ones around calls with the same ids and equal results."""
    found: set[int] = set()
    first: dict[tuple[str | None, ...], int] = {}
    messages, end, said, renumbered = history.messages, _end(history), dict[str | None, Any](), set[str | None]()
    for call in history.calls:
        if call.answer is not None:
            now = call.asked.name, call.asked.arguments, call.answer.answered.content
            if not are_equal(said.setdefault(call.asked.id, now), now):
                renumbered.add(call.asked.id)
    for place, seen in enumerate(history.seen):
        ids = tuple([asked.id for asked in seen.asked])
        if not ids or None in ids or not renumbered.isdisjoint(ids):
            continue
        earlier = first.setdefault(ids, place)
        if earlier == place or place in found or not _same(messages[earlier], messages[place]):
            continue
        apart = place - earlier
        begin = place
        while begin > apart and _same(messages[begin - 1 - apart], messages[begin - 1]):
            begin -= 1
        stop = place + 1
        while stop < end and stop - apart < begin and _same(messages[stop - apart], messages[stop]):
            stop += 1
        begin = max(begin, earlier + 1)
        calls = {tuple([asked.id for asked in one.asked]) for one in history.seen[begin:stop] if one.asked}
        is_last = stop == len(messages) and not _same(messages[begin - 1], messages[-1])
        if all(len(each or "") >= _UNIQUE for each in ids) or (len(calls) > 1 and not is_last):
            found.update(range(begin, stop))
    return found


def _end(history: History) -> int:
    """Return the number of messages before the user's last ones: the user may send the same again."""
    end = len(history.seen)
    while end and history.seen[end - 1].by_user and not history.seen[end - 1].answered:
        end -= 1
    return end


def _same(one: Any, other: Any) -> bool:
    """Return True when two messages are equal except for their ids, which a restored result may have renewed."""
    if type(one) is not type(other):
        return False
    left, right = ({key: value for key, value in fields(each).items() if key != "id"} for each in (one, other))
    return are_equal(left, right)


#: Different answers of a model in a copy, each of so many characters.
_LEAST_ANSWERS: Final = 2
_LEAST_CHARACTERS: Final = 40
_MODEL: Final = ("assistant", "ai", "model")


def _copied(history: History) -> set[int]:
    """Return the places of texts without ids that repeat the beginning of the conversation."""
    end, found = _end(history), set[int]()
    begin = next((place for place in range(end) if history.seen[place].by_user), end)
    place = begin + 1
    while place < end:
        length = 0
        while begin + length < place and place + length < end:
            both = [history.seen[at + length] for at in (begin, place)]
            has_more = any(seen.id is not None or seen.asked or seen.answered for seen in both)
            if has_more or not _same(history.messages[begin + length], history.messages[place + length]):
                break
            length += 1
        if length and _is_distinct(history.messages[begin : begin + length]):
            before = 0  # messages before the copy, such as a system message, that were copied with it
            while before < begin and _same(*(history.messages[at - 1 - before] for at in (begin, place))):
                before += 1
            found.update(range(place - before, place + length))
        place += length or 1
    return found


def _is_distinct(messages: Sequence[Any]) -> bool:
    """Return True when messages hold enough different answers of a model."""
    answers = set()
    for message in messages:
        known = fields(message)
        text = text_of(known.get("content") or known.get("parts"))
        if (known.get("role") or known.get("type")) in _MODEL and text and len(text) >= _LEAST_CHARACTERS:
            answers.add(text)
    return len(answers) >= _LEAST_ANSWERS
