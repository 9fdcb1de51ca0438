"""The formats of providers: their requests, responses, streams and messages.

No framework is imported, and no code of a message runs.
"""
