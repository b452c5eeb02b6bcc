"""Explanations for people: what a mask allows and why, and what a grammar file says.

In: sessions and grammars. Out: values that hold what there is to say, and the same as lines of text.
"""

from .diagram import diagram
from .grammar import Ambiguity, GrammarReport, Search, report_lines, report_on
from .mask import Explanation, Reading, SchemaPlace, Way, explain, mask_lines, read_prefix

__all__ = [
    "Ambiguity",
    "Explanation",
    "GrammarReport",
    "Reading",
    "SchemaPlace",
    "Search",
    "Way",
    "diagram",
    "explain",
    "mask_lines",
    "read_prefix",
    "report_lines",
    "report_on",
]
