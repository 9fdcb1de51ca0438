"""The markers of agent tools that cut a result: the texts of 64 places in 31 projects, as data.

Read in what the projects published, in November 2026: Claude Code 2.1.329, Gemini CLI 0.61.0, Codex 0.169.0, opencode
1.18, smolagents 1.26.0, OpenHands SDK 1.58.2, Strands 1.62.0, LangChain 1.5.0, deepagents 0.7.32, FastMCP 4.2.0,
mcp-server-fetch 2026.10, Pydantic AI 2.68.0, Agno 3.1.10, CrewAI 1.15.30, CAMEL 0.2.90, AgentScope 2.0.10, Google ADK
2.13.0, ag2 1.2.1, browser-use 0.13.14, DSPy 3.4.1, gptme 0.35.1, mini-swe-agent 2.4.6, open-interpreter 0.4.3; of the
others the newest.

In a template ``#`` stands for a number with or without a unit and ``*`` for up to 80 characters of one line; everything
else is literal.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from agent_otel._internal.lazy import pattern

MARKER: Final = "marker"
OFFLOADED: Final = "offloaded"
CLEARED: Final = "cleared"


class Marker(NamedTuple):
    """A marker text, the projects that write it, and the reason that it gives for the cut.

    ``leads`` is true for one that stands at the beginning, with the rest of the result behind it in its line.
    """

    project: str | None
    template: str
    reason: str = MARKER
    leads: bool = False


STEMS: Final = (
    "runcated",
    "omitted",
    "too large",
    "RUNCATED",
    "elided",
    "clipped",
    "Full result ",
    "Offloaded: ",
    "output_masked",
    "ceeds ma",  # the x of "exceeds maximum" would make Python look again and again in digits and base64
)
"""Every template contains one of these. Looking for them costs less than any regular expression."""
COMMON: Final = "ed"
RARER_STEMS: Final = tuple(stem for stem in STEMS if COMMON not in stem)
"""The stems that a text without these two letters may contain: a third of them."""

# Offloaded first: such a result is complete elsewhere, even if the text contains another marker.
MARKERS: Final = (
    Marker("claude-code", "Output too large (*). Full output saved to: ", OFFLOADED),
    Marker("claude-code", "Error: result (*) exceeds maximum allowed tokens. Output has been saved to ", OFFLOADED),
    Marker("gemini-cli", "Output too large. Showing first # and last # characters. For full output see: ", OFFLOADED),
    Marker("opencode", "The tool call succeeded but the output was truncated. Full output saved to: ", OFFLOADED),
    Marker("strands", "[Offloaded: # blocks, ~# tokens]", OFFLOADED),
    Marker("deepagents", "Tool result too large, the result of this tool call * was saved in the file", OFFLOADED),
    Marker("agno", "Full result stored; read with read_result(", OFFLOADED),
    Marker("crewai", "[Preview truncated; read the artifact for more.]", OFFLOADED),
    Marker("claude-code", "[OUTPUT TRUNCATED - exceeded # token limit]"),
    Marker("claude-code", "... [# characters truncated] ..."),
    Marker("claude-code/deepagents", "... [# lines truncated] ..."),
    Marker("claude-code", "[output truncated at # bytes]"),
    Marker("claude-code", "... [output truncated - # removed]"),
    Marker("claude-code", "<truncated-output>"),
    Marker("gemini-cli", "... [# characters omitted] ..."),
    Marker("gemini-cli", "... [# lines omitted] ..."),
    Marker("gemini-cli", "[GEMINI_CLI_WARNING: Output truncated."),
    Marker("gemini-cli", "... [Content truncated due to size limit] ..."),
    Marker("gemini-cli", "<tool_output_masked>"),
    Marker("gemini-cli", "... [TRUNCATED # chars]"),
    Marker("codex", "Warning: truncated output (original token count: #)"),
    Marker("codex", "…# tokens truncated…"),
    Marker("codex", "…# chars truncated…"),
    Marker("codex", "[... omitted # of # lines ...]"),
    Marker("codex", '<truncated omitted_approx_tokens="#"'),
    Marker("codex", "[response body truncated after "),
    Marker("opencode", "...# bytes truncated..."),
    Marker("opencode", "[Tool output truncated for compaction: omitted # chars]"),
    Marker("qwen-code", "... [# remaining cells truncated, total # cells."),
    Marker("smolagents", "..._This content has been truncated to stay below # characters_..."),
    Marker("openhands/open-interpreter", "<response clipped><NOTE>"),
    Marker("openhands", "[... Observation truncated due to length ...]"),
    Marker("openhands", "... [output truncated]"),
    Marker("strands", "... [truncated: # chars removed] ..."),
    Marker("strands", "[... # chars elided ...]"),
    Marker("strands", "[... # messages elided ...]"),
    Marker("strands-tools", "... [Response truncated due to size limit]"),
    Marker("strands-tools", "[content truncated]"),
    Marker("deepagents", "... Output truncated at # bytes."),
    Marker("langchain", "... Output truncated at # lines"),
    Marker("langchain", "... Output truncated at # bytes"),
    Marker("deepagents", "[Output was truncated due to size limits."),
    Marker("deepagents", "...(argument truncated)"),
    Marker("deepagents", "...(truncated)"),
    Marker("deepagents", "... [results truncated, try being more specific"),
    Marker("fastmcp", "[Response truncated due to size limit]"),
    Marker("mcp-server-fetch", "<error>Content truncated. Call the fetch tool with a start_index of #"),
    Marker("pydantic-ai", "[Content truncated]"),
    Marker("agno/google-adk", "[... # characters truncated ...]"),
    Marker("agno", "... [clipped, # more characters]"),
    Marker("agno", "[... # lines omitted ...]"),
    Marker("agno", "Full result was NOT stored."),
    Marker("agno", "[Output truncated: # lines total. Full output saved to: "),
    Marker("crewai/gemini-cli", "... [truncated]"),
    Marker("crewai", "[Content truncated...]"),
    Marker("crewai", "...[truncated #]..."),
    Marker("agentscope", "<system-reminder>The remaining content has been omitted for limited context."),
    Marker("camel", "[TRUNCATED] Tool '*' output truncated (# > # tokens). Tool executed successfully.", leads=True),
    Marker("google-adk", "... (truncated, # total chars)"),
    Marker("google-adk", "... [truncated # chars]"),
    Marker("ag2", "[truncated: showing first # of # chars]"),
    Marker("ag2/swarms/mastra/openhands", "...[truncated]"),
    Marker("ag2/swarms/mastra/openhands", "…[truncated]"),
    Marker("openai-agents/haystack", "... [truncated, # chars]"),
    Marker("openai-agents", "[tool output omitted]"),
    Marker("browser-use", "... [Content truncated at # characters]"),
    Marker("browser-use", "...[truncated # chars]"),
    Marker("dspy", "... (# characters omitted) ..."),
    Marker("gptme", "... (# lines truncated, full output saved to "),
    Marker("gptme", "[... # bytes omitted (# total) ...]"),
    Marker("mini-swe-agent", "<elided_chars>"),
    Marker("mini-swe-agent", '"elided_chars": #'),
    Marker("mini-swe-agent", '"elided_chars":#'),
    Marker("n8n", '"_truncated": true'),
    Marker("n8n", '"_truncated":true'),
    Marker("n8n", "[... output truncated to # KB ...]"),
    Marker("open-interpreter", "Output truncated. Showing the last # characters."),
    Marker("swarms", "... (output truncated: showing the first # of # tokens)"),
    Marker("nanobot", "(Tool output truncated because it is too large. Full output saved to: "),
    Marker(None, '"truncated": true'),
    Marker(None, '"truncated":true'),
    Marker(None, '"result_is_likely_truncated": true'),
    Marker(None, '"result_is_likely_truncated":true'),
)

WHOLE: Final = {
    "[Old tool result content cleared]": Marker("claude-code", "[Old tool result content cleared]", CLEARED),
    "[cleared]": Marker("langchain", "[cleared]", CLEARED),
}
"""Texts that are all that was left of a result."""

EVIDENCE: Final = {
    "_truncated": Marker("n8n", "_truncated"),
    "elided_chars": Marker("mini-swe-agent", "elided_chars"),
    "truncated": Marker(None, "truncated"),
    "result_is_likely_truncated": Marker(None, "result_is_likely_truncated"),
    "lc_evicted_to": Marker("deepagents", "lc_evicted_to", OFFLOADED),
}
"""Keys that mark a structured result as cut, if their value is ``True``, a positive number or a path."""

_PROJECT_CAPS: Final = (
    *(5_000, 8_192, 10_000, 16_000, 20_000, 30_000, 40_000, 50_000, 65_536, 100_000, 131_072, 1_000_000, 1_048_576),
)
_TRANSPORT_CAPS: Final = (
    4_194_304,  # gRPC, the default of a received message
    *(4_500_000, 4_718_592),  # Vercel, 4.5 MB for a function's response
    *(6_000_000, 6_291_456, 6_291_556),  # AWS Lambda, 6 MB for a synchronous response; the last one is its own number
    *(10_000_000, 10_485_760),  # Amazon API Gateway, Google Cloud Functions (1st gen)
)

KNOWN_CAPS: Final = frozenset((*_PROJECT_CAPS, *_TRANSPORT_CAPS))
"""Lengths, in characters or bytes, at which projects cut, some without a word, and at which transports end a body.

