"""The switch of the process. Standard library only; read at interpreter start."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Values that switch a setting on or off; case is ignored.
ON = ("1", "true", "yes", "on")
OFF = ("", "0", "false", "no", "off")


def is_on(variables: "Mapping[str, str]", name: str) -> bool:
    """Return true where a variable switches its setting on."""
    return variables.get(name, "").strip().lower() in ON


_complaints: set[str] = set()

#: Why the program may not run, where the policy is to be strict and does not act on a part of it.
refusals: list[str] = []
#: The part of the program on which a policy does not act while the switch is off.
OFF_HERE = "anything in this process, because agent_otel is off"


def without_policy(subject: str) -> None:
    """Log once that a dispatch policy is set and does not act on a part of the program."""
    if os.environ.get("AGENT_OTEL_TOOL_POLICY"):
        from agent_otel._internal import errors  # noqa: PLC0415 - not at interpreter start

        message = f"AGENT_OTEL_TOOL_POLICY does not act on {subject}: its tool calls run without a decision."
        errors.warn_once(message, message, level=40)
        if is_on(os.environ, "AGENT_OTEL_TOOL_POLICY_STRICT") and message not in refusals:
            refusals.append(message)


def complain(message: str) -> None:
    """Write a message to standard error, once."""
    if message not in _complaints:
        _complaints.add(message)
        try:  # noqa: SIM105 - contextlib is not loaded yet
            sys.stderr.write(f"agent_otel: {message}\n")
        except Exception:  # noqa: S110 - standard error is closed or full
            pass


#: True while the package is active in this process; `agent_otel._bootstrap.startup` sets it.
active = False
