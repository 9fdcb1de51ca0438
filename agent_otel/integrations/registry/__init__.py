"""The table of integrations, strings only."""
