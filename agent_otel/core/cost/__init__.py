"""Tokens of model requests, prices, and windows of models."""
