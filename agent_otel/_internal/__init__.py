"""Helpers that every layer may use: the switch, errors, worker threads."""

__version__ = "0.1.0"
