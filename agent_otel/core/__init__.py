"""Follow each tool call, model request and payload through its stages, without naming a framework or a remedy."""
