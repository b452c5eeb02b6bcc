"""A slow and obvious matcher: sets of what may still follow.

In: pieces (small languages over symbols) and one symbol at a time; a symbol is a byte 0..255 or a marker, a `str`
that counts as one whole symbol. Out: whether the sequence may go on, and whether it may end.

A configuration is a list of pieces still to be matched, a state is a set of configurations. Invariant: every piece
can be completed from wherever it stands (pieces that cannot are never built), so a sequence is a prefix of some
complete one exactly if its state is not empty. Cost: a step looks at every configuration; states keep the steps they
have made. This is the textbook's simulation of a nondeterministic automaton, with a stack in each configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["Choice", "Later", "OracleState", "Piece", "Symbol", "Word", "choice", "literal", "optional", "start"]

Symbol = int | str


class Piece:
    """One language. Either it opens into sequences of pieces, or it steps over symbols itself."""

    __slots__ = ()

    def open(self) -> Iterable[Sequence[Piece]] | None:
        """The sequences this piece stands for, or None if it steps by itself."""
        return None

    def may_end(self) -> bool:
        return False

    def step(self, symbol: Symbol) -> Piece | None:
        return None

    def wants_more(self) -> bool:
        """Whether any symbol may follow inside this piece."""
        return True


class Word(Piece):
    """Exactly these symbols."""

    __slots__ = ("_key", "at", "symbols")

    def __init__(self, symbols: tuple[Symbol, ...], at: int = 0) -> None:
        self.symbols, self.at = symbols, at
        self._key = symbols[at:]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Word({self._key!r})"

    def may_end(self) -> bool:
        return self.at == len(self.symbols)

    def wants_more(self) -> bool:
        return self.at < len(self.symbols)

    def step(self, symbol: Symbol) -> Piece | None:
        if self.at < len(self.symbols) and self.symbols[self.at] == symbol:
            return Word(self.symbols, self.at + 1)
        return None


class Choice(Piece):
    """One of several sequences."""

    __slots__ = ("options",)

    def __init__(self, options: Iterable[Sequence[Piece]]) -> None:
        self.options = tuple(tuple(option) for option in options)

    def open(self) -> Iterable[Sequence[Piece]]:
        return self.options


class Later(Piece):
    """A sequence that is made when it is first needed: recursion."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Sequence[Piece]]) -> None:
        self._make = make
        self._made: tuple[Piece, ...] | None = None

    def open(self) -> Iterable[Sequence[Piece]]:
        if self._made is None:
            self._made = tuple(self._make())
        return (self._made,)


def literal(*parts: str | bytes | Word) -> Word:
    """Text as bytes; markers are given as words."""
    symbols: list[Symbol] = []
    for part in parts:
        if isinstance(part, Word):
            symbols += part.symbols
        else:
            symbols += part.encode() if isinstance(part, str) else part
    return Word(tuple(symbols))


def choice(*options: Sequence[Piece]) -> Choice:
    return Choice(options)


def optional(*pieces: Piece) -> Choice:
    return Choice([(), pieces])


class _Cell:
    """A list of pieces, first first; shared tails, hash kept."""

    __slots__ = ("hash", "head", "tail")

    def __init__(self, head: Piece, tail: _Cell | None) -> None:
        self.head, self.tail = head, tail
        self.hash: int = hash((head, tail.hash if tail is not None else 0))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        left: _Cell | None = self
        right = other if isinstance(other, _Cell) else None
        while left is not None and right is not None:
            if left is right:
                return True
            if left.hash != right.hash or left.head != right.head:
                return False
            left, right = left.tail, right.tail
        return left is right


def _opened(cells: Iterable[_Cell | None]) -> frozenset[_Cell | None]:
    """The configurations whose first piece steps by itself, and None for the end."""
    seen: set[_Cell | None] = set()
    kept: set[_Cell | None] = set()
    todo = list(cells)
    while todo:
        cell = todo.pop()
        if cell in seen:
            continue
        seen.add(cell)
        if cell is None:
            kept.add(None)
            continue
        options = cell.head.open()
        if options is not None:
            todo += [_chained(option, cell.tail) for option in options]
            continue
        if cell.head.may_end():
            todo.append(cell.tail)
        if cell.head.wants_more():
            kept.add(cell)
    return frozenset(kept)


def _chained(pieces: Sequence[Piece], tail: _Cell | None) -> _Cell | None:
    for piece in reversed(pieces):
        tail = _Cell(piece, tail)
    return tail


class OracleState:
    """What may follow a sequence of symbols. Immutable; equal states of one matcher are one object."""

    __slots__ = ("_cells", "_known", "_steps")

    def __init__(self, cells: frozenset[_Cell | None], known: dict[frozenset[_Cell | None], OracleState]) -> None:
        self._cells = cells
        self._known = known
        self._steps: dict[Symbol, OracleState | None] = {}

    @property
    def can_end(self) -> bool:
        return None in self._cells

    def advance(self, symbol: Symbol) -> OracleState | None:
        if symbol not in self._steps:
            self._steps[symbol] = self._advanced(symbol)
        return self._steps[symbol]

    def _advanced(self, symbol: Symbol) -> OracleState | None:
        moved: list[_Cell | None] = []
        for cell in self._cells:
            if cell is not None and (piece := cell.head.step(symbol)) is not None:
                moved.append(_Cell(piece, cell.tail))
        cells = _opened(moved)
        if not cells:
            return None
        if cells not in self._known:
            self._known[cells] = OracleState(cells, self._known)
        return self._known[cells]

    def run(self, symbols: Iterable[Symbol]) -> OracleState | None:
        state: OracleState | None = self
        for symbol in symbols:
            state = state.advance(symbol) if state is not None else None
            if state is None:
                return None
        return state

    def nexts(self) -> Iterator[int]:
        """The bytes that may follow (markers are not listed)."""
        return (byte for byte in range(256) if self.advance(byte) is not None)


def start(pieces: Sequence[Piece]) -> OracleState:
    """The state before the first symbol of a sequence of pieces."""
    known: dict[frozenset[_Cell | None], OracleState] = {}
    cells = _opened([_chained(pieces, None)])
    known[cells] = OracleState(cells, known)
    return known[cells]
