"""Start-up of agent-otel on Python 3.15 and later, whose ``.start`` files name a function; see SECURITY.md.

It is a module of its own, so that nothing of the package is imported while the variable is unset.
"""

import os


def start() -> None:
    """Switch the package on if ``AGENT_OTEL`` is set."""
    if os.environ.get("AGENT_OTEL"):
        from agent_otel._bootstrap import startup

        startup.start()
