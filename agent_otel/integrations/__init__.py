"""Where this package meets frameworks, model SDKs and runtimes: a table, the wrapping, and thin adapters."""
