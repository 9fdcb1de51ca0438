"""A grammar for the notices that a tool leaves when it cuts a result.

A notice has a frame, such as an ellipsis or a bracket, or it fills a line. It combines a verb such as `truncated` with
a number or a noun such as `output`, or it gives the number of missing items, or two numbers as in `3 of 9 shown`. The
words are data by language. They were collected in November 2026 from coding agents, frameworks, shells, databases and
cloud consoles.

Source code, documentation, diffs and logs quote notices. Therefore the position decides: a notice fills a line outside
code fences, or it ends the text or a JSON string, or it breaks a line without quotation marks.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate, islice
from typing import Final, NamedTuple

from agent_otel._internal.errors import attempt
from agent_otel._internal.lazy import pattern

MARKER: Final = "marker"
OFFLOADED: Final = "offloaded"
CLEARED: Final = "cleared"


class Language(NamedTuple):
    """The words of one language, as regular expressions.

    ``stems`` are plain texts. Each notice contains one of them. ``cut`` are the verbs, ``more`` matches the number of
    missing items, ``shown`` captures two numbers, and ``line`` matches a notice that has no frame. ``rarer`` stems are
    sought only near signs of a notice.
    """

    stems: tuple[str, ...]
    cut: str
    more: str
    shown: str
    line: str
    rarer: tuple[str, ...] = ()


_N: Final = r"[~+]?\d(?:[\d,. ]{0,16}\d)?\+?"
_NOUN: Final = (
    r"(?:outputs?|results?|responses?|contents?|observations?|listing|list|logs?|diff|patch|file|files|text|message|"
    r"document|data|page|snapshot|stdout|stderr|body|preview|argument|transcript|trace|history|line)\b"
)

ENGLISH: Final = Language(
    ("runcat", "mitted", " more ", "howing "),
    r"(?:truncat(?:ed|ing)|omitt(?:ed|ing)|elided|clipped|trimmed|cropped|cut (?:off|short)|abbreviated|shortened|"
    r"skipp(?:ed|ing)|suppressed|hidden|collapsed|removed|not (?:shown|displayed|listed|included)|too (?:large|long)|"
    r"exceed(?:s|ed)|limit reached)",
    rf"(?:and )?{_N} (?:more|additional|other|further|remaining)\b(?! (?:than|above|below|pixels|years?|days?|times?))",
    rf"\b(?:show(?:ing|ed|n|s)?|display(?:ing|ed)|list(?:ing|ed)|return(?:ing|ed)|print(?:ing|ed)|limited to|first|"
    rf"only)\b[^\d\n]{{0,30}}({_N})[^\d\n]{{0,24}}\b(?:out )?of\b[^\d\n]{{0,12}}({_N})|"
    rf"({_N})[^\d\n]{{0,12}}\b(?:out )?of\b[^\d\n]{{0,12}}({_N})[^\d\n]{{0,16}}\b(?:shown|displayed|listed|returned)\b",
    r"(?!(?:we|it|i|they|you|he|she|where|when|if|once|as) )(?:the |this |your |tool |full )*(?:[\w']+ ){0,2}"
    r"(?:output|results?|response|content|log|listing|observation)\b"
    r"(?: set| body| text| of(?: \w+){1,4}?)?(?: (?:is|are|was|were|has been|have been|got))?:? "
    r"(?:truncated|clipped|omitted|trimmed|shortened|cut off|cut short|too (?:large|long)|exceed(?:s|ed))"
    r"(?! (?:when|if|by the|unless|whenever|where|here|in the)|,)|"
    r"(?:only )?showing (?:only )?(?:the )?(?:top|first|last) \d|there are more than \d[^\n]* first \d|"
    r"(?:the |this )?(?:output|results?|response|list)\b[^.\n]{0,30}\bincomplete\b|skipping \d[\d,.]* ?[kmg]b\b|"
    r"truncated output \(|full result was not stored|[\w' ]{1,24}exceeded (?:the )?(?:maximum |size )?limit of \d|"
    r"\d[\d,.]* rows? \(\d[\d,.]* shown\)",
    (
        *("elided", "lipped", "hown", "too l", "aved ", "isplayed", "ncomplete", "howed ", "more than"),
        *("RUNCAT", "rimmed", "kipp", "idden", "uppressed", "isted", "imited to", "xceed", "hortened", "emoved"),
        *("ropped", "nly ", "ritten to", "ull result", " artifact", "ffloaded: ", "mitting", "emaining", "dditional "),
    ),
)
#: Sources: localised tools such as Dify, Qwen, LINE, Kakao and SAP.
LANGUAGES: Final = {
    "zh": Language(
        ("截", "略", "示", "还有"),
        r"(?:截断|截斷|省略|裁剪|未显示|未顯示|未列出)",
        r"(?:还有|另有|還有|其余|剩余) ?\d[\d,]* ?\w",
        rf"[显顯]示(?:了)?(?:前|最后)? ?({_N}) ?\w{{1,3}}[^\d\n]{{0,8}}(?:共|总|全部|/)[^\d\n]{{0,4}}({_N})",
        r"(?:输出|輸出|内容|內容|结果|結果|响应|文件)(?:过长|太长|過長)?\W{0,2}(?:已|已经|被|已被)(?:截断|截斷|省略|裁剪)$",
    ),
    "ja": Language(
        ("切り", "他 "),
        r"(?:省略|切り捨て|切り詰め|打ち切)",
        r"(?:他|ほか|残り|あと) ?\d[\d,]* ?(?:件|行|文字|個|ファイル)",
        rf"({_N}) ?(?:件|行|個|文字)?(?:中|のうち)\W?(?:最初の|先頭)?({_N}) ?(?:件|行|個|文字)?(?:のみ|だけ)?を?表示",
        r"(?:出力|結果|内容|応答)(?:が長すぎるため|は|が)*(?:、)?(?:省略|切り捨て|切り詰め)(?:られ|され)ました$",
    ),
    "ko": Language(
        ("생략", "잘렸", "표시", "더 있"),
        r"(?:생략|잘렸|잘림|잘라)",
        r"(?:외|그 외|나머지) ?\d[\d,]* ?\w",
        rf"(?:전체|총) ?({_N}) ?\w{{0,2}} ?(?:중|가운데) ?({_N}) ?\w{{0,2}} ?(?:만 )?표시",
        r"(?:출력|결과|내용|응답)(?:이|가|은)? ?(?:너무 길어 )?(?:잘렸습니다|생략되었습니다)$",
    ),
    "de": Language(
        ("gekürzt", "gelassen", "geschnitten", "ezeigt", "weitere "),
        r"(?:gekürzt|ausgelassen|weggelassen|abgeschnitten|nicht angezeigt)",
        rf"(?:und )?{_N} weitere\b",
        rf"({_N})[^\d\n]{{0,12}} von ({_N})[^\d\n]{{0,20}}(?:angezeigt|gezeigt)",
        r"(?:die |das )?(?:ausgabe|ergebnis|antwort|inhalt)(?: ist| wurde)? (?:gekürzt|abgeschnitten)",
    ),
    "fr": Language(
        ("ronqu", "omis", "ffich", " autres "),
        r"(?:tronqu[ée]e?s?|omis(?:es?)?|non affich[ée]e?s?)",
        rf"(?:et )?{_N} autres?\b",
        rf"affich\w*[^\d\n]{{0,12}}({_N})[^\d\n]{{0,20}} (?:sur|de) ({_N})",
        r"(?:la |le )?(?:sortie|résultat|réponse|contenu)(?: est| a été)? tronqu[ée]e?",
    ),
    "es, pt, it": Language(
        ("runcad", "mitid", "ostr", " más", "mais ", "roncat", "omess", "altr"),
        r"(?:truncad[oa]s?|omitid[oa]s?|(?:re)?cortad[oa]s?|no mostrad[oa]s?|troncat[oaie]|omess[oaie])",
        rf"(?:y )?{_N} (?:\w+ )?más\b|(?:e )?(?:mais|altri|altre) {_N}",
        rf"(?:mostra(?:ndo|das?|dos?|t[oaie])?|se muestran|exibindo)[^\d\n]{{0,12}}({_N})[^\d\n]{{0,16}} d[ei] ({_N})",
        r"(?:l'|il |la |el |a |o )?(?:salida|resultado|contenido|saída|conteúdo|output|risultato|contenuto)"
        r"(?: está| fue| foi| è stato)? (?:truncad|recortad|troncat)[oa]\b(?! por| da)",
    ),
    "ru": Language(
        ("обрез", "усеч", "пропущ", "оказан", "ещё "),
        r"(?:обрезан\w{0,2}|усеч[её]н\w{0,2}|пропущен\w{0,2}|сокращ[её]н\w{0,2}|опущен\w{0,2})",
        rf"(?:и )?ещё {_N}",
        rf"показан\w{{0,2}} ({_N})[^\d\n]{{0,12}} из ({_N})",
        r"(?:вывод|результат|ответ) (?:был )?(?:обрезан|усеч[её]н|сокращ[её]н)$",
    ),
}

_WORDS: Final = (ENGLISH, *LANGUAGES.values())
_LATIN: Final = ("de", "fr", "es, pt, it")


def _any(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_CUT: Final = _any(
    rf"(?<![-/.])\b{_any(ENGLISH.cut, *(LANGUAGES[code].cut for code in _LATIN))}\b",
    *(words.cut for code, words in LANGUAGES.items() if code not in _LATIN),
)
_MORE: Final = _any(*(words.more for words in _WORDS))
_SHOWN: Final = pattern("|".join(words.shown for words in _WORDS), re.IGNORECASE)
#: Notices without a frame. They count at the beginning and the end of a text.
_LINE: Final = pattern(
    _any(
        *(words.line for words in _WORDS),
        rf"{_N} \w+ (?:were |was |have been |has been )?(?:omitted|truncated|elided|not (?:shown|displayed))\.?$",
        rf"{_N} more \w+ (?:were )?(?:omitted|hidden|not (?:shown|displayed|listed))\b",
        r"\+\d[\d,]* more(?: \w+)?(?: \([^()]*\))?$",
    ),
    re.IGNORECASE,
)
_DOTS: Final = r"(?:\.{3}|…{1,2})"
_INSIDE: Final = r"[^\[\]\n]{0,160}"
#: Candidates: brackets next to dots, text between dots, a number after dots, brackets and tags.
_FRAME: Final = pattern(
    rf"{_DOTS}[ _]?(?:\[{_INSIDE}\]|\([^()\[\]\n]{{0,160}}\)|（[^（）\n]{{0,80}}）|<[^<>\n]{{0,80}}>)(?: ?{_DOTS})?|"
    rf"{_DOTS}[ _]?[^.…\n]{{1,120}}?_?{_DOTS}|{_DOTS} ?{_N}[^.…\n]{{1,60}}|"
    rf"{_DOTS} ?\w+ truncated at {_N} \w+\.?|<(error|notice|warning|elided_chars)>[^<>\n]{{0,160}}</\w+>|"
    rf"\[{_INSIDE}\]|\([^()\[\]\n]{{0,160}}\)|（[^（）\n]{{0,80}}）|"
    rf"<truncated [^<>\n]{{0,160}}>|<[^<>=\n]{{0,160}}>(?:<NOTE>[^<>\n]{{0,240}}(?:</NOTE>)?)?"
)
_SAYS_CUT: Final = pattern(_CUT, re.IGNORECASE)
_SAYS_MORE: Final = pattern(rf"(?:^|[^\w.]){_MORE}", re.IGNORECASE)
_NUMBER: Final = pattern(r"\d")
_THING: Final = pattern(
    rf"\b{_NOUN}|输出|輸出|内容|內容|结果|出力|結果|출력|결과|ausgabe|sortie|salida|saída|вывод", re.IGNORECASE
)
_ALONE: Final = pattern(r"\W*(?:truncated|clipped)\W*(?:(?:for|to|at|due|because|after|by)\b.*)?", re.IGNORECASE)
#: Lines of stack traces, diffs, pagers and code that look like notices.
_OTHER: Final = pattern(
    r"\b(?:frames?|unchanged|identical|more \w+ (?:above|below)|pixels|pages? \d+ of|normal distribution|by the)\b|"
    r"[{}$%]|^<!--|^\([^\n]*[\"=]| [+*/=|]+ |:\]"
)
_UNIT: Final = pattern(rf"(?:and |\+)?{_N} \w+ [^\W\d]|(?:and |\+|y |e |et |und ){_N}|[^\x00-\x7f]", re.IGNORECASE)
_STORED: Final = pattern(
    r"\b(?:full|complete|entire|whole)\b[^\n]{0,12}\b(?:output|result|response|content|log|text|data|diff)s?\b"
    r"[^\n]{0,24}"
    r"\b(?:saved|written|stored|persisted|offloaded)\b[^\n]{0,12}\b(?:to|in|at|as|read)\b|"
    r"\b(?:output|result)s? (?:has been |was |is |of this tool call [^\n]{1,80} was )?(?:saved|stored|offloaded) "
    r"(?:to|in|at|as)\b|for full output see\b|Offloaded: \d|Preview truncated; read\b|"
    r"Full result stored;|^\[[^\]]*full output: ?/",
    re.IGNORECASE,
)
_STORED_LINE: Final = pattern(
    r"(?:error: )?(?:the tool call succeeded but )?(?:the |this |your |full |complete |entire |whole |tool |large )*"
    rf"(?:[\w-]+ )?{_NOUN}",
    re.IGNORECASE,
)
_NOT_STORED: Final = pattern(r"\bNOT (?:stored|saved)\b")
_CLEARED: Final = pattern(
    r"\s*[\[(<][^\[\]\n]{0,60}\b(?:output|result|content)s?\b[^\[\]\n]{0,40}\b(?:cleared|pruned|compacted|evicted)\b"
    r"[^\[\]\n]{0,60}[\])>]\s*|\s*\[cleared\]\s*",
    re.IGNORECASE,
)
LONGEST_CLEARED: Final = 160

#: Names of keys that mark an object as truncated when the value is true, a positive number or a path.
OWN_KEYS: Final = ("runcated", "elided_chars", "lc_evicted_to")
#: Keys that only announce another page.
PAGED_KEYS: Final = ("is_truncated", "isTruncated", "IsTruncated")
_KEY: Final = pattern(r'"(\w{0,32}(?:runcated\w{0,24}|elided_chars))"\s*:\s*(?:true\b|[1-9])')

_SPAN: Final = 240  # characters read on each side of a stem
_OFF_CENTER: Final = 8
_AHEAD: Final = 400
_EDGE: Final = 400  # characters from either end where a line needs no frame
_FIRST_LINES: Final = 6
_OUTPUTS: Final = ('{"output":', '{"stdout":')
_BEFORE_LEAF: Final = 32
_LONGEST_DOCUMENT: Final = 256 * 1024
_SIGNS: Final = ("[", "...", "(", "<", "…", "（")
_MORE_STEM: Final = " more "  # counts only after a number
_MOST_PLACES: Final = 8
_MOST_LINES: Final = 24
_LONGEST_FRAME: Final = 180
_LONGEST_PLAIN: Final = 200
_IN_JSON: Final = pattern(r"\s*[{\[]\s*[\"{\[\]}]")
_AROUND: Final = 448
_NEAR: Final = 128
_HEAD: Final = 256
_LONGEST_LINE: Final = 64 * 1024

_ITEM: Final = pattern(
    r"\s*(?:(?!--+ .* --+$|\|[^|]*\|$)[-+>|#*/;%]+\s+|[>#]|\+(?!\d+ more)|-(?=[.\[(<…])|//)"
)  # of a list, a diff, a mail, a table, a comment
_DATED: Final = pattern(r"\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d")
_BLOCK: Final = pattern(r" {4}\S")  # a code block of Markdown
_SET_IN: Final = 2
_FEW_BEFORE: Final = 12
_ENCLOSED: Final = pattern(r"[\"'`\[\]{}=|]")
#: A line without quotation marks and brackets.
_PLAIN: Final = pattern(r"[^\"'`\[\]{}=|<>]{1,200}")
_DRESS: Final = pattern(r"\x1b\[[\d;]*m|^\s*\d+(?:\t|→)|^\s*\d+: ")
_TAGS: Final = pattern(r"^(?:<(?!truncated)[a-zA-Z][\w:-]{0,64}>\s{0,4})+|(?:\s{0,4}</[\w:-]{1,64}>)+$")
_EDGES: Final = " \t\r|│,;*_~="
_WARNING: Final = pattern(
    r"(?:\W*\b(?:warning|warn|note|notice|info|important|caution|attention)\b\W+)+", re.IGNORECASE
)
_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d\xab\xbb"
_QUOTED: Final = tuple(_QUOTES)
_AFTER_LAST: Final = " \t\r\n`.…*_"
_MARKS: Final = " \t-+>|#*/;%"  # of lists, diffs, mails, tables and comments
_LITERALS: Final = ('"""', "'''")
_FENCES: Final = ("```", "~~~")
_OPENERS: Final = {"[": "]", "(": ")", "（": "）"}
_STRING: Final = pattern(r'"(?:[^"\\]|\\.)*"')
_NEAR_QUOTE: Final = 32
_OF_CODE: Final = "=({,$}"
_OPEN_QUOTE: Final = {quote: pattern(rf"(?:^|[^\w\\{quote}]){quote}(?=[^{quote}])") for quote in "\"'`"}


