"""What one message asks for and answers, in any of the shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agent_otel.messages.fields import Path


class Asked(NamedTuple):
    """A tool call in a message. ``arguments`` stand at ``path``: a mapping, JSON text, or ``free`` text."""

    path: Path
    id: str | None
    name: str | None
    arguments: Any
    free: bool = False


class Answered(NamedTuple):
    """A tool's result in a message. ``content`` stands at ``path``: text, blocks, or a mapping.

    ``failed`` is what the message says of it, None where its shape has no word for that.
    """

    path: Path
    id: str | None
    name: str | None
    content: Any
    failed: bool | None = None


class Seen(NamedTuple):
    """What a message is to a history. ``id`` is the message's own id."""

    asked: tuple[Asked, ...] = ()
    answered: tuple[Answered, ...] = ()
    by_user: bool = False
    id: str | None = None


NOTHING = Seen()
