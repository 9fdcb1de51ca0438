"""Chains of model requests: what responses ask for, and what becomes of the results on their way to the model."""
