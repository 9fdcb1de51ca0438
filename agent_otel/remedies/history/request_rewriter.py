"""Rewriting of model requests: each gets the views of its history, the last one of a run no tools.

The stored history is not changed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent_otel.core.remedy_hooks import added_messages, message_ids
from agent_otel.core.removed_bytes import removed
from agent_otel.remedies import limits
from agent_otel.remedies.history import final_answer, shown_calls
from agent_otel.remedies.history.announced_ids import aligned
from agent_otel.remedies.history.argument_compaction import ABOVE_BYTES
from agent_otel.remedies.history.argument_copies import LargeArguments
from agent_otel.remedies.history.argument_marks import FREE, parsed
from agent_otel.remedies.history.trimmed_line import LineForm
from agent_otel.remedies.history.views import Views
from agent_otel.settings import checks as setting_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_otel.core.types import Invocation, ModelReader
    from agent_otel.settings import Settings
    from agent_otel.telemetry.setup import Telemetry


class Requests:
    """The enabled views for requests to models."""

    def __init__(self, chosen: Settings) -> None:
        self._maxima = chosen.limits
        self._trims = chosen.trim_results
        self._limits = limits.current()
        self._views = _views(chosen) if chosen.views else None
        self._large = LargeArguments(ABOVE_BYTES) if chosen.compact_arguments else None

    def completed(self, arguments: object) -> None:
        """Remember the hashes of a completed call's large arguments, for prompts that are made of the history."""
        if self._large is not None:
            self._large.add(parsed(arguments) or {FREE: arguments})

    def last_note(self, results: Sequence[object]) -> str | None:
        """Return the note in the last request of a run, when one of these results is above a limit."""
        answers = [{"role": "tool", "tool_call_id": "call", "content": result} for result in results]
        return final_answer.NOTE if self._maxima and final_answer.is_due(answers, self._maxima) else None

    def rewrite(self, out: Telemetry, reader: ModelReader, invocation: Invocation) -> None:
        """Replace the history in a request by its view; a request without old or large messages stays unchanged.

        When a call of the run was above a limit, the request becomes the run's last one; calls that only the messages
        show are counted here. Messages that follow earlier
        ones which the provider has (``kept``) have no view: their turns cannot be counted.
        """
        if reader.rewrite is None:
            return
        is_last = False
        request = None if self._limits is None else reader.request(invocation)

        def view(messages: Any, *, cached: bool = True, kept: bool = False) -> Any:
            nonlocal is_last
            is_last = bool(self._maxima) and final_answer.is_due(messages, self._maxima)
            count = len(messages) - added_messages.get()
            own, added = messages[:count], messages[count:]
            if self._limits is not None and request is not None:
                is_last = shown_calls.count(out, self._limits, request, own) or is_last
            if self._views is None or kept:
                return messages
            if self._trims and own and final_answer.is_observed(own[-1]):
                setting_checks.cannot_trim_texts()
            made = self._views.of(own, self._large, cached=cached, ids=aligned(message_ids.get(), count))
            for strategy, removed_bytes in made.removed_bytes.items():
                removed(out, strategy, removed_bytes)
            return [*made.messages, *added] if made.removed_bytes else messages

        reader.rewrite(invocation, view)
        message_ids.set(())
        added_messages.set(0)
        if is_last and reader.answer_only is not None:
            reader.answer_only(invocation, final_answer.NOTE)


def _views(chosen: Settings) -> Views:
    pattern = re.compile(chosen.trim_references) if chosen.trim_references else None
    return Views(
        trim=chosen.trim_results,
        compact=chosen.compact_arguments,
        deduplicate=chosen.deduplicate_history,
        keep_turns=chosen.keep_turns,
        step_turns=chosen.trim_step_turns,
        form=LineForm(chosen.trim_characters, chosen.trim_reference_characters, pattern),
    )
