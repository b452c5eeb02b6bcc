"""Expressions: immutable, hash-consed grammar values. An expression is the language that may still follow.

In: the constructors below (`seq`, `alt`, `literal`, ...). Out: objects that are equal exactly when they are the same
object, each with `heads()`, the ordered list of ways it can begin.

A *head* is `(tags, leaf, tail)`: after firing `tags` (zero width) the `leaf` reads the next symbol, and `tail` follows
what the leaf leaves over. `leaf is None` is the empty path: the expression may end here, and `tail.follow` has a say in
what may stand after it (see `capture.py` and `ending.py`; most have none). The order of heads is the order of
preference: canonical alternatives first, in file order, then what is only parsed; a text region puts its empty path
first, so that text yields to what may follow it.

A symbol is an integer: 0..255 a byte, 256+k the k-th marker of the alphabet in use. `leaf.first` is the set of symbols
a leaf can read, as the bits of one integer; `leaf.after(symbol)` is what is left of it.

Invariants: `NOTHING` never occurs inside another expression; the left side of a `Seq` is never a `Seq` (so the spine
is a linked list: the pushdown's stack); building and deriving do not recurse along the spine.
Cost: one dictionary look-up a constructor (see `interning.py`); `heads()` is computed once for each expression.

Source: J. A. Brzozowski, "Derivatives of Regular Expressions" (1964); V. Antimirov, "Partial Derivatives of Regular
Expressions and Finite Automaton Constructions" (1996), here with order and tags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from .dfa import Dfa
from .interning import intern
from .tags import LEVEL, Tag, close_tag

__all__ = [
    "EMPTY",
    "INFINITE",
    "NOTHING",
    "Expr",
    "Head",
    "Leaf",
    "Literal",
    "Symbol",
    "Text",
    "literal",
    "mark",
    "repeat",
    "seq",
    "symbol",
    "text",
]

INFINITE = 1 << 60  # the length of what never ends; also "no upper bound"

Head: TypeAlias = "tuple[tuple[Tag, ...], Leaf | None, Expr]"


class Expr:
    """Base of all expressions. Compare with `is`."""

    __slots__ = ("__weakref__", "_asked", "_begins", "_heads", "_peak", "_shortest", "derived")

    _heads: tuple[Head, ...] | None
    _begins: tuple[int, tuple[Expr, ...]] | None  # see bound.py
    _asked: int  # see free.py
    _shortest: int
    _peak: int  # see depth.py
    derived: dict[int, Any] | None  # symbol -> readings; see derivative.py
    gives: int = 0  # bits of the placeholders that it gives a meaning to in what follows it in a row
    binding: bool = False  # whether it is a `bound.Bound` or a choice that has one
    joins: ClassVar[bool] = False  # whether it is made of expressions and nothing else

    # Containers that are open here: closing tags in the spine, on the way that has most of them and on that which has
    # fewest. They differ only where a text is read in two ways, as a container and as mere text.
    nesting: int = 0
    nesting_least: int = 0

    def heads(self) -> tuple[Head, ...]:
        """The ordered ways to begin, computed once."""
        heads = self._heads
        if heads is None:
            heads = self._heads = self._find_heads()
        return heads

    def _find_heads(self) -> tuple[Head, ...]:
        raise NotImplementedError

    @property
    def shortest(self) -> int:
        """Fewest symbols to an end; `INFINITE` if there is none."""
        if self._shortest < 0:
            _measure(self)
        return self._shortest

    def follow(self, tail: Expr) -> Expr:
        """What `tail` is once this expression has ended before it: the third part of an empty path has this say."""
        return tail

    def parts(self) -> tuple[Expr, ...]:
        """The expressions that `shortest` and `climb` are made from."""
        return ()

    def ask(self, of: Callable[[Expr], int]) -> int:
        """The bits of the placeholders in it that it gives no meaning to; `of` gives those of a part."""
        bits = 0
        for part in self.parts():
            bits |= of(part)
        return bits

    def climb(self, of: Callable[[Expr], int]) -> int:
        """The fewest containers that are open at once on some way to the end; `of` gives that of a part."""
        return 0

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        """The shortest completion: `of` gives that of a part, `spell` the cost of fixed bytes."""
        raise NotImplementedError


def _measure(root: Expr) -> None:
    """Fill in `shortest` bottom up with a stack of our own: an expression may be thousands of parts long."""
    stack = [root]
    while stack:
        top = stack[-1]
        if top._shortest >= 0:
            stack.pop()
            continue
        missing = [part for part in top.parts() if part._shortest < 0]
        if missing:
            stack.extend(missing)
        else:
            top._shortest = min(top.measure(_known, len), INFINITE)
            stack.pop()


def _known(expr: Expr) -> int:
    return expr._shortest


class Leaf(Expr):
    """An expression that reads one symbol and becomes another: all that moves the automaton forward."""

    __slots__ = ()

    first: int  # the symbols that can be read, as bits

    def after(self, sym: int) -> Expr:
        """What is left after reading `sym`, which must be in `first`."""
        raise NotImplementedError

    def _find_heads(self) -> tuple[Head, ...]:
        return (((), self, EMPTY),)


class Empty(Expr):
    """The empty text."""

    __slots__ = ()

    def _find_heads(self) -> tuple[Head, ...]:
        return (((), None, self),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0


class Nothing(Expr):
    """No text at all: the dead state."""

    __slots__ = ()

    def _find_heads(self) -> tuple[Head, ...]:
        return ()

    def climb(self, of: Callable[[Expr], int]) -> int:
        return INFINITE

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return INFINITE


EMPTY: Expr = intern(Empty)
NOTHING: Expr = intern(Nothing)


class Literal(Leaf):
    """A fixed, non-empty string of bytes."""

    __slots__ = ("data", "first")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.first = 1 << data[0]

    def after(self, sym: int) -> Expr:
        return self.rest(1)

    def rest(self, width: int) -> Expr:
        """What is left after so many bytes."""
        return literal(self.data[width:])

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return spell(self.data)

    def __repr__(self) -> str:
        return repr(self.data.decode("utf-8", "backslashreplace"))


def literal(data: bytes) -> Expr:
    found: Expr = intern(Literal, data) if data else EMPTY
    return found


class Symbol(Leaf):
    """One marker, a whole symbol."""

    __slots__ = ("first", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.first = 1 << number

    def after(self, sym: int) -> Expr:
        return EMPTY

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 1

    def __repr__(self) -> str:
        return f"#{self.number}"


def symbol(number: int) -> Expr:
    found: Expr = intern(Symbol, number)
    return found


class Text(Leaf):
    """The language of a byte automaton from one of its states on.

    `symbols` are markers that may stand in the text as well (only when parsing); after one, the automaton is at its
    start again. The empty path comes first: text yields.
    """

    __slots__ = ("dfa", "first", "state", "symbols")

    def __init__(self, dfa: Dfa, state: int, symbols: int) -> None:
        self.dfa, self.state, self.symbols = dfa, state, symbols
        self.first = dfa.first[state] | symbols

    def after(self, sym: int) -> Expr:
        state = self.dfa.rows[self.state][sym] if sym < 256 else self.dfa.start
        found: Expr = intern(Text, self.dfa, state, self.symbols)
        return found

    def _find_heads(self) -> tuple[Head, ...]:
        heads: list[Head] = []
        if self.dfa.accept[self.state]:
            heads.append(((), None, EMPTY))
        if self.first:
            heads.append(((), self, EMPTY))
        return tuple(heads)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.dfa.shortest[self.state]

    def __repr__(self) -> str:
        return f"text[{self.dfa.key.hex()[:4]}:{self.state}]"


def text(dfa: Dfa, state: int | None = None, symbols: int = 0) -> Expr:
    """The automaton's language; `NOTHING` if it is empty."""
    at = dfa.start if state is None else state
    if at == 0:
        return NOTHING
    if not dfa.first[at] and not symbols:
        return EMPTY
    found: Expr = intern(Text, dfa, at, symbols)
    return found


