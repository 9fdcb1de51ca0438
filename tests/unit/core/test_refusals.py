"""Errors of providers, in the words of public bug reports: the reason, and the call that is to blame."""

from __future__ import annotations

from typing import Any

import pytest

from agent_otel.core.thread.refusals import blamed, refusal
from agent_otel.core.types import RequestPart


class _Error(Exception):
    """An error of an SDK, with the attributes that it has."""

    def __init__(self, message: str, **attributes: Any) -> None:
        super().__init__(message)
        for name, value in attributes.items():
            setattr(self, name, value)


class ContextWindowExceededError(_Error):
    """The error of LiteLLM."""


class ParamValidationError(_Error):
    """The error of botocore, about a request that it does not send."""


class _Response:
    """A response of an HTTP client."""

    def __init__(self, status: int, body: str) -> None:
        self.status_code = status
        self._content = body.encode()


class RpcError(Exception):
    """As gRPC's, which has its text in a state of its own."""

    __module__ = "grpc._channel"

    def __str__(self) -> str:
        return "<_InactiveRpcError: StatusCode.INVALID_ARGUMENT maximum context length is 131072>"


def _openai(message: str, code: str | None = None, status: int = 400, param: str = "messages") -> _Error:
    body = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return _Error(f"Error code: {status} - {{'error': {body}}}", status_code=status, body=body, code=code)


def _anthropic(message: str, status: int = 400, kind: str = "invalid_request_error") -> _Error:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return _Error(f"Error code: {status} - {body}", status_code=status, body=body)


def _gemini(message: str) -> _Error:
    details = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    return _Error(f"400 INVALID_ARGUMENT. {details}", code=400, status="INVALID_ARGUMENT", details=details)


