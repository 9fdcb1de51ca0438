"""The switch of the process. Standard library only; read at interpreter start."""

#: Values that switch a setting on or off; case is ignored.
ON = ("1", "true", "yes", "on")
OFF = ("", "0", "false", "no", "off")

#: True while the package is active in this process; `agent_otel._bootstrap.startup` sets it.
active = False
