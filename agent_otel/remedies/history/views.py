"""All views of a history in one pass, for requests to models; settings enable them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_otel.remedies.history import turns
from agent_otel.remedies.history.argument_compaction import (
    ABOVE_BYTES,
    FAILURE_BYTES,
    bounding,
    compacting,
    compacting_prompt,
)
from agent_otel.remedies.history.trimmed_line import DEFAULT_FORM, LineForm
from agent_otel.remedies.history.trimming import DEDUPLICATE, View, doubled, removed_size, trimming
from agent_otel.remedies.history.turns import KEEP_TURNS, STEP_TURNS, Changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.remedies.history.argument_copies import LargeArguments


@dataclass(frozen=True, slots=True)
class Views:
    """The enabled views, with the options of `history.trim` and `arguments.compact`."""

    trim: bool = True
    compact: bool = True
    deduplicate: bool = True
    keep_turns: int = KEEP_TURNS
    step_turns: int = STEP_TURNS
    form: LineForm = DEFAULT_FORM
    above_bytes: int = ABOVE_BYTES
    failure_bytes: int = FAILURE_BYTES

    def of(
        self,
        messages: Sequence[Any],
        known: LargeArguments | None = None,
        *,
        cached: bool = True,
        ids: Sequence[str | None] = (),
    ) -> View:
        """Return the view of a history: the same as one view after the other, in about the time of one.

        With ``known``, the arguments of completed calls that other requests carried are also compacted in the texts of
        a request without calls. When the provider does not cache the messages (``cached``), the cut moves one turn at a
        time. ``ids`` are those of the messages where their format has none. Raises the errors of the single functions.
        """
        history, removed = turns.read(messages, ids), {}
        places = doubled(history) if self.deduplicate else set()
        if places:
            removed[DEDUPLICATE] = removed_size(history, places)
            history = history.without(places)
        cut, changes = history.cut(self.keep_turns, self.step_turns if cached else 1), Changes()
        if self.compact:
            compacting(history, cut, changes, self.above_bytes, known)
            if known is not None:
                compacting_prompt(history, changes, known, self.above_bytes)
            bounding(history, cut if self.trim else 0, changes, self.failure_bytes)
        if self.trim:
            trimming(history, cut, changes, self.form)
        made, less = changes.apply(history.messages)
        return View(made, removed | less)
