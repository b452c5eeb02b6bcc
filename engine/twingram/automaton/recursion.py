"""References: how an expression speaks of one that is defined elsewhere, itself included.

In: a `Definitions` table, filled while a grammar or a schema is compiled. Out: `Reference` expressions, unfolded when
they are reached, so that recursion needs no stack beside the expression's own spine.

Invariant: after `settle()` every reference knows its shortest completion, and the keys of definitions that nothing
satisfies are returned (their references must then be compiled away: `NOTHING` never hides inside an expression).
Cost: `settle` walks every definition once a round; rounds are at most the length of the longest chain of references.

Source: D. E. Knuth, "A Generalization of Dijkstra's Algorithm" (1977), for the shortest completions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from .expression import INFINITE, Expr, Head
from .fold import fold
from .interning import intern

__all__ = ["Definitions", "Reference", "reference"]


class Definitions:
    """key -> expression; keys are whatever the compiler finds handy."""

    __slots__ = ("__weakref__", "_asked", "_lengths", "_peaks", "bodies")

    def __init__(self) -> None:
        self.bodies: dict[Hashable, Expr] = {}
        self._lengths: dict[Hashable, int] = {}
        self._peaks: dict[Hashable, int] | None = None
        self._asked: dict[Hashable, int] | None = None

    def length(self, key: Hashable) -> int:
        return self._lengths.get(key, INFINITE)

    def settle(self) -> set[Hashable]:
        """Find the shortest completion of every definition; give the keys of those that have none."""
        self._lengths = self.solve(lambda expr, of: expr.measure(of, len), lambda expr: expr._shortest)
        return {key for key in self.bodies if self.length(key) >= INFINITE}

    def peak(self, key: Hashable) -> int:
        """The fewest containers that are open at once on some way through a definition (see `depth.py`)."""
        if self._peaks is None:
            self._peaks = self.solve(lambda expr, of: expr.climb(of), lambda expr: expr._peak)
        return self._peaks.get(key, INFINITE)

    def asked(self, key: Hashable) -> int:
        """The bits of the placeholders that a definition asks for (see `free.py`): rounds until none is added."""
        if self._asked is None:
            solved: dict[Hashable, int] = dict.fromkeys(self.bodies, 0)

            def parts(expr: Expr) -> tuple[Expr, ...]:
                return expr.parts() if expr._asked < 0 else ()

            changed = True
            while changed:
                before, known = dict(solved), dict[Expr, int]()

                def number(expr: Expr, known: dict[Expr, int] = known) -> int:
                    if isinstance(expr, Reference) and expr.owner is self:
                        return solved[expr.key]
                    return expr._asked if expr._asked >= 0 else expr.ask(known.__getitem__)

                for each, body in self.bodies.items():
                    solved[each] = fold(body, known, parts, number)
                changed = solved != before
            self._asked = solved
        return self._asked[key]

    def solve(
        self, value: Callable[[Expr, Callable[[Expr], int]], int], found: Callable[[Expr], int]
    ) -> dict[Hashable, int]:
        """The least numbers that fit together for all definitions: rounds until nothing gets less. `value` works out an
        expression's number from those of its parts, `found` gives it where it is known already, else -1. Nothing is
        left at the expressions, which other threads may be reading."""
        solved: dict[Hashable, int] = {}

        def parts(expr: Expr) -> tuple[Expr, ...]:
            return expr.parts() if found(expr) < 0 else ()

        def number(expr: Expr) -> int:
            if isinstance(expr, Reference) and expr.owner is self:
                return solved.get(expr.key, INFINITE)
            ready = found(expr)
            return ready if ready >= 0 else min(value(expr, known.__getitem__), INFINITE)

        changed = True
        while changed:
            changed = False
            for key, body in self.bodies.items():
                known: dict[Expr, int] = {}
                new = fold(body, known, parts, number)
                if new < solved.get(key, INFINITE):
                    solved[key], changed = new, True
        return solved


class Reference(Expr):
    """The expression that `owner` holds under `key`."""

    __slots__ = ("key", "owner")

    def __init__(self, owner: Definitions, key: Hashable) -> None:
        self.owner, self.key = owner, key

    def _find_heads(self) -> tuple[Head, ...]:
        return self.owner.bodies[self.key].heads()

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.owner.length(self.key)

    def climb(self, of: Callable[[Expr], int]) -> int:
        return self.owner.peak(self.key)

    def ask(self, of: Callable[[Expr], int]) -> int:
        return self.owner.asked(self.key)

    def __repr__(self) -> str:
        return f"@{self.key}"


def reference(owner: Definitions, key: Hashable) -> Expr:
    found: Expr = intern(Reference, owner, key)
    return found
