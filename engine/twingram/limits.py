"""Every number that keeps a structure from growing without end, in one frozen place.

The defaults are far above what honest input meets. Whatever grows takes a `Limits`; what runs over raises
`LimitExceeded` (while compiling) or ends in a `ParseError` delta that names the limit (while reading).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes are counts unless they say bytes."""

    depth: int = 512
    """Nesting of arrays and objects in arguments and answers (Python's own JSON reader gives up near 1,000). A mask
    opens no container that could not be ended within it."""
    argument_bytes: int = 16 << 20
    """Raw size of one call."""
    calls: int = 4096
    """Calls in one turn."""
    pending_bytes: int = 4 << 20
    """Text whose reading may stay undecided; past it the best reading wins and an error says so."""
    threads: int = 64
    """Readings kept side by side; past it the lowest in priority are dropped, and an error says so."""
    automaton_states: int = 20_000
    """States of one byte automaton (a pattern, a number range)."""
    pattern_bytes: int = 20_000
    """Length of one regular expression."""
    schema_depth: int = 200
    """Nesting of one schema without references."""
    machine_states: int = 50_000
    """Lazy states that one compiled object keeps before its cache is cleared."""


DEFAULT_LIMITS = Limits()
