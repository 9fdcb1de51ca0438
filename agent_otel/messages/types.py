"""Tool calls and results of one message, independent of its format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agent_otel.messages.fields import Path


class RequestedCall(NamedTuple):
    """A tool call in a message. ``arguments`` stand at ``path``: a mapping, JSON text, or ``free`` text."""

    path: Path
    id: str | None
    name: str | None
    arguments: Any
    free: bool = False


class AnsweredCall(NamedTuple):
    """A tool's result in a message. ``content`` stands at ``path``: text, blocks, or a mapping.

    ``failed`` is the message's own error flag, or None if its format has none.
    """

    path: Path
    id: str | None
    name: str | None
    content: Any
    failed: bool | None = None


class Transcript(NamedTuple):
    """The calls and results of one message, and whether the user sent it. ``id`` is the message's own id."""

    asked: tuple[RequestedCall, ...] = ()
    answered: tuple[AnsweredCall, ...] = ()
    by_user: bool = False
    id: str | None = None


NOTHING = Transcript()
