"""Explain a payload that lies in a file: its bytes by path and tool, its turns, and the bytes that remedies save."""
