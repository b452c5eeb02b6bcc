"""Bytes, regular expressions, expressions, derivatives, lazy states. Imports nothing of this package but errors and limits."""
