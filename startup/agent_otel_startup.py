"""Start-up of agent-otel on Python 3.15 and later, whose ``.start`` files name a function; see SECURITY.md.

It is a module of its own, so that nothing of the package is imported while the variable is unset. pytest would warn
that a module of its plugin's distribution is imported already: PYTEST_DONT_REWRITE.
"""

import os


def start() -> None:
    """Switch the package on if ``AGENT_OTEL`` is set."""
    if os.environ.get("AGENT_OTEL"):
        from agent_otel._bootstrap import startup

        startup.start()
