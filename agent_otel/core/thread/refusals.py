"""Model requests that a provider refuses: the reason, and the call in the request that is to blame.

A provider's code decides, then its words, then the HTTP status. Proxies wrap errors in JSON or answer with HTML, and
some translate the words. So the request itself is read last: a result without its call is visible in any language. No
code of an exception runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_otel import semconv
from agent_otel._internal.failures import class_name, classes_of, fields_of, text_of
from agent_otel._internal.object_kinds import fields, is_named, listed, text
from agent_otel.core.thread.request_parts import OF_CALLS
from agent_otel.measure.size import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_otel.core.types import RequestPart

#: Packages whose exceptions do not have their texts in their arguments.
_SDKS: Final = frozenset({"azure", "cohere", "grpc", "ollama"})
_MOST_CHARACTERS: Final = 4_096
_MOST_TEXTS: Final = 64
_DEEPEST: Final = 6
_BAD_REQUEST: Final = (400, 422)
_STREAMED: Final = 200  # the status of a stream that ends with an error
_TOO_LARGE: Final = 413
#: Fields of errors, of their bodies and of the JSON that proxies put around these.
_STATUSES: Final = ("status_code", "HTTPStatusCode", "code", "status")
_CODES_IN: Final = frozenset({"code", "Code", "error_code", "status", "type"})
_READ: Final = frozenset(
    {
        *_STATUSES,
        *_CODES_IN,
        *("Error", "Message", "ResponseMetadata", "_content", "applicationFailureInfo", "body", "cause", "content"),
        *("data", "detail", "details", "error", "errors"),
        *("message", "metadata", "msg", "param", "raw", "response", "server_message"),
    }
)
_REASONS_BY_CODE: Final = {
    **dict.fromkeys(
        (
            *("context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded"),
            *("exceed_context_size_error", "model_max_prompt_tokens_exceeded", "prompt_too_long"),
        ),
        semconv.CONTEXT,
    ),
    **dict.fromkeys(
        (
            *("request_too_large", "request_entity_too_large", "requestentitytoolarge", "payload_too_large"),
            *("payloadtoolarge", "content_too_large"),
        ),
        semconv.REQUEST_TOO_LARGE,
    ),
    **dict.fromkeys(("string_above_max_length", "string_too_long"), semconv.STRING_TOO_LONG),
}
#: Reasons that only a provider gives; other words are a provider's if the text has one of the names.
_CERTAIN: Final = frozenset({semconv.CONTEXT, semconv.CALL_WITHOUT_RESULT, semconv.RESULT_WITHOUT_CALL})
_PROVIDERS: Final = (
    r"Error code: 4|invalid_request_error|request_too_large|BadRequestError|APIStatusError|ModelHTTPError"
    r"|status_code: 4|INVALID_ARGUMENT|\(ValidationException\)|litellm|string_above_max_length"
)
_CLASS: Final = "ContextWindowExceeded"  # LiteLLM's
#: A status and a code in a text: SDKs, proxies and exports write the body of an answer as text.
_STATUS_IN: Final = r"\b(?:error|status)[ _]code\W{1,3}(4\d\d)\b|^(4\d\d) [A-Z_]{5}"
_CODE_IN: Final = r"""['"](?:code|type)\\?['"]:\s{0,2}\\?['"](\w{1,64})"""
_UNSENT: Final = "ParamValidationError"  # botocore's, of a request that no provider has seen
#: Codes of bad requests about the account, not about the request.
_NOT_ITS_FAULT: Final = r"throttl|quota|expired|credential|access|auth|billing|rate_?limit"
#: Words about a fault that is not in the messages.
_ELSEWHERE: Final = r"schema|\btools?[.\[]\d|max_?tokens|temperature|filter|polic|image|model"
_PAIR: Final = "either of both"
_TOO_MUCH: Final = frozenset({semconv.CONTEXT, semconv.REQUEST_TOO_LARGE, semconv.STRING_TOO_LONG})
_RESULT, _CALL = r"tool[ _]?(?:results?|outputs?|messages?|responses?)", r"(?:tool|function)[ _]?(?:calls?|use)"
#: Words of OpenAI and servers with its API, Anthropic, Gemini, Bedrock, Mistral, Cohere, vLLM, LiteLLM; of other
#: languages only those for the length. Texts: only a refused request needs them compiled.
_WORDS: Final = {
    semconv.RESULT_WITHOUT_CALL: (
        r"must be a response to a prec\w+ing message|no tool call found for|unexpected .?tool.use.id",
        r"tool_result block\(s\) provided when|multiple .?tool_result.? blocks|toolresult blocks .{0,60}exceeds? the",
        r"function response turn comes immediately after a function call|unexpected role \S*tool",
        r"unexpected tool call id|no previous assistant message with a tool call|missing corresponding tool call",
        rf"{_RESULT}.{{0,80}}(?:without|no (?:matching|corresponding|preceding|previous)|must follow).{{0,60}}{_CALL}",
        r"tool[ _]call[ _]id.{0,60}not found",
    ),
    semconv.CALL_WITHOUT_RESULT: (
        r"must be followed by .?tool messages|did not have response messages|insufficient tool messages",
        r"no tool output found|without .?tool_result|expected toolresult blocks|must be followed by .?tool_?result",
        rf"{_CALL}.{{0,80}}(?:without|missing|must be followed by|no (?:matching|corresponding)).{{0,60}}{_RESULT}",
    ),
    _PAIR: (r"number of function response parts|same number of function calls and responses|function call turn comes",),
    semconv.STRING_TOO_LONG: (
        r"string (?:is )?too long|string value length .{0,40}exceeds|maximum string length",
        r"string should have at most \d+ char",
    ),
    semconv.CONTEXT: (
        r"(?:prompt|input) is too long|exceeds? (?:the |this |its )?(?:model.?s |maximum |available |max )*context",
        r"(?:prompt|context|input) (?:length|window|size) exceed|context (?:length|window|size) (?:is )?exceeded",
        r"maximum (?:context|prompt|model) length|model.?s context length|too large for model with",
        r"too many (?:input |prompt )?tokens|input tokens exceeded|exceeds the maximum number of tokens",
        r"exceeded model token limit|reduce the length of the (?:messages|prompt|input)|range of input length",
        r"must have less than \d+ tokens|inputs.? tokens \+ .?max_new_tokens|(?:prompt|input) exceeds max",
        r"\b(?:input|prompt)\b[^.]{0,60}\btokens?\b[^.]{0,60}\b(?:exceed|limit of|maximum of)",
        rf"{_CLASS}|\bexit_context\b|kontekst|контекст|컨텍스트|(?:lunghezza|finestra)[^.]{{0,20}} contesto",
        r"kontext(?:l[äa]nge|fenster)|(?:longueur|fen[êe]tre)[^.]{0,20} contexte",
        r"(?:longitud|ventana|comprimento)[^.]{0,20} contexto|context (?:the )?overflows",
        r"コンテキスト|トークン.{0,12}(?:最大|上限|超)|上下文|输入.{0,8}过长|超长",
    ),
    semconv.REQUEST_TOO_LARGE: (
        r"(?:request|entity|payload|content|body|message)(?: is)? too large|exceeds the maximum (?:size|allowed n)",
        r"payload size exceeds|larger than max|value at .body. failed",
    ),
}


class Refusal(NamedTuple):
    """The reason of a refusal, and the texts in the error."""

    reason: str
    said: str


def refusal(error: Any) -> Refusal | None:
    """Return why a provider refuses a request, from an exception or an item of a stream; None for other errors."""
    found = _Said()
    if issubclass(type(error), BaseException):
        found.add("message", text_of(error, _MOST_CHARACTERS, _SDKS), 1)
        found.add("", fields_of(error), _DEEPEST)
        if any(_CLASS in class_name(cls) for cls in classes_of(type(error))):
            found.codes.insert(0, "prompt_too_long")
    else:
        found.add("", error, _DEEPEST)
    said = "\n".join(found.texts)
    reason = _reason(error, found, said)
    return None if reason is None else Refusal(reason, said)


def _reason(error: Any, found: _Said, said: str) -> str | None:
    for code in found.codes:
        if code in _REASONS_BY_CODE:
            return _REASONS_BY_CODE[code]
    statuses = (found.statuses.get(name) for name in (*_STATUSES, ""))
    status = next((one for one in statuses if one is not None and one != _STREAMED), None)
    is_elsewhere = status is not None and not 400 <= status < 500  # noqa: PLR2004 - errors of the client
    if is_elsewhere or is_named(error, _UNSENT):
        return None
    for reason, words in _WORDS.items():
        if any(re.search(each, said, re.IGNORECASE | re.DOTALL) for each in words):
            return reason
    if status == _TOO_LARGE:
        return semconv.REQUEST_TOO_LARGE
    is_bad = status in _BAD_REQUEST or (status is None and "invalid_request_error" in found.codes)
    is_other = is_bad and not any(re.search(_NOT_ITS_FAULT, code) for code in found.codes)
    return semconv.OTHER_REASON if is_other else None


def reason_of(said: Any) -> str | None:
    """Return why a provider refused a request, from an error in a file; None for errors of tools and others."""
    found = refusal(said)
    is_certain = found is not None and (found.reason in _CERTAIN or re.search(_PROVIDERS, found.said))
    return blamed(found, (), is_continued=True)[0] if found is not None and is_certain else None


def reported(item: Any) -> Any:
    """Return the error that an item of a stream reports; None for any other item."""
    known = fields(item)
    error = known.get("error")
    if error is None:
        error = fields(known.get("response")).get("error")
    return item if error is None and text(known.get("type")) == "error" else error


class _Said:
    """Codes, statuses and texts in an error, at any depth of its body."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.statuses: dict[str, int] = {}
        self.texts: list[str] = []

    def add(self, key: str, value: Any, levels: int) -> None:
        """Add a value, and the fields in it that errors have."""
        cls = type(value)
        if cls is int and key in _STATUSES:
            self.statuses.setdefault(key, value)
        elif cls is bytes or text(value) is not None:
            said = value[:_MOST_CHARACTERS].decode(errors="replace") if cls is bytes else text(value) or ""
            if key in _CODES_IN:
                self.codes.append(said.lower()[:_MOST_CHARACTERS])
            self.codes += re.findall(_CODE_IN, said[:_MOST_CHARACTERS].lower())
            if status := re.search(_STATUS_IN, said[:_MOST_CHARACTERS], re.IGNORECASE):
                self.statuses.setdefault("", int(status[1] or status[2]))
            if len(self.texts) < _MOST_TEXTS:
                self.texts.append(said[:_MOST_CHARACTERS])
        elif levels:
            for name, inner in fields(value).items():
                if name in _READ:
                    self.add(name, inner, levels - 1)
            for inner in listed(value)[:_DEEPEST]:
                self.add(key, inner, levels - 1)


