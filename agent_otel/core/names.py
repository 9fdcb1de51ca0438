"""Conversion of names and ids that adapters read from a framework's objects: plain text or None, long ids hashed.

A framework's attribute may hold any object, such as a test double or a lazy translation. No code of that object runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_otel import semconv
from agent_otel.core.execution_context import LONGEST_ID, id_or_none, text_or_none
from agent_otel.core.request_prefix import Messages, plain_part
from agent_otel.settings.kinds import BOUNDARIES

if TYPE_CHECKING:
    from agent_otel.core.types import ModelRequest, Step

_DIRECTIONS = {*BOUNDARIES, semconv.INPUT, semconv.OUTPUT}


def plain_request(request: ModelRequest) -> ModelRequest:
    """Return a request whose names and ids are text; its parts stay an iterator that is not read yet."""
    return request._replace(
        parts=request.parts if type(request.parts) is Messages else map(plain_part, request.parts),
        agent=text_or_none(request.agent),
        execution=id_or_none(request.execution),
        model=text_or_none(request.model),
    )


def plain_direction(direction: object) -> str:
    """Return the direction that a program gives a payload; a direction that does not exist becomes ``_other``."""
    text = text_or_none(direction)
    return text if text in _DIRECTIONS else semconv.OTHER


def plain_step(step: Step) -> Step:
    """Return a step whose names and ids are text; a runtime that is no text becomes ``_other``."""
    runtime, activity, workflow, execution = step.runtime, step.activity, step.workflow, step.execution
    if (
        type(runtime) is str
        and (activity is None or type(activity) is str)
        and (workflow is None or type(workflow) is str)
        and (execution is None or (type(execution) is str and len(execution) <= LONGEST_ID))
    ):
        return step
    return step._replace(
        runtime=text_or_none(runtime) or semconv.OTHER,
        activity=text_or_none(activity),
        workflow=text_or_none(workflow),
        execution=id_or_none(execution),
    )
