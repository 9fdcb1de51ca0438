"""An agent in a durable workflow whose state keeps two copies of every tool result."""
