"""Adapters of model SDKs: how to read one request."""