def read(text: str, stem: str, begin: int, end: int, seen: set[int]) -> str | None:
    """Return the reason of a notice near one of the last occurrences of a stem.

    ``seen`` collects the starts of lines that were read, so that no line is read twice.
    """
    found = None
    at = text.rfind(stem, begin, end)
    for _ in range(_MOST_PLACES):
        if at < 0 or len(seen) > _MOST_LINES:
            break
        if stem == _MORE_STEM and not text[at - 1].isdigit():
            at = text.rfind(stem, begin, max(at - 1, begin))
            continue
        at += stem[0] == "\n"
        first = text.rfind("\n", max(at - _SPAN, 0), at) + 1 or max(at - _SPAN, 0)
        if first not in seen:
            reason = _judged(text, at, first, seen)
            if reason is OFFLOADED:
                return reason
            found = found or reason
        at = text.rfind(stem, begin, max(at - 1, begin))
    return found


def _judged(text: str, at: int, first: int, seen: set[int]) -> str | None:
    """Return the reason of the notice in the line around a stem."""
    last = text.find("\n", at, at + _AHEAD)
    last = min(len(text), at + _AHEAD) if last < 0 else last
    line = text[first:last]
    has_end = text[last : last + 1] in ("", "\n") or _ALONE.match(line)  # a result may follow, as in CAMEL
    is_line = (not first or text[first - 1] == "\n") and has_end
    seen.add(first)
    for key in islice(_KEY.finditer(line), 4) if '"' in line and ("runcated" in line or "elided" in line) else ():
        if key[1] not in PAGED_KEYS and is_own_key(text, first + key.start(), first + key.end()):
            return MARKER
    if not any(sign in line for sign in _SIGNS) and not (
        is_line and len(line) <= _LONGEST_PLAIN and _is_at_edge(text, first, last)
    ):
        return None
    is_context = line[:1] == " " and text.startswith(("diff ", "--- ", "@@ "))
    if is_line and not is_context and not _ITEM.match(line) and (reason := _of_line(text, line, first, last)):
        return reason
    for frame in _FRAME.finditer(line, max(at - first - _LONGEST_FRAME, 0)):
        if frame.end() <= at - first:
            continue
        if frame.start() > at - first:
            break
        inner = frame.group()
        is_stored = _is_stored(inner)
        if (is_stored or _says(inner)) and _is_here(text, first + frame.start(), first + frame.end(), first, last):
            return OFFLOADED if is_stored else MARKER
    return None