mcp-server-fetch 5,000; ag2 8,192; DSPy and mini-swe-agent 10,000; OpenHands' editor and Agno 16,000; smolagents 20,000;
OpenHands' terminal 30,000; Gemini CLI 40,000; Claude Code and OpenHands 50,000; n8n 64 KiB; CrewAI and traces of the
OpenAI Agents SDK 100,000; FastMCP 1,000,000. 128 KiB and 1 MiB are what buffers and proxies hold.
"""

_CUT: Final = r"\b(?:[Tt]runcated|TRUNCATED|omitted|elided|clipped)\b"
_NUMBER: Final = r"\d[\d,.]* ?[kKMG]?i?B?"
_UNIT: Final = r"(?:chars|characters|bytes|lines|tokens|[kKM]i?B)"
_OUTPUT: Final = r"(?:[Oo]utput|[Rr]esult|[Rr]esponse|[Cc]ontent|[Tt]ool output)s?"
_INSIDE: Final = r"[^\[\]()<>\n]{0,60}"
_THING: Final = r"(?:[Dd]iff|[Ff]ile|[Ll]og|[Pp]atch|[Tt]ext|[Bb]ody|[Dd]ata|[Ll]ist|[Tt]able|[Mm]essage)s?"
_ALONE: Final = (
    rf"(?:{_THING} (?:is |was |were )?)?(?:[Tt]runcated|TRUNCATED)(?:[,:;]? (?:for|to|at|after|because|\d){_INSIDE})?"
)

# The same habits in projects that are not listed: a bracket beside or around an ellipsis, a count, an output, or only
# "truncated" in a bracket, also of a file and the like, and with a reason. Every alternative starts with a literal, so
# that the engine skips quickly to where one may start.
_HABITS: Final = (
    *(rf"{dots} ?[\[(<]{_INSIDE}{_CUT}{_INSIDE}[\])>]" for dots in (r"\.\.\.", "…")),
    *(rf"{dots} ?{_NUMBER} ?{_UNIT} {_CUT}" for dots in (r"\.\.\.", "…")),
    *(rf"{bracket}(?:\.\.\.|…) ?{_INSIDE}{_CUT}{_INSIDE}[\])>]" for bracket in (r"\[", r"\(", "<")),
    *(rf"{bracket}(?:{_OUTPUT} (?:was |were )?{_CUT}{_INSIDE}|{_ALONE})[\])]" for bracket in (r"\[", r"\(")),
)


@lru_cache(maxsize=1)
def patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return one pattern of all markers and one of the habits.

    Compiled at the first stem found, because most processes find none.
    """
    known = "|".join(_regex(marker.template) for marker in MARKERS)
    return re.compile(known), re.compile("|".join(_HABITS))


