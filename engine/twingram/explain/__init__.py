"""Explanations for people: what a mask allows and why, and what a grammar file says."""
