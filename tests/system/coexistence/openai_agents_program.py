"""An openai-agents program beside another instrumentation; prints its spans and its metrics as JSON.

Arguments: the other's instrumentor as ``module:Class``, and whether it is switched on ``before`` or ``after`` us.
"""

# In its environment the framework is there, and where types are checked it is not.
# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-redef,assignment,unused-ignore"

from __future__ import annotations

import asyncio
import sys

import agents

from tests.system.coexistence import reporting

agents.set_trace_processors([])  # the SDK's own would send traces to the vendor
tracer = reporting.provide()
reporting.activate(*sys.argv[1:])


@agents.function_tool
def repeat(text: str) -> str:
    """Return ten times the text."""
    with tracer.start_as_current_span("body of repeat"):
        return text * 10


agents.set_default_openai_api("chat_completions")
result = asyncio.run(agents.Runner.run(agents.Agent("planner", tools=[repeat]), "go"))
assert result.final_output == "done"
reporting.report()