def marker_of(found: str) -> Marker:
    """Return the marker that a text found by the first of `patterns` is; without groups that one is much faster."""
    return next(marker for pattern, marker in _single_patterns() if pattern.fullmatch(found))


@lru_cache(maxsize=1)
def _single_patterns() -> tuple[tuple[re.Pattern[str], Marker], ...]:
    return tuple((re.compile(_regex(marker.template)), marker) for marker in MARKERS)


def _regex(template: str) -> str:
    return re.escape(template).replace(r"\#", _NUMBER).replace(r"\*", r"[^\n]{0,80}?")


# A marker that reports a cut, and one that a text only quotes. Agents read source code, documentation, diffs and logs
# that are full of markers. The position decides: a notice is a line, or the end of the text, or it is between two equal
# halves; a key is one of the outermost object. At most a few hundred characters on each side of the marker are read.

_AROUND: Final = 448  # characters looked at on each side
_OFF_CENTER: Final = 3
_HEAD: Final = 256
_NEAR: Final = 128
_LONGEST_LINE: Final = 64 * 1024
_LONGEST_REST: Final = 120  # of a marker that is known by its beginning

_BRACKETS: Final = {"[": "]", "(": ")"}
_LEAD: Final = pattern(r"(?:[.…(\[][.…(\[ ]*)?")
_TRAIL: Final = pattern(r"[ \t.…)\]>_*-]{0,64}")
_END_TAG: Final = pattern(r"(?:</[\w:.-]{1,64}>)?[ \t\r]{0,64}")
_REMARK: Final = pattern(r"(?:[^<>\n]{0,200}(?:/>|</[\w:.-]{1,64}>)){0,4}")
_ITEM: Final = pattern(r"\s*[-+>|#*/;%]+\s*")  # of a list, a diff, a mail, a table, a comment
_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d\xab\xbb"
_LITERALS: Final = ('"""', "'''")
_FENCES: Final = ("```", "~~~", *_LITERALS)
_STRING: Final = pattern(r'"(?:[^"\\]|\\.)*"')


