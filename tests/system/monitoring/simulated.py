"""The half hour that is simulated: when it is, and which processes run in it. For both sides, parent and child."""

from __future__ import annotations

from typing import NamedTuple

#: The first of January 2026, epoch seconds; a fixed time, so that each run asks for the same moments.
START = 1_767_225_600
STEP_SECONDS = 15
STEPS = 120
#: The time of the last samples. ``[30m]`` at this time is all there is.
END = START + (STEPS - 1) * STEP_SECONDS

SUPPORT = "support"
RESEARCH = "research"
DAPRD = "daprd"


class Process(NamedTuple):
    """One process of agents, from one step until before another."""

    job: str
    instance: str
    first: int
    end: int

    @property
    def settings(self) -> dict[str, str]:
        """Its environment variables."""
        return {"AGENT_OTEL": "1", "AGENT_OTEL_METRICS": "prometheus", "AGENT_OTEL_SDK": "off", **_SETTINGS[self.job]}


#: The second process of the research job is the first one's successor: its counters begin at 0 again.
PROCESSES = (
    Process(SUPPORT, "support-0:9464", 0, STEPS),
    Process(RESEARCH, "research-0:9464", 0, 80),
    Process(RESEARCH, "research-0:9464", 80, STEPS),
)
_WINDOWS = "gpt-4o=128k"
_SETTINGS = {
    SUPPORT: {
        "AGENT_OTEL_CONTEXT_WINDOWS": _WINDOWS,
        "AGENT_OTEL_RESULT_CEILING_BYTES": "400KiB",
        "AGENT_OTEL_MAX_TOOL_CALLS": "40",
        "AGENT_OTEL_MAX_PARALLEL_TOOL_CALLS": "1",
        "AGENT_OTEL_TOOL_POLICY": "code",
    },
    RESEARCH: {
        "AGENT_OTEL_CONTEXT_WINDOWS": _WINDOWS,
        "AGENT_OTEL_CLAIM_CHECK": "memory:",
        "AGENT_OTEL_CLAIM_CHECK_BUDGET": "30",
        "AGENT_OTEL_CLAIM_CHECK_BYTES": "300KiB",
        "AGENT_OTEL_CLAIM_CHECK_KEY": "the secret of this test",
        "AGENT_OTEL_STORE_WARN_BYTES": "16KiB",
    },
}
