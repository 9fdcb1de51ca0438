"""Tools by which a model gives its final answer: frameworks offer them, and send no request behind a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: smolagents and others, Pydantic AI, Google's ADK.
_NAMES = frozenset({"final_answer", "final_result", "set_model_response"})
#: Pydantic AI with several types of output.
_PREFIX = "final_result_"


def asks_for(names: Iterable[str | None]) -> bool | None:
    """Return whether calls ask for a result, which those of a final answer do not; None where no call has a name.

    The later pieces of a streamed call have none.
    """
    known = [name for name in names if name]
    return not all(name in _NAMES or name.startswith(_PREFIX) for name in known) if known else None