def _bedrock(message: str, code: str = "ValidationException", status: int = 400) -> _Error:
    response = {"Error": {"Message": message, "Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    text = f"An error occurred ({code}) when calling the Converse operation: {message}"
    return _Error(text, response=response, operation_name="Converse")


def _mistral(message: str, kind: str = "invalid_request_error") -> _Error:
    body = f'{{"object":"error","message":"{message}","type":"{kind}","param":null,"code":"3230"}}'
    return _Error("API error occurred", status_code=400, body=body)


def _status(status: int, body: str) -> _Error:
    return _Error(f"Client error '{status}'", response=_Response(status, body))


#: The call ``a`` of the tool search has its result; of ``b`` and ``c`` a half is missing.
PARTS = [
    RequestPart("user", "Find it."),
    RequestPart("tool_arguments", "{}", "call_a", "search"),
    RequestPart("tool_results", "row " * 500, "call_a"),
    RequestPart("tool_results", "a result", "call_b"),
    RequestPart("tool_arguments", "{}", "call_c", "fetch"),
    RequestPart("user", "x" * 1_000),
]
WHOLE = PARTS[:3]
_LONG = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130114 tokens."
_TOO_MANY = "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576)."
_FOLLOWED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
)
_ORPHAN = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
_NUMBER = "Please ensure that the number of function response parts is equal to the number of function call parts."
_HTML = "<html><head><title>413 Request Entity Too Large</title></head><body><center>nginx</center></body></html>"
_WRAPPED = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens"}}
SEARCH, CALL_B, CALL_C = ("call_a", "search"), ("call_b", None), ("call_c", "fetch")

REFUSED: dict[str, list[tuple[Exception, tuple[str | None, str | None] | None]]] = {
    "context": [
        (_openai("too long", "context_length_exceeded"), SEARCH),
        (_openai(_LONG), SEARCH),  # vLLM, DeepSeek
        (_Error(_LONG), SEARCH),
        (_anthropic("prompt is too long: 213462 tokens > 200000 maximum"), SEARCH),
        (_anthropic("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), SEARCH),
        (_gemini(_TOO_MANY), SEARCH),
        (_bedrock("Input is too long for requested model."), SEARCH),
        (_mistral("Prompt contains 40000 tokens, too large for model with 32768 maximum context length"), SEARCH),
        (_Error("", status_code=400, body={"message": "too many tokens: size limit exceeded by 11 tokens"}), SEARCH),
        (_openai("This model's maximum prompt length is 131072 but the request contains 537812 tokens."), SEARCH),
        (_openai("prompt token count of 130000 exceeds the limit of 128000"), SEARCH),  # Copilot
        (_status(413, '{"error": "prompt is too long: 213462 tokens > 200000 maximum"}'), SEARCH),
        (ContextWindowExceededError("too long", status_code=500), SEARCH),
        (_Error("", status_code=400, body={"error": {"metadata": {"raw": str(_WRAPPED)}, "code": 400}}), SEARCH),
        (_openai("Die maximale Kontextlänge wurde überschritten"), SEARCH),
        (_openai("输入的上下文超过模型限制"), SEARCH),
        (_openai("Prompt 超长"), SEARCH),
        (_openai("入力トークン数が最大値を超えています"), SEARCH),
        (_openai("최대 컨텍스트 길이를 초과했습니다"), SEARCH),
        (_openai("Превышена максимальная длина контекста модели"), SEARCH),
        (_openai("La lunghezza massima del contesto è stata superata"), SEARCH),
        (_openai("Przekroczono maksymalną długość kontekstu"), SEARCH),
        (_Error("Trying to keep the first 9000 tokens when context the overflows"), SEARCH),  # LM Studio
        (_Error(f"status_code: 400, model_name: m, body: {_WRAPPED}"), SEARCH),
        (RpcError(), SEARCH),
    ],
    "too_large": [
        (_anthropic("Request exceeds the maximum size", 413, "request_too_large"), SEARCH),
        (_gemini("Request payload size exceeds the limit: 20971520 bytes."), SEARCH),
        (_status(413, _HTML), SEARCH),
        (_Error("", status_code=413, body=_HTML), SEARCH),
        (_openai("Request too large for gpt-x: Limit 30000, Requested 40000", "rate_limit_exceeded", 429), SEARCH),
        (_Error("Received message larger than max (5000000 vs. 4194304)"), SEARCH),
    ],
    "string_too_long": [
        (_openai("Invalid 'messages[2].content': string too long.", "string_above_max_length"), SEARCH),
        (_openai("String value length (20054016) exceeds the maximum allowed (20000000"), SEARCH),
    ],
    "result_without_call": [
        (_openai(f"Invalid parameter: {_ORPHAN}."), CALL_B),
        (_openai("No tool call found for function call output with call_id call_b.", param="input"), CALL_B),
        (_anthropic("messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: call_b."), CALL_B),
        (
            _bedrock("The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks"),
            CALL_B,
        ),
        (_gemini("Please ensure that function response turn comes immediately after a function call turn."), CALL_B),
        (_gemini(_NUMBER), CALL_B),
        (_mistral("Unexpected role 'tool' after role 'user'", "invalid_request_message_order"), CALL_B),
        (_Error("litellm.BadRequestError: Missing corresponding tool call for tool response message."), CALL_B),
        (_openai("工具消息必须对应之前的工具调用"), CALL_B),  # a proxy that translates: the request shows it
        (_status(400, "<html><title>400 Bad Request</title></html>"), CALL_B),
    ],
    "call_without_result": [
        (_openai(f"{_FOLLOWED} The following tool_call_ids did not have response messages: call_c"), CALL_C),
        (_openai("No tool output found for function call call_c.", param="input"), CALL_C),
        (
            _anthropic(
                "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: call_c."[:-1]
            ),
            CALL_C,
        ),
        (_bedrock("Expected toolResult blocks at messages.2.content for the following Ids: call_c"), CALL_C),
        (_openai("An assistant message: insufficient tool messages following tool_calls message"), CALL_C),
    ],
    "other": [
        (_openai("Invalid schema for function 'search'", "invalid_function_parameters"), None),
        (_anthropic("tools.0.custom.input_schema: JSON schema is invalid"), None),
        (_openai("max_tokens is too large: 9000. This model supports at most 4096 completion tokens"), None),
        (_Error("", status_code=422, body={"detail": "the content filter was triggered"}), None),
    ],
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refusal_has_its_reason_and_its_call(reason: str) -> None:
    for error, call in REFUSED[reason]:
        found = refusal(error)
        assert found is not None, error
        said, part = blamed(found, PARTS, is_continued=False)
        assert (reason, call) == (said, part and (part.call_id, part.name)), error


def test_the_request_decides_where_the_words_do_not() -> None:
    found = refusal(_openai("Solicitud incorrecta"))
    assert found is not None
    assert ("other", None) == blamed(found, WHOLE, is_continued=False)
    orphan = RequestPart("tool_results", "done", "call_0")
    assert ("result_without_call", orphan) == blamed(found, [orphan], is_continued=False)
    assert ("other", None) == blamed(found, [orphan], is_continued=True)  # the provider has the call
    by_name = [RequestPart("tool_arguments", {}, None, "read"), RequestPart("tool_results", {}, None, "read")]
    assert ("other", None) == blamed(found, by_name, is_continued=False)
    assert ("call_without_result", by_name[0]) == blamed(found, [*by_name, by_name[0]], is_continued=False)
    largest = RequestPart("user", "x" * 9_000)
    found = refusal(_openai("Invalid 'messages[2].content': string too long.", "string_above_max_length"))
    assert found is not None
    assert ("string_too_long", None) == blamed(found, [*WHOLE, largest], is_continued=False)


def test_items_of_streams_are_refusals_too() -> None:
    for item, reason in (
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}, "context"),
        ({"code": "context_length_exceeded", "message": "Your input exceeds it."}, "context"),
        ({"type": "invalid_request_error", "message": "bad"}, "other"),
        ({"type": "overloaded_error", "message": "Overloaded"}, None),
    ):
        found = refusal(item)
        assert reason == (None if found is None else found.reason)
    streamed = _Error("Error code: 200", status_code=200, body=_WRAPPED)
    assert "context" == getattr(refusal(streamed), "reason", None)


def test_an_error_that_says_nothing_about_the_request_is_none() -> None:
    for error in (
        _openai("You have exceeded your quota", "insufficient_quota", 429),
        _openai("Rate limit reached for requests", "rate_limit_exceeded", 429),
        _openai(_LONG, status=500),
        _openai("Incorrect API key provided", "invalid_api_key", 401),
        _bedrock("The security token included in the request is expired", "ExpiredTokenException"),
        _anthropic("Overloaded", 529, "overloaded_error"),
        _status(502, "<html><title>502 Bad Gateway</title></html>"),
        ValueError("no such page"),
        ConnectionError("Connection reset by peer"),
        ParamValidationError(
            "Invalid length for toolResult.toolUseId\nMissing required parameter in toolResult.content"
        ),
    ):
        assert refusal(error) is None, error


class LazyError(Exception):
    """An exception of the program's own, whose code nothing may run."""

    def __str__(self) -> str:
        raise AssertionError

    body = code = response = status_code = property(__str__)


def test_no_code_of_an_error_runs() -> None:
    assert refusal(LazyError("secret")) is None
    assert "context" == getattr(refusal(LazyError("prompt is too long: 250000 tokens")), "reason", None)
