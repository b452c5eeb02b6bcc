"""A number for every node of a graph without cycles, worked out from the numbers of its parts.

In: a root, what a node is made of, how its number follows. Out: the root's number; those of all below it are kept.
Invariant: parts come before wholes, with a stack of our own: an expression may be thousands of parts long.
Cost: each node once, as long as its number is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableMapping
from typing import TypeVar

__all__ = ["fold"]

Node = TypeVar("Node", bound=Hashable)


def fold(
    root: Node,
    known: MutableMapping[Node, int],
    parts: Callable[[Node], Iterable[Node]],
    value: Callable[[Node], int],
) -> int:
    """The number of `root`; `value` is asked once those of all `parts` of a node are known."""
    stack = [root]
    while stack:
        top = stack[-1]
        if top in known:
            stack.pop()
            continue
        missing = [part for part in parts(top) if part not in known]
        if missing:
            stack.extend(missing)
        else:
            known[top] = value(top)
            stack.pop()
    return known[root]