def _is_at_edge(text: str, first: int, last: int) -> bool:
    """Return True for a line near the beginning, near the end, or exactly in the middle."""
    if abs(first + last - len(text)) <= _OFF_CENTER:
        return True
    return len(text) - last <= _EDGE or (first <= _EDGE and text.count("\n", 0, first) < _FIRST_LINES)


def _of_line(text: str, line: str, first: int, last: int) -> str | None:
    """Return the reason of a line if the whole line is a notice outside code fences."""
    bare = _TAGS.sub("", _DRESS.sub("", line).strip(_EDGES)).strip(_EDGES)
    dashed = bare.strip("-")
    if len(bare) - len(dashed) > 1:
        bare = dashed.strip()
    warned = _WARNING.match(bare)
    bare = bare[warned.end() :] if warned else bare
    if not bare or bare[0] in _QUOTES or bare[1:2] in _QUOTED:
        return None
    is_framed = bare[0] in _OPENERS or bare[0] == "…" or bare.startswith("...") or bare[0] == "<"
    if not is_framed and not _is_at_edge(text, first, last):
        return None
    if not is_framed and _BLOCK.match(line):
        return None
    reason = None
    if _is_stored(bare) and (is_framed or (not line[:1].isspace() and _STORED_LINE.match(bare))):
        reason = OFFLOADED
    elif is_framed:
        reason = MARKER if _says_in_front(bare) and not _is_set_in(text, line, first) else None
    elif _LINE.match(bare) or (_PLAIN.fullmatch(bare) and _is_part(bare, _FEW_BEFORE)):
        reason = MARKER
    return None if reason is None or _is_fenced(text, first, last) else reason


