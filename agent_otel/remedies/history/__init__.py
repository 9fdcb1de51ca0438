"""Rewrite the message history in requests to models."""
