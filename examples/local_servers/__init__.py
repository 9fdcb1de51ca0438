"""Servers on loopback that stand where a model provider and a collector would: real protocols, no network."""
