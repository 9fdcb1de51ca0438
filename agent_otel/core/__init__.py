"""Follow each tool call, model request and payload through its stages; no framework and no remedy is named here."""
