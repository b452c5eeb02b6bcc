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
from .interning import intern

__all__ = ["Definitions", "Reference", "reference"]


class Definitions:
    """key -> expression; keys are whatever the compiler finds handy."""

    __slots__ = ("__weakref__", "_lengths", "bodies")

    def __init__(self) -> None:
        self.bodies: dict[Hashable, Expr] = {}
        self._lengths: dict[Hashable, int] = {}

    def length(self, key: Hashable) -> int:
        return self._lengths.get(key, INFINITE)

    def settle(self) -> set[Hashable]:
        """Find the shortest completion of every definition; give the keys of those that have none."""
        changed = True
        while changed:
            changed = False
            for key, body in self.bodies.items():
                length = _measure(body, self._lengths, self)
                if length < self.length(key):
                    self._lengths[key], changed = length, True
        return {key for key in self.bodies if self.length(key) >= INFINITE}


def _measure(root: Expr, lengths: dict[Hashable, int], owner: Definitions) -> int:
    """`shortest` of `root` under the present lengths of the references. Nothing is left at the expressions, which other
    threads may be reading."""
    known: dict[Expr, int] = {}
    stack = [root]
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
        elif top._shortest >= 0:
            known[top] = top._shortest
        elif isinstance(top, Reference) and top.owner is owner:
            known[top] = lengths.get(top.key, INFINITE)
        else:
            missing = [part for part in top.parts() if part not in known]
            if missing:
                stack.extend(missing)
            else:
                known[top] = min(top.measure(known.__getitem__, len), INFINITE)
    return known[root]


class Reference(Expr):
    """The expression that `owner` holds under `key`."""

    __slots__ = ("key", "owner")

    def __init__(self, owner: Definitions, key: Hashable) -> None:
        self.owner, self.key = owner, key

    def _find_heads(self) -> tuple[Head, ...]:
        return self.owner.bodies[self.key].heads()

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.owner.length(self.key)

    def __repr__(self) -> str:
        return f"@{self.key}"


def reference(owner: Definitions, key: Hashable) -> Expr:
    found: Expr = intern(Reference, owner, key)
    return found