def is_notice(text: str, begin: int, end: int) -> bool:
    """Return True if the marker at ``text[begin:end]`` reports a truncation of this text and is no quotation."""
    first = text[begin]
    if first == '"':
        return is_own_key(text, begin, end)
    is_bracket = first in ".…" or first in _BRACKETS
    before = text[max(begin - _AROUND, 0) : begin]
    at = before.rfind("\n") + 1
    before, knows_line = before[at:], at > 0 or begin <= _AROUND
    if first == "<":
        close = _last(text, end, _REMARK)
    else:
        close = _closed(text, begin, end) if is_bracket else _end_of_line(text, end)
    last = _last(text, close)
    if knows_line and _LEAD.fullmatch(before) and text[last : last + 1] in ("", "\n"):
        return not _is_fenced(text, begin, close)
    if not is_bracket and first != "<":
        return False
    if len(text) - last < _AROUND and not text[last:].strip():
        return _ITEM.fullmatch(before) is None
    off = begin + len(text[begin:close].rstrip()) + begin - len(text)
    return abs(off) <= _OFF_CENTER and not _is_mentioned(before, text[close - 1 : close + 2])


def _is_mentioned(before: str, after: str) -> bool:
    """Return True if a marker is part of its line: in quotes, in a tag, between blanks, or an item of a list."""
    if not before.strip() or _LEAD.fullmatch(before) or _ITEM.fullmatch(before):
        return True
    is_quoted = before[-1] in _QUOTES or before[-2:] == "\\n" or after[1:2] in _QUOTES or after[1:] == "</"
    return is_quoted or (before[-1].isspace() and (after[0].isspace() or after[1:2].isspace()))


def _closed(text: str, begin: int, end: int) -> int:
    """Return the end of a marker in brackets, including the dots behind it."""
    found = text[begin:end]
    for opener, closer in _BRACKETS.items():
        if found.count(opener) > found.count(closer):
            at = text.find(closer, end, min(_end_of_line(text, end), end + _LONGEST_REST))
            end = at + 1 or end
    return _last(text, end, _TRAIL)


def _last(text: str, end: int, pattern: re.Pattern[str] = _END_TAG) -> int:
    match = pattern.match(text, end)
    return match.end() if match else end


def _end_of_line(text: str, begin: int) -> int:
    at = text.find("\n", begin, begin + _AROUND)
    return at if at >= 0 else min(len(text), begin + _AROUND)


def _is_fenced(text: str, begin: int, end: int) -> bool:
    """Return True if an example, or a literal of a program, opens before a line and closes behind it.

    A result that is one fence from its beginning to its end is no example.
    """
    before, after = text[max(begin - _AROUND, 0) : begin], text[end : end + _AROUND]
    knows_all_before, knows_all_after = begin <= _AROUND, len(text) - end <= _AROUND
    for fence in _FENCES:
        opened, closed = before.count(fence), after.count(fence)
        if not opened + closed:
            continue
        # Where not all of a side is known, the other one decides.
        is_open = opened % 2 == 1 or (knows_all_after and not knows_all_before)
        is_closed = closed % 2 == 1 or (knows_all_before and not knows_all_after)
        is_near = fence in before[-_NEAR:] and fence in after[:_NEAR]
        if (is_open and is_closed) or (is_near and not (knows_all_before or knows_all_after)):
            is_whole = text.startswith(fence) or (len(text) > _AROUND and fence in text[:_HEAD])
            return fence in _LITERALS or not (is_whole and text[-_HEAD:].rstrip().endswith(fence))
    return False


def is_own_key(text: str, begin: int, end: int) -> bool:
    """Return True if a key is one of the outermost object: one that begins the text, or one that ends it.

    If a text has several lines with an object each, these are not the outermost.
    """
    is_object = text[:_AROUND].lstrip()[:1] == "{"
    if is_object and begin <= _AROUND:
        return _depths(text[:begin].lstrip())[-1] == 1 and 0 not in _depths(text[:begin].lstrip())
    line = text.rfind("\n", max(begin - _LONGEST_LINE, 0), begin) + 1
    if len(text) - end > _AROUND or (is_object and line and text[line] == "{"):
        return False
    after = text[end:].rstrip()
    return after[-1:] == "}" and -1 not in _depths(after)[:-1] and _depths(after)[-1] == -1


def _depths(text: str) -> list[int]:
    """Return the number of open objects and arrays after each bracket of the text."""
    steps = [1 if letter in "{[" else -1 for letter in _STRING.sub("", text) if letter in "{}[]"]
    return list(accumulate(steps)) or [0]
