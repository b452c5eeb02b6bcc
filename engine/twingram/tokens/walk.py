"""The walk of the token trie and the derivatives together.

In: expressions, the wide masks of a vocabulary. Out: ids of tokens, and whole rows where text is wide.

Only branches of the trie that match are visited. Where many tokens are text of one automaton, the automaton is swept
with numpy instead, and the tokens that leave the text half-way come as a small trie of their rests, which is walked
with what follows the text.
Invariant: a token is added if and only if the expressions can read all of its bytes (and `admits` what is left).
Cost: 2 to 4 us a node visited, one derivative each; a sweep is 20 us a level.

Source: walking a token trie beside a recogniser is folklore among engines of this kind; sweeping the wide part is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

import numpy as np

from ..automaton.bound import end_of
from ..automaton.counted import Counted
from ..automaton.depth import Depth
from ..automaton.derivative import derive
from ..automaton.expression import Expr, Leaf, Literal, Seq, Text, seq
from ..automaton.hoist import PutOff, hoist
from ..automaton.machine import State
from ..automaton.notjson import NotJson
from .bitmask import pack
from .sweep import sweep
from .trie import TokenTrie
from .wide import Row, WideMasks

__all__ = ["Narrow", "Walk", "bits", "first_bytes"]

_WIDE_TOKENS = 64  # below a node with more matching tokens than this, text is swept rather than walked


class Walk:
    """One walk of trie and expressions. `ids` and `rows` are what it adds to."""

    __slots__ = ("depth", "ids", "rows", "wide")

    def __init__(self, wide: WideMasks, ids: list[int], rows: list[Row]) -> None:
        self.wide, self.ids, self.rows = wide, ids, rows
        self.depth: Depth | None = None  # where a token could open too many containers

    direct = True  # tokens inside fixed text need no look at what they lead to

    def begin(self, state: State) -> Walk:
        """Walk from a state."""
        depth = state.machine.depth
        if max(thread.nesting for thread in state.threads) + self.wide.vocabulary.trie.depth > depth.calm:
            self.depth = depth
        self.root(state.threads)
        return self

    def admits(self, rest: tuple[Expr, ...]) -> bool:
        """Whether a token may lead to `rest`."""
        return True

    def wide_text(self, leaf: Leaf) -> TypeGuard[Text | Counted]:
        """Whether a leaf may be swept."""
        return isinstance(leaf, (Text, Counted))

    def root(self, exprs: Iterable[Expr]) -> None:
        trie, exprs = self.wide.vocabulary.trie, tuple(exprs)
        if len(exprs) == 1 and not any(self.wide_text(leaf) for leaf, _ in leaves(exprs)):
            self._children(trie, 0, exprs)
            return
        narrow: list[tuple[Leaf, Expr]] = []
        for leaf, tail in leaves(exprs):
            if self.wide_text(leaf) and self._matching(trie, 0, leaf) > _WIDE_TOKENS:
                self.text(leaf, tail)
            else:
                narrow.append((leaf, tail))
        if narrow:
            self._children(trie, 0, Narrow(narrow))

    def _matching(self, trie: TokenTrie, node: int, leaf: Leaf) -> int:
        """About how many tokens below the node begin as the leaf does."""
        first = leaf.first & _BYTES
        if first.bit_count() > 48:
            return trie.weight[node]
        total = 0
        for byte in bits(first):
            child = trie.child(node, byte)
            if child > 0:
                total += trie.weight[child]
        return total

    def text(self, leaf: Text | Counted, tail: Expr) -> None:
        """All tokens below the root that are text, and those that leave it for `tail`."""
        dfa, state, bound = leaf.dfa, leaf.state, False
        if isinstance(leaf, Text):
            self.rows.append(self.wide.row(dfa, state))
        else:
            bound = self._counted(leaf)
        for byte in bits(first_bytes(tail)):
            self.leave(self.wide.exits(dfa, state, byte, every=bound), leaf, tail)

    def _counted(self, leaf: Counted) -> bool:
        """The tokens that stay text within the count; whether the count keeps any out that the automaton reads."""
        found = self.wide.sweep(leaf.dfa, leaf.state)
        counts, ends = found.char_counts, found.end_states
        most = int(counts.max(initial=0))
        if self.wide.any_length(leaf.dfa):
            if leaf.high > most + 1:
                self.rows.append(self.wide.row(leaf.dfa, leaf.state))
                return False
            unfinished = np.frombuffer(leaf.dfa.accept, dtype=np.uint8)[ends] == 0
            alive = counts + unfinished <= leaf.high
        else:
            verdict = np.zeros((len(leaf.dfa), most + 1), dtype=np.bool_)
            for state in np.unique(ends).tolist():
                verdict[state] = [leaf.admits(state, count) for count in range(most + 1)]
            alive = verdict[ends, counts]
        self.rows.append(pack(found.token_ids[alive], len(self.wide.vocabulary)))
        return not alive.all()

    def leave(self, exits: TokenTrie, leaf: Text | Counted, tail: Expr) -> None:
        if len(exits) <= 1:
            return
        if isinstance(leaf, Counted):  # keep the ways out at which the count may end
            exits = TokenTrie.of(_exits_within(exits, leaf, self.wide))
        elif isinstance(leaf, NotJson):
            exits = TokenTrie.of(_exits_apart(exits, leaf, self.wide))
        self._children(exits, 0, (tail,))

    def _children(self, trie: TokenTrie, node: int, exprs: tuple[Expr, ...] | Narrow) -> None:
        """Add every token below `node` that the expressions can read."""
        stack: list[tuple[int, tuple[Expr, ...] | Narrow]] = [(node, exprs)]
        first_child, node_byte, starts = trie.first_child, trie.node_byte, trie.token_start
        plain = self.direct and self.depth is None  # what tokens lead to has no say
        while stack:
            at, left = stack.pop()
            low, high = first_child[at], first_child[at + 1]
            if low == high:
                continue
            if plain and not isinstance(left, Narrow) and len(left) == 1:
                passed = self._literal(trie, at, left[0])
                if passed is not None:
                    stack += passed
                    continue
            now = left if isinstance(left, Narrow) else self._split(trie, at, left)
            if now is None:
                continue
            for child in _children_in(node_byte, low, high, now.first):
                if plain and first_child[child] == first_child[child + 1]:
                    self.ids.extend(trie.token_ids[starts[child] : starts[child + 1]])
                    continue
                rest = now.after(node_byte[child])
                if self.depth is not None:
                    rest = tuple(filter(self.depth.fits, rest))
                    if not rest:
                        continue
                begin, end = starts[child], starts[child + 1]
                if begin != end and self.admits(rest):
                    self.ids.extend(trie.token_ids[begin:end])
                stack.append((child, rest))

    def _literal(self, trie: TokenTrie, node: int, expr: Expr) -> list[tuple[int, tuple[Expr, ...]]] | None:
        """Follow fixed text, which needs no derivatives; None if the expression does not begin with it."""
        head = expr.head if isinstance(expr, Seq) else expr
        if not isinstance(head, Literal):
            return None
        for byte in head.data:
            node = trie.child(node, byte)
            if node < 0:
                return []
            begin, end = trie.token_start[node], trie.token_start[node + 1]
            if begin != end:
                self.ids.extend(trie.token_ids[begin:end])
        if not isinstance(expr, Seq) or not self._goes_on(trie, node, expr.tail):
            return []
        return [(node, (hoist(expr.tail)[1],))]

    def _goes_on(self, trie: TokenTrie, node: int, expr: Expr) -> bool:
        """Whether tokens below the node may go on with the expression. What is put off is not made to find out."""
        low, high = trie.first_child[node], trie.first_child[node + 1]
        head = expr.head if isinstance(expr, Seq) else expr
        if low == high or not isinstance(head, PutOff):
            return low < high
        first = first_bytes(head.opening)
        return any(first >> byte & 1 for byte in trie.node_byte[low:high]) or end_of(head.opening) is not None

    def _split(self, trie: TokenTrie, node: int, exprs: tuple[Expr, ...]) -> Narrow | None:
        """Sweep what is wide below this node; give what remains to be walked."""
        narrow: list[tuple[Leaf, Expr]] = []
        plain = True
        big = trie.weight[node] > _WIDE_TOKENS
        for leaf, tail in leaves(exprs):
            if big and self.wide_text(leaf) and self._matching(trie, node, leaf) > _WIDE_TOKENS:
                self.sweep_below(trie, node, leaf, tail)
                plain = False
            else:
                narrow.append((leaf, tail))
        if not narrow:
            return None
        return Narrow(narrow, exprs if plain else None)

    def sweep_below(self, trie: TokenTrie, node: int, leaf: Text | Counted, tail: Expr) -> None:
        found = sweep(trie, leaf.dfa, leaf.state, node)
        if isinstance(leaf, Text):
            self.ids.extend(found.token_ids.tolist())
        else:
            pairs = zip(found.token_ids.tolist(), found.end_states.tolist(), found.char_counts.tolist(), strict=True)
            self.ids.extend(token for token, state, count in pairs if leaf.admits(state, count))
        for byte in bits(first_bytes(tail)):
            self.leave(found.exits(byte, every=isinstance(leaf, Counted)), leaf, tail)


class Narrow:
    """Leaves with what follows them, to be walked byte by byte."""

    __slots__ = ("exprs", "first", "leaves")

    def __init__(self, leaves: list[tuple[Leaf, Expr]], exprs: tuple[Expr, ...] | None = None) -> None:
        self.leaves, self.exprs = leaves, exprs
        self.first = 0
        for leaf, _ in leaves:
            self.first |= leaf.first

    def after(self, byte: int) -> tuple[Expr, ...]:
        if self.exprs is not None:  # whole expressions keep their derivatives
            found = [rest for expr in self.exprs for _, _, rest in derive(expr, byte)]
        else:
            found = [hoist(seq(leaf.after(byte), tail))[1] for leaf, tail in self.leaves if leaf.first >> byte & 1]
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)


_BYTES = (1 << 256) - 1


def leaves(exprs: Iterable[Expr]) -> Iterator[tuple[Leaf, Expr]]:
    for expr in exprs:
        for _, leaf, tail in expr.heads():
            if leaf is not None and leaf.first & _BYTES:
                yield leaf, tail


def first_bytes(expr: Expr) -> int:
    """The bytes that an expression can begin with, as bits."""
    bits = 0
    for _, leaf, _ in expr.heads():
        if leaf is not None:
            bits |= leaf.first
    return bits & _BYTES


def bits(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        bits ^= lowest
        yield lowest.bit_length() - 1


def _children_in(node_byte: bytes, low: int, high: int, first: int) -> Iterator[int]:
    """The children whose byte is in `first`."""
    if first & (first - 1) == 0:
        child = node_byte.find(first.bit_length() - 1, low, high)
        if child >= 0:
            yield child
        return
    for child in range(low, high):
        if first >> node_byte[child] & 1:
            yield child


def _exits_within(exits: TokenTrie, leaf: Counted, wide: WideMasks) -> Iterator[tuple[int, bytes]]:
    """(token, rest) of the ways out before which the number of characters is right."""
    rests = zip(exits.entry_ids.tolist(), exits.entry_start.tolist(), exits.entry_length.tolist(), strict=True)
    for entry, (token, start, length) in enumerate(rests):
        if exits.entry_chars is not None:
            chars = int(exits.entry_chars[entry])
        else:
            data, state, chars = wide.vocabulary.token_bytes(token), leaf.state, 0
            for byte in data[: len(data) - length]:
                state = leaf.dfa.rows[state][byte]
                chars += leaf.dfa.boundary[state]
        if leaf.low <= chars <= leaf.high:
            yield token, bytes(exits.blob[start : start + length])


def _exits_apart(exits: TokenTrie, leaf: NotJson, wide: WideMasks) -> Iterator[tuple[int, bytes]]:
    """(token, rest) of the ways out before which no document has been written."""
    rests = zip(exits.entry_ids.tolist(), exits.entry_start.tolist(), exits.entry_length.tolist(), strict=True)
    for token, start, length in rests:
        data = wide.vocabulary.token_bytes(token)
        if leaf.ends_after(data[: len(data) - length]):
            yield token, bytes(exits.blob[start : start + length])
