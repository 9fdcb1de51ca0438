"""Threads at Anthropic, which keep the tools of their first request.

A thread that began where no claim check was on, in another process for example, lacks the tool that the views name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_otel.messages.fields import fields, names_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST: Final = 10_000


class Threads:
    """The last responses of threads whose first request, sent by this process, had the tool."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._responses: dict[str, None] = {}
        self._has_own = False

    def lacks(self, body: Mapping[str, Any]) -> bool:
        """Return True for a request in a thread that is not known to have the tool."""
        thread = fields(body.get("thread"))
        if thread.get("type") == "create" and self._tool in names_of(body.get("tools")):
            self._has_own = True  # the program's own; its responses are not read
        is_known = self._has_own or text(thread.get("previous_message_id")) in self._responses
        return thread.get("type") == "continue" and not is_known

    def responded(self, body: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        """Read a response, or the first event of its stream."""
        if not fields(body.get("thread")) or self.lacks(body):
            return
        response_id = text(response.get("id")) or text(fields(response.get("message")).get("id"))
        if response_id is not None:
            self._responses[response_id] = None
            if len(self._responses) > _MOST:
                self._responses.pop(next(iter(self._responses)), None)
