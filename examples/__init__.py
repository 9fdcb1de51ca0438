"""Runnable examples; each folder has its own README or docstring."""