def _is_set_in(text: str, line: str, first: int) -> bool:
    """Return True for a line that is indented more than the one before. The last item of a list does not count."""
    blank = line[: len(line) - len(line.lstrip())]
    if len(blank) < _SET_IN or _SAYS_MORE.search(line):
        return False
    before = text[text.rfind("\n", max(first - 1 - _SPAN, 0), max(first - 1, 0)) + 1 : max(first - 1, 0)]
    return not before.startswith(blank) or text.startswith("# ") or before.strip()[:1] in ("", "[", "(", "<", ".", "…")


def _says_in_front(bare: str) -> bool:
    """Return True if a line that starts with a frame says that something is missing."""
    closer = _OPENERS.get(bare[0])
    end = bare.find(closer) if closer else -1
    if closer is None or end < 0:
        return _says(bare)
    inner, rest = bare[: end + 1], bare[end + 1 :].strip(" .…*_")
    if closer in rest:  # another bracket is in the bracket
        inner, rest = (bare, "") if bare.rstrip(" .…").endswith(closer) else (inner, rest)
    if not rest:
        return _says(inner) or _says(bare)
    if _ALONE.fullmatch(inner):
        return _LINE.match(rest) is not None
    return rest[0] not in "(:" and _says(inner)


def _says(notice: str) -> bool:
    """Return True if a framed text says that something is missing."""
    if _OTHER.search(notice):
        return False
    if _SAYS_CUT.search(notice):
        return bool(_NUMBER.search(notice) or _THING.search(notice) or _ALONE.fullmatch(notice))
    more = _SAYS_MORE.search(notice)
    return (more is not None and _UNIT.search(notice, more.start()) is not None) or _is_part(notice)


