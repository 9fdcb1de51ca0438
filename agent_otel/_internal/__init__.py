"""Helpers that every layer may use: the switch, errors, worker threads."""
