"""Entries of integrations: their types, the generated table, and its look-up."""
