"""Benchmarks. See README.md for what each measures and how to read it."""
