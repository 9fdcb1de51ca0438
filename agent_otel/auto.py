"""Explicit activation: ``import agent_otel.auto``.

It needs no variable, and ``AGENT_OTEL=0`` overrides it. With ``AGENT_OTEL`` on, ``import agent_otel`` is enough where
start-up files do not run: frozen applications, ``python -S``, packages on ``PYTHONPATH``, embedded interpreters.
"""

from agent_otel._bootstrap import startup

startup.activate()
