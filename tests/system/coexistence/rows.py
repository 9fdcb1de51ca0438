"""The table of other instrumentations and the frameworks that they instrument, one row for each pair."""

from __future__ import annotations

from tests.system.coexistence import instrumentors, products

ROWS = (*instrumentors.ROWS, *products.ROWS)

#: What has no row: the other instrumentation, the frameworks, and the reason.
WITHOUT = (
    ("OpenInference 0.1", "AG2", "it instruments versions before 1.0, which have the package `autogen`"),
    ("OpenLLMetry 0.62", "Cohere", "it instruments versions before 6"),
    ("OpenLLMetry 0.62", "Together", "it instruments versions before 2; the oldest of this package is 2.0"),
    (
        "OpenLLMetry 0.62",
        "Haystack 3, MCP 2, Mistral 3",
        "it raises an exception; MCP 1 and Mistral 1 have rows",
    ),
    ("OpenTelemetry's own 1.3b0", "google-genai 3", "it instruments versions before 3; there are rows of 2"),
    ("Logfire 5.2", "google-genai", "it switches OpenTelemetry's own on, which has rows"),
    ("Logfire 5.2", "MCP 2", "it does nothing there; there is a row of MCP 1"),
    ("Logfire 5.2", "Claude Agent SDK", "it has no spans of `query`, which most cases call"),
    ("Logfire 5.2", "DSPy", "it switches OpenInference's on, which has a row"),
    ("MLflow 3.17", "agno, Haystack", "it switches OpenInference's and Haystack's own on; the first has a row"),
    ("MLflow 3.17", "AG2", "it instruments versions with the package `autogen`"),
    ("MLflow 3.17", "Claude Agent SDK", "it asks for Anthropic's SDK, and has no spans of `query`"),
    ("MLflow 3.17", "CrewAI 1.15", "it looks for a module that this version has not, and logs nothing"),
    ("MLflow 3.17", "LiteLLM", "it needs a tracking store, which `mlflow-skinny` has not"),
    ("LangSmith 0.15", "Anthropic", "its wrapper has no spans of streams in all the ways that the cases open one"),
    ("ddtrace 4.16", "MCP 2", "it has no spans of this version; there is a row of MCP 1"),
    ("ddtrace 4.16", "google-adk 2", "the kit cannot be imported once it is switched on"),
)
