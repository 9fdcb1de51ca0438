"""The switch of the process. Standard library only; read at interpreter start."""

#: What switches something on or off, in any case.
ON = ("1", "true", "yes", "on")
OFF = ("", "0", "false", "no", "off")

#: Whether the package is active in this process; `agent_otel._bootstrap.startup` sets it.
active = False
