"""Coverage-guided inputs for the properties; ``scripts/fuzz`` runs it for a fixed time."""

import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["agent_otel.measure"]):
    from tests.fuzz.properties import one

atheris.Setup(sys.argv, one)
atheris.Fuzz()
