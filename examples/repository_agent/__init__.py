"""An agent that is asked for the latest changes in a codebase."""
