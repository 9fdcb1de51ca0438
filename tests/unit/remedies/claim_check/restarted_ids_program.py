"""Make the calls of the first argument, in one execution: prints what each reference means afterwards, and the keys.

A call is an id (or null), its arguments and the letter that its result of 40,000 bytes is made of. The second argument
holds the references that earlier processes have printed.
"""

from __future__ import annotations

import json
import sys

import agent_otel
import agent_otel.auto
from agent_otel.remedies.claim_check.stores import NotFoundError

calls, references = json.loads(sys.argv[1]), json.loads(sys.argv[2])


def meant(reference: str) -> str:
    """Return the letter that a reference means."""
    try:
        return (agent_otel.remedies.resolve(reference).text or "")[0]
    except NotFoundError:
        return "nothing"


with agent_otel.execution("run-1"):
    for call_id, arguments, letter in calls:
        with agent_otel.tool_call("search", arguments, call_id=call_id) as call:
            call.result(letter * 40_000)
        references.append(call.claim.reference if call.claim is not None else "")
    print(json.dumps([references, [meant(reference) for reference in references]]))