def _is_part(notice: str, most_before: int = _SPAN) -> bool:
    """Return True for two different numbers, as in `3 of 9 shown`."""
    shown = _SHOWN.search(notice)
    if shown is None or _OTHER.search(notice) or shown.start() > most_before or "(" in notice[1 : shown.start()]:
        return False
    few, many = (int("0" + re.sub(r"\D", "", number)) for number in shown.groups() if number is not None)
    return few != many


def _is_stored(notice: str) -> bool:
    """Return True if a notice says where the full result is. Quoted text does not count."""
    stored = _STORED.search(notice)
    return stored is not None and not _NOT_STORED.search(notice) and not _ENCLOSED.search(notice, 1, stored.start())


def _is_here(text: str, begin: int, end: int, first: int, last: int) -> bool:
    """Return True if a framed notice in a line reports a cut and is not quoted."""
    before, after, notice = text[first:begin], text[end:last], text[begin:end]
    is_escaped = before[-2:] == "\\n" or after[:2] == "\\n"
    has_quotes = (before[-1:] in _QUOTED) + (after[:1] in _QUOTED)
    is_quoted = has_quotes > (notice[0] == "…" == notice[-1]) or is_escaped or after.startswith("</")
    has_dots = "..." in notice or "…" in notice or notice[0] == "<"
    is_last = len(text) - end <= _NEAR and not text[end:].strip(_AFTER_LAST)
    if _IN_JSON.match(text) is not None:
        if _is_in_leaf(text, begin, end):
            return True
        is_whole = is_quoted or (len(text) <= _LONGEST_DOCUMENT and attempt(json.loads, text) is not None)
        return not is_whole and (has_dots or is_last)
    is_set_in = not before.strip()
    is_closed = notice[-1] in "])>）.…" or " truncated at " in notice
    if is_quoted or (not before.strip(_MARKS) and not is_set_in) or (is_set_in and not has_dots):
        return False
    if is_last:
        has_thing = has_dots or notice[0] != "(" or _THING.search(notice) is not None
        return has_thing and (notice[0] == "<" if is_set_in else is_closed or not before[-1].isspace())
    is_between_blanks = not is_set_in and after[:1].isspace() and (before[-1].isspace() or _DATED.match(before))
    is_aside = notice[0] == "(" and abs(begin + end - len(text)) > _OFF_CENTER
    is_free = is_closed and not is_aside and not is_between_blanks and bool(after.strip() or not is_set_in)
    return is_free and not _is_of_code(before, notice, after, has_dots=has_dots)


