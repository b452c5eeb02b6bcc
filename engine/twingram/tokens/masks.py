"""The mask of a state: the tokens that the automaton can read from it.

In: a `State`, a `TokenBinding`, the vocabulary's `WideMasks`. Out: a `Mask`.

Two ways share the work. Where few bytes may follow, the trie of the vocabulary and the derivatives are walked together
and only branches that match are visited. Where text may follow, the row of the text's automaton is taken as it is; the
tokens that leave the text half-way come as a small trie of their rests, which is walked with what follows the text.
Invariant: bit set if and only if `TokenBinding.transition` gives a transition (a property test).
Cost: per state 15 to 40 us where little may follow; a row of text by reference otherwise. A mask is kept at its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..automaton.counted import Counted
from ..automaton.derivative import derive
from ..automaton.expression import Expr, Head, Leaf, Text, hoist, seq
from ..automaton.machine import State
from .binding import TokenBinding
from .bitmask import pack, unpack, words_for
from .distance import Distances
from .sweep import Sweep, sweep
from .trie import TokenTrie
from .wide import Row, WideMasks

__all__ = ["Mask", "Masks"]

_MOST_SHARED = 4096  # masks kept for sharing
_WIDE_TOKENS = 64  # below a node with more matching tokens than this, text is swept rather than walked


class Mask:
    """A set of allowed tokens: a row shared with others, or a few ids. Immutable."""

    __slots__ = ("_places", "_row", "_values", "ids", "size")

    def __init__(self, size: int, *, ids: NDArray[np.int32] | None = None, row: Row | None = None) -> None:
        self.size, self.ids, self._row = size, ids, row
        if ids is not None:
            words = ids >> 5
            self._places = np.unique(words)
            self._values = np.zeros(len(self._places), dtype=np.uint32)
            bits = np.uint32(1) << (ids & 31).astype(np.uint32)
            np.bitwise_or.at(self._values, np.searchsorted(self._places, words), bits)
            self._values = self._values.view(np.int32)

    def fill(self, row: Row) -> None:
        """Write the whole row."""
        if self.ids is None:
            row[: len(self._row)] = self._row  # type: ignore[arg-type]
            row[len(self._row) :] = 0  # type: ignore[arg-type]
        else:
            row[:] = 0
            row[self._places] = self._values

    @property
    def row(self) -> Row:
        """The packed row, read-only; made when first asked for."""
        if self._row is None:
            row = np.zeros(words_for(self.size), dtype=np.int32)
            self.fill(row)
            row.flags.writeable = False
            self._row = row
        return self._row

    def allowed(self) -> NDArray[np.int32]:
        """The ids, rising."""
        return self.ids if self.ids is not None else unpack(self.row, self.size)

    def __contains__(self, token: int) -> bool:
        return 0 <= token < self.size and bool(int(self.row[token >> 5]) >> (token & 31) & 1)

    def memory_usage(self) -> int:
        held = 0 if self._row is None else self._row.nbytes
        return held + (0 if self.ids is None else self.ids.nbytes + self._places.nbytes + self._values.nbytes)


class Masks:
    """Makes the masks of one binding."""

    def __init__(self, binding: TokenBinding, wide: WideMasks) -> None:
        self.binding, self.wide = binding, wide
        self.size = len(binding.vocabulary)
        # (identities of rows, extra ids) -> mask and those rows: equal masks are one object
        self._shared: dict[tuple[tuple[int, ...], bytes], tuple[Mask, tuple[Row, ...]]] = {}

    def of(self, state: State) -> Mask:
        """The mask of a state, kept there."""
        found = state.mask
        if found is None:
            found = state.mask = self._make(state)
        assert isinstance(found, Mask)
        return found

    def within(self, state: State, distances: Distances, most: int) -> Mask:
        """The tokens after which the turn can still be ended within `most` more tokens. Text is judged by what follows
        it: a token that stays text is kept if the text can be left from where it ends."""
        ids: list[int] = []
        rows: list[Row] = []
        for symbol in _bits(state.first >> 256 << 256):
            step = state.step(symbol)
            if step is not None and distances.of_state(step.state) <= most:
                ids += self.binding.ids(symbol)
        _Landing(self.wide, ids, rows, distances, most).root(state.threads)
        return self._share(ids, rows)

    def farthest(self, state: State, distances: Distances) -> int:
        """Within how many tokens the turn can be ended after the worst token that `state` allows, itself included."""
        worst = 0
        for symbol in _bits(state.first >> 256 << 256):
            step = state.step(symbol)
            if step is not None:
                worst = max(worst, distances.of_state(step.state))
        walk = _Farthest(self.wide, [], [], distances, worst)
        walk.root(state.threads)
        return walk.most

    def only(self, ids: Iterable[int]) -> Mask:
        """A mask of just these tokens."""
        return self._share(list(ids), [])

    def memory_usage(self) -> int:
        """Bytes of the masks kept for sharing."""
        return sum(mask.memory_usage() for mask, _ in self._shared.values())

    def _make(self, state: State) -> Mask:
        ids: list[int] = []
        rows: list[Row] = []
        for symbol in _bits(state.first >> 256 << 256):
            ids += self.binding.ids(symbol)
        _Walk(self.wide, ids, rows).root(state.threads)
        return self._share(ids, rows)

    def _share(self, ids: list[int], rows: list[Row]) -> Mask:
        distinct = np.unique(np.array(ids, dtype=np.int32))
        unique = {id(row): row for row in rows}
        key = (tuple(sorted(unique)), distinct.tobytes())
        found = self._shared.get(key)
        if found is not None:
            return found[0]
        if not unique:
            made = Mask(self.size, ids=distinct)
        else:
            parts = list(unique.values())
            if len(parts) == 1 and not len(distinct):
                made = Mask(self.size, row=parts[0])
            else:
                row = parts[0].copy()
                for part in parts[1:]:
                    row |= part
                bits = np.uint32(1) << (distinct & 31).astype(np.uint32)
                np.bitwise_or.at(row.view(np.uint32), distinct >> 5, bits)
                row.flags.writeable = False
                made = Mask(self.size, row=row)
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        # The rows are kept with the mask: their identities are the key.
        self._shared[key] = (made, tuple(unique.values()))
        return made


class _Walk:
    """One walk of trie and expressions. `ids` and `rows` are what it adds to."""

    __slots__ = ("ids", "rows", "wide")

    def __init__(self, wide: WideMasks, ids: list[int], rows: list[Row]) -> None:
        self.wide, self.ids, self.rows = wide, ids, rows

    def admits(self, rest: tuple[Expr, ...]) -> bool:
        """Whether a token may lead to `rest`."""
        return True

    def root(self, exprs: Iterable[Expr]) -> None:
        trie = self.wide.vocabulary.trie
        narrow: list[tuple[Leaf, Expr]] = []
        for _, leaf, tail in _leaves(exprs):
            if isinstance(leaf, (Text, Counted)) and self._matching(trie, 0, leaf) > _WIDE_TOKENS:
                self._text(leaf, tail)
            else:
                narrow.append((leaf, tail))
        if narrow:
            self._children(trie, 0, _Narrow(narrow))

    def _matching(self, trie: TokenTrie, node: int, leaf: Leaf) -> int:
        """About how many tokens below the node begin as the leaf does."""
        first = leaf.first & _BYTES
        if first.bit_count() > 48:
            return trie.weight[node]
        total = 0
        for byte in _bits(first):
            child = trie.child(node, byte)
            if child > 0:
                total += trie.weight[child]
        return total

    def _text(self, leaf: Text | Counted, tail: Expr) -> None:
        """All tokens below the root that are text, and those that leave it for `tail`."""
        dfa, state, bound = leaf.dfa, leaf.state, False
        if isinstance(leaf, Text):
            self.rows.append(self.wide.row(dfa, state))
        else:
            bound = self._counted(leaf)
        for byte in _bits(_first(tail)):
            self._leave(self.wide.exits(dfa, state, byte, every=bound), leaf, tail)

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

    def _leave(self, exits: TokenTrie, leaf: Text | Counted, tail: Expr) -> None:
        if len(exits) <= 1:
            return
        if isinstance(leaf, Counted):  # keep the ways out at which the count may end
            exits = TokenTrie.of(_exits_within(exits, leaf, self.wide))
        self._children(exits, 0, (tail,))

    def _children(self, trie: TokenTrie, node: int, exprs: tuple[Expr, ...] | _Narrow) -> None:
        """Add every token below `node` that the expressions can read."""
        stack: list[tuple[int, tuple[Expr, ...] | _Narrow]] = [(node, exprs)]
        first_child, node_byte, starts = trie.first_child, trie.node_byte, trie.token_start
        while stack:
            at, now = stack.pop()
            low, high = first_child[at], first_child[at + 1]
            if low == high:
                continue
            if not isinstance(now, _Narrow):
                now = self._split(trie, at, now)
                if now is None:
                    continue
            first = now.first
            for child in _children_in(node_byte, low, high, first):
                rest = now.after(node_byte[child])
                begin, end = starts[child], starts[child + 1]
                if begin != end and self.admits(rest):
                    self.ids.extend(trie.token_ids[begin:end])
                stack.append((child, rest))

    def _split(self, trie: TokenTrie, node: int, exprs: tuple[Expr, ...]) -> _Narrow | None:
        """Sweep what is wide below this node; give what remains to be walked."""
        narrow: list[tuple[Leaf, Expr]] = []
        plain = True
        big = trie.weight[node] > _WIDE_TOKENS
        for _, leaf, tail in _leaves(exprs):
            if big and isinstance(leaf, (Text, Counted)) and self._matching(trie, node, leaf) > _WIDE_TOKENS:
                self._sweep_below(trie, node, leaf, tail)
                plain = False
            else:
                narrow.append((leaf, tail))
        if not narrow:
            return None
        return _Narrow(narrow, exprs if plain else None)

    def _sweep_below(self, trie: TokenTrie, node: int, leaf: Text | Counted, tail: Expr) -> None:
        found = sweep(trie, leaf.dfa, leaf.state, node)
        if isinstance(leaf, Text):
            self.ids.extend(found.token_ids.tolist())
        else:
            pairs = zip(found.token_ids.tolist(), found.end_states.tolist(), found.char_counts.tolist(), strict=True)
            self.ids.extend(token for token, state, count in pairs if leaf.admits(state, count))
        for byte in _bits(_first(tail)):
            self._leave(found.exits(byte, every=isinstance(leaf, Counted)), leaf, tail)


class _Landing(_Walk):
    """A walk that keeps only what can still be ended within `most` tokens."""

    __slots__ = ("distances", "most")

    def __init__(self, wide: WideMasks, ids: list[int], rows: list[Row], distances: Distances, most: int) -> None:
        super().__init__(wide, ids, rows)
        self.distances, self.most = distances, most

    def admits(self, rest: tuple[Expr, ...]) -> bool:
        return any(self.distances.of(expr) <= self.most for expr in rest)

    def _text(self, leaf: Text | Counted, tail: Expr) -> None:
        left = self.most - self.distances.of(tail)
        if isinstance(leaf, Text) and left >= 0:
            if left >= max(leaf.dfa.shortest[1:]):
                self.rows.append(self.wide.row(leaf.dfa, leaf.state))
            else:
                found = self.wide.sweep(leaf.dfa, leaf.state)
                near = np.array([-1, *leaf.dfa.shortest[1:]])
                self.rows.append(pack(found.token_ids[near[found.end_states] <= left], len(self.wide.vocabulary)))
        elif isinstance(leaf, Counted) and left >= 0:
            found = self.wide.sweep(leaf.dfa, leaf.state)
            self.ids.extend(self._counted_within(leaf, found, left))
        for byte in _bits(_first(tail)):
            self._leave(self.wide.exits(leaf.dfa, leaf.state, byte), leaf, tail)

    def _counted_within(self, leaf: Counted, found: Sweep, left: int) -> Iterator[int]:
        verdicts: dict[tuple[int, int], bool] = {}
        pairs = zip(found.token_ids.tolist(), found.end_states.tolist(), found.char_counts.tolist(), strict=True)
        for token, state, count in pairs:
            key = (state, count)
            if key not in verdicts:
                verdicts[key] = leaf.admits(state, count) and leaf.moved(state, count).shortest <= left
            if verdicts[key]:
                yield token

    def _sweep_below(self, trie: TokenTrie, node: int, leaf: Text | Counted, tail: Expr) -> None:
        found = sweep(trie, leaf.dfa, leaf.state, node)
        left = self.most - self.distances.of(tail)
        if isinstance(leaf, Text):
            near = leaf.dfa.shortest
            pairs = zip(found.token_ids.tolist(), found.end_states.tolist(), strict=True)
            self.ids.extend(token for token, state in pairs if near[state] <= left)
        else:
            self.ids.extend(self._counted_within(leaf, found, left))
        for byte in _bits(_first(tail)):
            self._leave(found.exits(byte), leaf, tail)


class _Farthest(_Landing):
    """A walk that finds the greatest distance a token leads to: `most`."""

    __slots__ = ()

    def admits(self, rest: tuple[Expr, ...]) -> bool:
        self.most = max(self.most, min(self.distances.of(expr) for expr in rest))
        return False

    def _text(self, leaf: Text | Counted, tail: Expr) -> None:
        self._bound(leaf, tail)
        for byte in _bits(_first(tail)):
            self._leave(self.wide.exits(leaf.dfa, leaf.state, byte), leaf, tail)

    def _sweep_below(self, trie: TokenTrie, node: int, leaf: Text | Counted, tail: Expr) -> None:
        self._bound(leaf, tail)
        for byte in _bits(_first(tail)):
            self._leave(sweep(trie, leaf.dfa, leaf.state, node).exits(byte), leaf, tail)

    def _bound(self, leaf: Text | Counted, tail: Expr) -> None:
        """No token that stays text leads further than this."""
        within = max(leaf.dfa.shortest[1:])
        if isinstance(leaf, Counted):
            within = max(within, leaf.shortest)
        self.most = max(self.most, within + self.distances.of(tail))


class _Narrow:
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


def _leaves(exprs: Iterable[Expr]) -> Iterator[Head]:
    for expr in exprs:
        for head in expr.heads():
            if head[1] is not None and head[1].first & _BYTES:
                yield head


def _first(expr: Expr) -> int:
    """The bytes that an expression can begin with, as bits."""
    bits = 0
    for _, leaf, _ in expr.heads():
        if leaf is not None:
            bits |= leaf.first
    return bits & _BYTES


def _bits(bits: int) -> Iterator[int]:
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
