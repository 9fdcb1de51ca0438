"""Adapters of durable runtimes: how to read a step and the payloads that go in and out of it."""
