"""Metric sinks: OpenTelemetry and Prometheus."""