def blamed(found: Refusal, parts: Sequence[RequestPart], *, is_continued: bool) -> tuple[str, RequestPart | None]:
    """Return the reason, as precisely as the request shows it, and the call or result that is to blame.

    If the provider names no id, it is the first unpaired call or result, or the largest text. The provider of a
    continued request has earlier calls.
    """
    reason, said = found
    unpaired = list(_unpaired(parts, is_continued=is_continued))
    if reason == _PAIR or (reason == semconv.OTHER_REASON and not re.search(_ELSEWHERE, said, re.IGNORECASE)):
        reason = unpaired[0][0] if unpaired else semconv.OTHER_REASON
    part = None
    if reason in _TOO_MUCH:
        wanted = (semconv.TOOL_RESULTS,) if reason != semconv.STRING_TOO_LONG else semconv.REQUEST_PARTS
        large = [each for each in parts if each.part in wanted]
        part = max(large, key=lambda each: size(each.value).bytes, default=None)
    if reason not in {semconv.CONTEXT, semconv.REQUEST_TOO_LARGE}:
        named = (each for each in parts if each.part in OF_CALLS and each.call_id and each.call_id in said)
        unanswered = (each for of, each in unpaired if of == reason)
        part = next(named, None) or part or next(unanswered, None)
    if part is None or part.part not in OF_CALLS:
        return reason, None
    names = (each.name for each in parts if each.name and part.call_id and each.call_id == part.call_id)
    return reason, part if part.name else part._replace(name=next(names, None))


def _unpaired(parts: Sequence[RequestPart], *, is_continued: bool) -> Iterator[tuple[str, RequestPart]]:
    """Yield results without an earlier call, and calls without a later result. Those without ids pair by names."""
    waiting: dict[str, list[RequestPart]] = {}
    for part in parts:
        key = part.call_id or part.name or ""
        if part.part == semconv.TOOL_CALL_ARGUMENTS:
            waiting.setdefault(key, []).append(part)
        elif part.part == semconv.TOOL_RESULTS:
            if waiting.get(key):
                waiting[key].pop()
            elif not is_continued:
                yield semconv.RESULT_WITHOUT_CALL, part
    for left in waiting.values():
        for part in left:
            yield semconv.CALL_WITHOUT_RESULT, part
