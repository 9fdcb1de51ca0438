"""LiveKit Agents."""

from __future__ import annotations

from typing import ClassVar

from tests.contract.cases import KEY, Case, Record, looked_up
from tests.contract.delivery import WHOLE, Delivery


class TestLiveKitAgents(Delivery):
    """LiveKit Agents 1.8, whose own spans of tools are enriched."""

    agent = "livekit_agents"
    environment = "livekit-agents"
    integrations: ClassVar = {"livekit-agents": ["livekit.agents.voice.tool_executor:_ToolExecutor.execute"]}
    agent_name = "clerk"
    span = "function_tool"
    scope = "livekit-agents"
    outer = False
    modes: ClassVar = ("async",)
    origin = None
    flagged = "tool_error"  # what its own span says
    #: The framework writes data as Python does.
    reformatted: ClassVar = ("structured",)
    own: ClassVar = {
        "two megabytes": WHOLE,
        "structured": Case(
            ("table",), (("call_21", "table", {"rows": 2}),), (Record("table", "call_21", 28, args=10),)
        ),
        "in an envelope": looked_up("wrapped", "call_22"),
        "tells of its failure": Case(
            ("refused",),
            (("call_23", "refused", KEY),),
            (Record("refused", "call_23", error="tool_error"),),
        ),
        "no answer wanted": Case(
            ("silent",),
            (("call_24", "silent", KEY),),
            (Record("silent", "call_24"),),
            said="nothing",
            unsent=("call_24",),
        ),
    }

    @classmethod
    def cases(cls) -> dict[str, Case]:
        """Return the cases but the one of a cancelled call: a session goes on without the one who waits for it."""
        return {name: case for name, case in super().cases().items() if name != "cancelled"}


del Delivery
