"""Export of spans and metrics: two metric sinks and the OpenTelemetry providers, independent of any framework."""
