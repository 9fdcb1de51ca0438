"""Store large results and hand on a reference and a preview."""
