"""``python -m agent_otel.testing serve``: a model that answers from a script."""

from agent_otel.testing.serve import main

if __name__ == "__main__":
    main()
