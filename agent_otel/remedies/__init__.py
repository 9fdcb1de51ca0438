"""What makes the bytes fewer: opt-in, every one of them off until a setting or a call of yours asks for it."""
