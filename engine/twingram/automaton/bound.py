"""Placeholders and what they stand for: an expression beside the meaning of its names, put together when it is read.

In: expressions that hold `same` placeholders, and an `Env` that says what each of them stands for. Out: `Bound`, which
reads what the expression would with those in their places. Nothing is rebuilt: what the expression becomes is worked
out without the meaning, once for all of them, and only where a placeholder comes first is its meaning looked up.

Invariants: an inner meaning goes before an outer one; a placeholder without a meaning reads nothing; a `Bound` holds no
other at its front, and neighbours in a choice that have the same meaning are one.
Cost: a derivative that was worked out under another meaning costs one small object.

Source: M. Abadi, L. Cardelli, P.-L. Curien, J.-J. Lévy, "Explicit Substitutions" (1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from threading import RLock
from weakref import WeakValueDictionary

from .choice import Alt, alt
from .expression import EMPTY, NOTHING, Expr, Head, Leaf, seq
from .free import asked
from .interning import intern
from .tags import Tag

__all__ = [
    "Bound", "Env", "Same", "Under", "begins", "bits_of", "bound", "either", "end_of", "env_of", "first_of", "same",
]  # fmt: skip


class Same(Leaf):
    """Stands for something that has the name `name`; reads nothing by itself."""

    __slots__ = ("bit", "first", "gives", "name")

    def __init__(self, name: str, gives: int) -> None:
        self.name, self.first, self.gives = name, 0, gives
        self.bit = _BITS.setdefault(name, 1 << next(_NUMBERS))

    def ask(self, of: Callable[[Expr], int]) -> int:
        return self.bit

    def after(self, sym: int) -> Expr:
        return NOTHING

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 1

    def __repr__(self) -> str:
        return f"same[{self.name}]"


_BITS: dict[str, int] = {}  # a few for each grammar
_NUMBERS = count()


def same(name: str, gives: Iterable[Same] = ()) -> Same:
    """`gives`: to what its meaning gives a meaning in turn, if it does."""
    found: Same = intern(Same, name, bits_of(gives))
    return found


def bits_of(places: Iterable[Expr]) -> int:
    return sum({place.bit for place in places if isinstance(place, Same)})


class Env:
    """What placeholders stand for. Equal ones are one object while it is in use."""

    __slots__ = ("__weakref__", "_limited", "bits", "places")

    def __init__(self, places: Mapping[Expr, Expr]) -> None:
        self.places, self.bits = places, bits_of(places)
        self._limited: dict[int, Env] = {}

    @classmethod
    def of(cls, places: Mapping[Expr, Expr]) -> Env:
        key = frozenset((id(place), id(stands)) for place, stands in places.items())  # it holds them: see `intern`
        with _LOCK:
            found = _ENVS.get(key)
            if found is None:
                found = _ENVS[key] = cls(dict(places))
        return found

    def inside(self, inner: Env) -> Env:
        """The meaning in a part that has one of its own."""
        return inner if inner is self else Env.of({**self.places, **inner.places})

    def limited(self, bits: int) -> Env:
        """The meaning of some placeholders only."""
        found = self._limited.get(bits)
        if found is None:
            found = Env.of({place: stands for place, stands in self.places.items() if bits_of((place,)) & bits})
            self._limited[bits] = found
        return found


_ENVS: WeakValueDictionary[frozenset[tuple[int, int]], Env] = WeakValueDictionary()
_LOCK = RLock()  # a collection may drop one while it is held


class Bound(Expr):
    """`base`, in which placeholders stand for what `env` says."""

    __slots__ = ("base", "env", "nesting", "nesting_least")

    binding = True

    def __init__(self, base: Expr, env: Env) -> None:
        self.base, self.env = base, env
        self.nesting, self.nesting_least = base.nesting, base.nesting_least

    def parts(self) -> tuple[Expr, ...]:
        return (self.base,)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return of(self.base)

    def climb(self, of: Callable[[Expr], int]) -> int:
        return of(self.base)

    def ask(self, of: Callable[[Expr], int]) -> int:
        return of(self.base) & ~self.env.bits

    def meanings(self) -> Iterable[tuple[tuple[Tag, ...], Leaf | None, Expr, bool]]:
        """The heads of the base with placeholders replaced, tails as they are in the base; whether one has no meaning
        here."""
        for tags, leaf, tail in self.base.heads():
            if not isinstance(leaf, Same):
                yield tags, leaf, tail, False
                continue
            stands = self.env.places.get(leaf)
            if stands is None:
                yield tags, leaf, tail, True
            else:
                for more, inner, rest in stands.heads():
                    yield tags + more, inner, seq(rest, tail), False

    def _find_heads(self) -> tuple[Head, ...]:
        out: list[Head] = []
        for tags, leaf, tail, unknown in self.meanings():
            if leaf is None:
                out.append((tags, None, tail))
            elif unknown:
                out.append((tags, leaf, bound(tail, self.env)))
            else:
                out.append((tags, intern(Under, leaf, tail, self.env), EMPTY))
        return tuple(dict.fromkeys(out))

    def __repr__(self) -> str:
        return f"[{self.base!r}]"


class Under(Leaf):
    """A leaf of a `Bound`, and what follows it there."""

    __slots__ = ("env", "first", "leaf", "tail")

    def __init__(self, leaf: Leaf, tail: Expr, env: Env) -> None:
        self.leaf, self.tail, self.env, self.first = leaf, tail, env, leaf.first

    def after(self, sym: int) -> Expr:
        return bound(seq(self.leaf.after(sym), self.tail), self.env)

    def parts(self) -> tuple[Expr, ...]:
        return (self.leaf, self.tail)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return of(self.leaf) + of(self.tail)

    def ask(self, of: Callable[[Expr], int]) -> int:
        return (of(self.leaf) | of(self.tail)) & ~self.env.bits

    def __repr__(self) -> str:
        return repr(self.leaf)


def bound(expr: Expr, env: Env) -> Expr:
    """`expr` with the meaning that `env` gives to its placeholders."""
    if expr is EMPTY or expr is NOTHING:
        return expr
    base = expr
    if isinstance(expr, Bound):
        base, env = expr.base, env.inside(expr.env)
    elif isinstance(expr, Alt) and expr.binding:
        return either(bound(item, env) for item in expr.items)
    bits = asked(base)
    if env.bits & ~bits:  # what is not asked for makes no difference, and must make none
        if not env.bits & bits:
            return base
        env = env.limited(env.bits & bits)
    found: Expr = intern(Bound, base, env)
    return found


def either(items: Iterable[Expr]) -> Expr:
    """As `alt`; neighbours with the same meaning are put together."""
    out: list[Expr] = []
    for given in items:
        for item in given.items if isinstance(given, Alt) and given.binding else (given,):
            last = out[-1] if out else None
            if isinstance(item, Bound) and isinstance(last, Bound) and item.env is last.env:
                out[-1] = bound(alt((last.base, item.base)), last.env)
            else:
                out.append(item)
    return alt(out)


def begins(expr: Expr) -> tuple[int, tuple[Expr, ...]]:
    """The symbols that the heads read, as bits, and the placeholders among them. Kept at the expression."""
    found = expr._begins
    if found is None:
        leaves = [leaf for _, leaf, _ in expr.heads() if leaf is not None]
        first = 0
        for leaf in leaves:
            first |= leaf.first
        found = expr._begins = first, tuple(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Same)))
    return found


def first_of(expr: Expr) -> int:
    """The symbols that can be read, as bits."""
    first = 0
    if isinstance(expr, Bound):
        first, places = begins(expr.base)
        for place in places:
            stands = expr.env.places.get(place)
            first |= 0 if stands is None else begins(stands)[0]
    elif isinstance(expr, Alt) and expr.binding:
        for item in expr.items:
            first |= first_of(item)
    else:
        for _, leaf, _ in expr.heads():
            if leaf is not None:
                first |= leaf.first
    return first


def end_of(expr: Expr) -> tuple[Tag, ...] | None:
    """The tags that an end here fires; None where it cannot end. A placeholder stands for no empty text."""
    if isinstance(expr, Alt) and expr.binding:
        return next((tags for tags in map(end_of, expr.items) if tags is not None), None)
    heads = expr.base.heads() if isinstance(expr, Bound) else expr.heads()
    return next((tags for tags, leaf, _ in heads if leaf is None), None)


def env_of(expr: Expr) -> Env | None:
    """What placeholders stand for in an expression, the first one's where it is a choice."""
    if isinstance(expr, Alt) and expr.binding:
        return next((env for env in map(env_of, expr.items) if env is not None), None)
    return expr.env if isinstance(expr, Bound) else None
