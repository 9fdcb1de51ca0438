"""Explicit activation: ``import agent_otel.auto``.

For places where start-up files do not run: frozen applications, ``python -S``, packages on ``PYTHONPATH`` (Lambda
layers, operator volumes), embedded interpreters. ``AGENT_OTEL=0`` still keeps everything off.
"""

from agent_otel._bootstrap import startup

startup.activate()
