"""Detect results that were cut, by marker, cut JSON or size."""