class Mark(Expr):
    """A tag: zero width."""

    __slots__ = ("nesting", "nesting_least", "tag")

    def __init__(self, tag: Tag) -> None:
        self.tag = tag
        self.nesting = self.nesting_least = int(tag in _NESTING)

    def _find_heads(self) -> tuple[Head, ...]:
        return ((() if self.tag is LEVEL else (self.tag,), None, EMPTY),)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def climb(self, of: Callable[[Expr], int]) -> int:
        return self.nesting

    def __repr__(self) -> str:
        return f"<{self.tag!r}>"


def mark(tag: Tag) -> Expr:
    found: Expr = intern(Mark, tag)
    return found


_NESTING = frozenset({close_tag("object"), close_tag("array"), LEVEL})


class Seq(Expr):
    """`head`, then `tail`."""

    __slots__ = ("head", "nesting", "nesting_least", "tail")

    joins = True

    def __init__(self, head: Expr, tail: Expr) -> None:
        self.head, self.tail = head, tail
        here = head.nesting if isinstance(head, Mark) else 0
        self.nesting, self.nesting_least = tail.nesting + here, tail.nesting_least + here

    def parts(self) -> tuple[Expr, ...]:
        return (self.head, self.tail)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return of(self.head) + of(self.tail)

    def ask(self, of: Callable[[Expr], int]) -> int:
        return of(self.head) | (of(self.tail) & ~self.head.gives)

    def climb(self, of: Callable[[Expr], int]) -> int:
        return max(of(self.head) + self.tail.nesting_least, of(self.tail))

    def _find_heads(self) -> tuple[Head, ...]:
        if isinstance(self.head, Literal):  # most of them
            return (((), self.head, self.tail),)
        # Walk down to the first part that is not nullable, then build upwards: long runs of optional parts do not
        # recurse.
        spine: list[Seq] = []
        at: Expr = self
        while isinstance(at, Seq) and at._heads is None:
            spine.append(at)
            if all(leaf is not None for _, leaf, _ in at.head.heads()):
                break
            at = at.tail
        for node in reversed(spine):
            node._heads = _joined(node.head, node.tail)
        heads = self._heads
        assert heads is not None
        return heads

    def __repr__(self) -> str:
        return f"{self.head!r} {self.tail!r}"


