"""Tokens: what a model's vocabulary spells, and runs of byte automata over all of it at once.

In reading order: `table` (ids to bytes), `vocabulary` and its sources (`huggingface`, `gguf`, `ranks`, `embedded`),
`merges` (byte-pair encoding), `trie`, `sweep`, `bitmask`, `cache`.
"""
