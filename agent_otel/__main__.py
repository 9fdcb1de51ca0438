"""``python -m agent_otel``: the command ``agent-otel``, of this interpreter."""

from agent_otel.cli import main

if __name__ == "__main__":
    main()
