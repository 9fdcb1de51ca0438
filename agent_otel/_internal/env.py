"""The switch of the process. Standard library only; read at interpreter start."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Values that switch a setting on or off; case is ignored.
ON = ("1", "true", "yes", "on")
OFF = ("", "0", "false", "no", "off")


def is_on(variables: "Mapping[str, str]", name: str) -> bool:
    """Return true where a variable switches its setting on."""
    return variables.get(name, "").strip().lower() in ON


#: True while the package is active in this process; `agent_otel._bootstrap.startup` sets it.
active = False
