"""Diagnosis of an interpreter and its environment: what ``agent-otel doctor`` reports."""
