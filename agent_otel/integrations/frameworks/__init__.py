"""Adapters of agent frameworks: how to read one tool call."""
