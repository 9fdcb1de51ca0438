"""A tool call at its controls: the data for the decision of the policy and the limits, recorded or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_otel import semconv

if TYPE_CHECKING:
    from agent_otel.core.execution_context import Run
    from agent_otel.core.execution_state import ExecutionState
    from agent_otel.core.types import Denial, LimitReached, ToolCall, ToolReader
    from agent_otel.measure.size import Size


class Dispatch:
    """A tool call that is about to be made; the policy and the limits decide about each one."""

    agent: str | None
    call: ToolCall
    args_hash: str | None = None
    #: The call that this one carries on, which the limits have charged already.
    charged_to: Dispatch | None = None
    #: The rule of the dispatch policy that denies the call, or would deny it in another mode.
    denied: Denial | None = None
    error_type: str | None = None
    execution: str | None = None
    #: The text that the framework made of an exception, which the model reads.
    failed: Size | None = None
    #: Arguments that the dispatch policy adds to the model's; they are on no span and in no hash.
    injected: dict[str, Any] | None = None
    is_answered = False  # by the result of an earlier attempt of the step
    is_asked = False  # the policy has approved and prepared the same call further out
    is_counted = False  # by the limits; a retry is not another call
    is_gated = False  # the dispatch policy lets the call run
    is_readable = True
    name: str
    #: The readers of the wrapped functions through which the call has gone.
    passed: tuple[ToolReader | None, ...] = ()
    place: str | None = None
    run: Run | None = None
    limit_reached: LimitReached | None = None
    produced: Size | None = None
    #: The place of the result in the store, for later attempts of the step.
    spot: Any = None
    #: The state of the execution; None without an execution.
    state: ExecutionState | None = None
    #: The tool that is about to run. A middleware may have replaced the tool that the model chose.
    tool: str | None = None

    def skip(self, reached: LimitReached) -> None:
        """Record that a limit of the execution skipped the handler."""
        self.limit_reached = reached
        self.error_type = semconv.LIMIT_REACHED

    def deny(self, denial: Denial) -> None:
        """Record that the dispatch policy denies the call, or would deny it."""
        self.denied = denial
        if denial.mode == semconv.ENFORCE:
            self.error_type = semconv.TOOL_DENIED


def denial_attributes(denial: Denial) -> dict[str, str]:
    """Return the attributes of the span event about a denied call."""
    about = {} if denial.argument is None else {semconv.ARGUMENT: denial.argument}
    return {semconv.RULE: denial.rule, semconv.MODE: denial.mode, **about}
