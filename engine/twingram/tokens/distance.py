"""Distances: within how many tokens an expression can be ended.

In: a vocabulary. Out: for expressions and states, a number of tokens that reaches an end. Fixed text is spelt in as few
tokens as the vocabulary allows, text that is free is left at once; parts are not merged across, so the number is a
bound from above, and following it, it falls by one with every token.
Invariant: for every state there is an allowed token after which the distance is smaller by at least one.
Cost: each expression once; a literal costs a walk in the token trie for each of its bytes.
"""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakKeyDictionary

from ..automaton.expression import INFINITE, Expr
from ..automaton.machine import State
from ..automaton.recursion import Definitions, Reference
from ..caches import charge, watch
from .vocabulary import Vocabulary

__all__ = ["Distances"]

_SPELLINGS_KEPT = 1 << 16
_BYTES = 150  # of an entry


class Distances:
    """The distances of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._trie = vocabulary.trie
        self._known: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
        self._spelt: dict[bytes, int] = {b"": 0}
        self._settled: WeakKeyDictionary[Definitions, dict[Hashable, int]] = WeakKeyDictionary()
        watch(self)

    def of_state(self, state: State) -> int:
        """The nearest end of any thread, the symbol of the end itself included."""
        return min(self.of(thread) for thread in state.threads)

    def of(self, root: Expr) -> int:
        """The distance of an expression."""
        known = self._known
        found = known.get(root)
        if found is not None:
            return found
        stack = [root]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            if isinstance(top, Reference):
                known[top] = self._definitions(top.owner).get(top.key, INFINITE)
                continue
            missing = [part for part in top.parts() if part not in known]
            if missing:
                stack.extend(missing)
            else:
                known[top] = min(top.measure(known.__getitem__, self.spell), INFINITE)
        return known[root]

    def spell(self, data: bytes) -> int:
        """The fewest tokens that spell `data` exactly."""
        found = self._spelt.get(data)
        if found is not None:
            return found
        if len(self._spelt) > _SPELLINGS_KEPT:
            self._spelt = {b"": 0}
        fewest = [0] * (len(data) + 1)
        for start in range(len(data) - 1, -1, -1):
            fewest[start] = self._from(data, start, fewest)
            self._spelt[data[start:]] = fewest[start]
        charge(_BYTES * len(data))
        return fewest[0]

    def memory_usage(self) -> int:
        """Bytes held, about."""
        return _BYTES * (len(self._known) + len(self._spelt))

    def clear(self) -> None:
        """Forget all distances."""
        self._known, self._spelt, self._settled = WeakKeyDictionary(), {b"": 0}, WeakKeyDictionary()

    def _from(self, data: bytes, start: int, fewest: list[int]) -> int:
        trie, node, best = self._trie, 0, INFINITE
        for end in range(start, len(data)):
            node = trie.child(node, data[end])
            if node < 0:
                break
            if trie.token_start[node] != trie.token_start[node + 1]:
                best = min(best, 1 + fewest[end + 1])
        return best

    def _definitions(self, owner: Definitions) -> dict[Hashable, int]:
        """The distances of all definitions of a table: rounds, as for their lengths, until nothing gets shorter."""
        found = self._settled.get(owner)
        if found is None:
            found = {}
            changed = True
            while changed:
                changed = False
                for key, body in owner.bodies.items():
                    distance = self._under(body, found, owner)
                    if distance < found.get(key, INFINITE):
                        found[key], changed = distance, True
            self._settled[owner] = found  # only when it is complete: another thread may ask
        return found

    def _under(self, root: Expr, lengths: dict[Hashable, int], owner: Definitions) -> int:
        """The distance of `root` while those of the references are `lengths`."""
        local: dict[Expr, int] = {}
        stack = [root]
        while stack:
            top = stack[-1]
            if top in local:
                stack.pop()
                continue
            if isinstance(top, Reference):
                local[top] = lengths.get(top.key, INFINITE) if top.owner is owner else self.of(top)
                continue
            missing = [part for part in top.parts() if part not in local]
            if missing:
                stack.extend(missing)
            else:
                local[top] = min(top.measure(local.__getitem__, self.spell), INFINITE)
        return local[root]