def _joined(head: Expr, tail: Expr) -> tuple[Head, ...]:
    out: dict[Head, None] = {}  # ordered set: of two equal heads the first is kept
    for tags, leaf, rest in head.heads():
        if leaf is not None:
            out.setdefault((tags, leaf, seq(rest, tail)))
            continue
        for more, inner, after in rest.follow(tail).heads():
            if inner is None and after is EMPTY:
                after = rest  # an ending that decides what may follow keeps its say over what stands further out
            out.setdefault((tags + more, inner, after))
    return tuple(out)


def seq(*parts: Expr) -> Expr:
    """The parts one after the other."""
    result = EMPTY
    for part in reversed(parts):
        if part is EMPTY:
            continue
        if part is NOTHING or result is NOTHING:
            return NOTHING
        if result is EMPTY:
            result = part
        elif isinstance(part, Seq):
            spine = []
            at: Expr = part
            while isinstance(at, Seq):
                spine.append(at.head)
                at = at.tail
            spine.append(at)
            for head in reversed(spine):
                result = intern(Seq, head, result)
        else:
            result = intern(Seq, part, result)
    return result


class Repeat(Expr):
    """`low` to `high` times the body; `high` may be `INFINITE`."""

    __slots__ = ("body", "high", "low")

    def __init__(self, body: Expr, low: int, high: int) -> None:
        self.body, self.low, self.high = body, low, high

    def parts(self) -> tuple[Expr, ...]:
        return (self.body,)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return self.low * of(self.body) if self.low else 0

    def climb(self, of: Callable[[Expr], int]) -> int:
        return of(self.body) if self.low else 0

    def _find_heads(self) -> tuple[Head, ...]:
        again = repeat(self.body, max(0, self.low - 1), self.high if self.high >= INFINITE else self.high - 1)
        inner = self.body.heads()
        heads: list[Head] = [(tags, leaf, seq(rest, again)) for tags, leaf, rest in inner if leaf is not None]
        if self.low == 0 or any(leaf is None for _, leaf, _ in inner):
            heads.append(((), None, EMPTY))
        return tuple(heads)

    def __repr__(self) -> str:
        return f"({self.body!r}){{{self.low},{self.high if self.high < INFINITE else ''}}}"


def repeat(body: Expr, low: int = 0, high: int = INFINITE) -> Expr:
    if high < low:
        return NOTHING
    if body is NOTHING:
        return EMPTY if low == 0 else NOTHING
    if high == 0 or body is EMPTY:
        return EMPTY
    if low == 1 and high == 1:
        return body
    found: Expr = intern(Repeat, body, low, high)
    return found
