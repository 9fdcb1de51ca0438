"""Rate limits of providers: refusals for the rate in the exceptions of SDKs, and the pauses that they ask for."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from agent_otel._internal.named_tuples import NamedTuple
from agent_otel.core.plain import dictionaries, fields, is_dict, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: Too many requests, unavailable, and Anthropic's overloaded; the last two only with a time.
_TOO_MANY: Final = 429
_WITH_TIME: Final = (503, 529)
_THROTTLED: Final = ("ThrottlingException", "TooManyRequestsException", "Throttling", "ServiceQuotaExceededException")
#: A longer pause is a quota of hours: the request is sent, and its refusal shows what is wrong.
LONGEST_SECONDS: Final = 300.0
_LONGEST_GUESS_SECONDS: Final = 60.0
_MOST_MODELS: Final = 256


class Refusal(NamedTuple):
    """A refusal for the rate; ``seconds`` is the time that the provider gives, None without one."""

    seconds: float | None


def refusal(error: Any) -> Refusal | None:
    """Return the refusal for the rate that an exception or a response of an SDK stands for; None for any other.

    OpenAI, Anthropic, Mistral, Ollama and LiteLLM have a status and the response's headers, Google has them and the
    time in the body, botocore has both in a dictionary.
    """
    status = _status(error)
    seconds = next((found for found in _times(error) if found is not None), None)
    body = _parsed(error)
    is_throttled = text(fields(body.get("Error")).get("Code")) in _THROTTLED
    if status == _TOO_MANY or is_throttled or (status in _WITH_TIME and seconds is not None):
        return Refusal(seconds)
    return None


def _parsed(error: Any) -> Mapping[str, Any]:
    """Return botocore's response: in an exception, or itself."""
    return fields(error) if is_dict(error) else fields(getattr(error, "response", None))


def _status(error: Any) -> int | None:
    metadata = fields(_parsed(error).get("ResponseMetadata"))
    found: tuple[Any, ...] = (
        getattr(error, "status_code", None),
        metadata.get("HTTPStatusCode"),
        getattr(error, "code", None),
    )
    return next((int(status) for status in found if issubclass(type(status), int)), None)


def _times(error: Any) -> Iterator[float | None]:
    """Yield the seconds in the headers of a refusal, and in its body."""
    response = getattr(error, "response", None)
    metadata = fields(_parsed(error).get("ResponseMetadata"))
    for headers in (
        getattr(response, "headers", None),
        metadata.get("HTTPHeaders"),
        getattr(getattr(error, "raw_response", None), "headers", None),
        getattr(error, "headers", None),
    ):
        if callable(getattr(headers, "get", None)):
            yield _milliseconds(_header(headers, "retry-after-ms"))
            yield _seconds(_header(headers, "retry-after"))
    for holder in (getattr(error, "details", None), getattr(error, "body", None)):
        status = fields(fields(holder).get("error")) or fields(holder)
        for detail in dictionaries(status.get("details")):
            yield _seconds((text(detail.get("retryDelay")) or "").removesuffix("s"))


def _header(headers: Any, name: str) -> str | None:
    return text(headers.get(name)) or text(headers.get(name.title()))


def _milliseconds(value: str | None) -> float | None:
    seconds = _float(value)
    return None if seconds is None else seconds / 1000


def _seconds(value: str | None) -> float | None:
    """Return the seconds of a header: a number, or the time from now to a date."""
    seconds = _float(value)
    if seconds is not None or not value:
        return seconds
    try:
        date = parsedate_to_datetime(value)
        date = date if date.tzinfo is not None else date.replace(tzinfo=timezone.utc)
        return max(0.0, date.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _float(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


class Pauses:
    """The pauses of models whose provider has refused a request for the rate; at most 256 models."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Drop all pauses; a forked child calls this."""
        self._lock = threading.Lock()
        #: The end of the pause, and the refusals in a row.
        self._models: OrderedDict[str | None, tuple[float, int]] = OrderedDict()

    def refused(self, model: str | None, given: Refusal) -> float:
        """Begin a pause of a model and return its seconds, 0 for none.

        Without a time from the provider it is a second, and twice as long after each further refusal in a row.
        """
        with self._lock:
            until, refusals = self._models.get(model, (0.0, 0))
            seconds = min(_LONGEST_GUESS_SECONDS, 2.0**refusals) if given.seconds is None else given.seconds
            if seconds > LONGEST_SECONDS:
                return 0.0
            self._models[model] = (max(until, self._clock() + seconds), min(refusals + 1, 10))
            self._models.move_to_end(model)
            if len(self._models) > _MOST_MODELS:
                self._models.popitem(last=False)
            return seconds

    def responded(self, model: str | None) -> None:
        """End the row of refusals of a model; a pause that another refusal has begun goes on."""
        if model in self._models:
            with self._lock:
                until, _ = self._models.pop(model, (0.0, 0))
                if until > self._clock():
                    self._models[model] = (until, 0)

    def until(self, model: str | None) -> float:
        """Return the end of a model's pause, 0 for none; for an unknown model, the end of the longest pause."""
        if not self._models:
            return 0.0
        with self._lock:
            if model is None:
                return max((until for until, _ in self._models.values()), default=0.0)
            return self._models.get(model, (0.0, 0))[0]