def _is_of_code(before: str, notice: str, after: str, *, has_dots: bool) -> bool:
    """Return True for an argument, an index or a part of a string literal."""
    if notice[0] == "<":
        return False
    if before[-1] in "{}" or (not has_dots and (before[-1] in _OF_CODE or any(each in notice for each in _QUOTES))):
        return True
    near = _NEAR_QUOTE if notice[0] != "…" else _NEAR_QUOTE // 3
    before, after = before[-near:], after[:near]
    return any(
        len(opening.findall(before)) > before.count(quote) / 2 and quote in after
        for quote, opening in _OPEN_QUOTE.items()
    )


def _is_in_leaf(text: str, begin: int, end: int) -> bool:
    """Return True if a notice ends a string of a JSON text, or fills a line in the string."""
    if text[end : end + 1] == '"' or text[end : end + 2] == '."':
        leaf = text[max(begin - _BEFORE_LEAF, 0) : begin].replace('\\"', "")
        return (
            begin >= _BEFORE_LEAF
            and '"' not in leaf
            and leaf.replace("\\u2026", "").rstrip()[-2:] != "\\n"
            and is_own_key(text, begin, text.index('"', end) + 1)
        )
    is_output = text.startswith(_OUTPUTS)
    return is_output and text[max(begin - 2, 0) : begin] == "\\n" == text[end : end + 2]


