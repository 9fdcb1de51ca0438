"""Draws the dashboards for the documentation; see ``scripts/pictures``."""
