"""Bytes, regular expressions, expressions, derivatives, lazy states. Imports only errors and limits from outside."""
