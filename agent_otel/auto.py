"""Explicit activation: ``import agent_otel.auto``.

Needed where start-up files do not run: frozen applications, ``python -S``, packages on ``PYTHONPATH`` (Lambda layers,
operator volumes), embedded interpreters. ``AGENT_OTEL=0`` overrides it.
"""

from agent_otel._bootstrap import startup

startup.activate()
