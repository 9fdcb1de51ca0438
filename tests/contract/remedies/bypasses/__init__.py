"""Programs that try to get around a dispatch policy; each prints what ran and what came back, by case."""
