"""Pure functions on values: how big, what digest, was it cut. Imports nothing of this package."""
