"""The dispatch policy: tool calls are allowed or denied when they are dispatched, never by the model."""
