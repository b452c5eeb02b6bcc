"""Grammars: the text of a grammar file to checked rules, and rules to expressions.

In reading order: `rules`, `directives`, `source`, `alphabet`, `compile`, `recovery`, `reading`, `canonical`, `holes`,
`spelling`, `turn`, `answer`, `regions`, `check`.
"""