def _is_fenced(text: str, begin: int, end: int) -> bool:
    """Return True if a line is inside a code fence or a literal of several lines.

    A fence around the whole result does not count.
    """
    before, after = text[max(begin - _AROUND, 0) : begin], text[end : end + _AROUND]
    for fence in _LITERALS:
        is_near = fence in before[-_NEAR_QUOTE:] and fence in after[:_NEAR_QUOTE]
        if is_near or (fence in after[:_NEAR] and before[-_NEAR:].count(fence) % 2):
            return True
    for fence in _FENCES:
        opened, closed = before.count(fence), after.count(fence)
        # Where a side is not known whole, the other one decides.
        is_open = opened % 2 == 1 or (begin > _AROUND and len(text) - end <= _AROUND)
        is_closed = closed % 2 == 1 or (begin <= _AROUND < len(text) - end)
        is_near = fence in before[-_NEAR:] and fence in after[:_NEAR]
        if opened + closed and ((is_open and is_closed) or (is_near and begin > _AROUND < len(text) - end)):
            is_whole = text.startswith(fence) or (len(text) > _AROUND and fence in text[:_HEAD])
            return not (is_whole and text[-_HEAD:].rstrip().endswith(fence))
    return False


def is_cleared(text: str) -> bool:
    """Return True if the whole text only says that the result was removed."""
    return _CLEARED.fullmatch(text) is not None


def is_own_key(text: str, begin: int, end: int) -> bool:
    """Return True if a key belongs to the outermost object, which starts or ends the text.

    A text with one object in each line has no outermost object.
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
