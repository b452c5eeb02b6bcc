"""Shapes to pieces: the values that a schema accepts and a format can write.

In: the parameters of a tool and a format's spelling. Out: pieces for the matcher. Invariant: what nothing satisfies (a
range without a number, a required member that needs itself) is found by a least fixed point and never becomes a piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from .matcher import Choice, Later, Piece, Word
from .numerals import Numeral
from .patterns import pattern
from .request import Request, Unsupported
from .shapes import Document, Node, Schema, Shape
from .text import TextRule

__all__ = ["Node", "Shape", "Spelling", "Values"]


class Spelling(ABC):
    """How a format writes JSON. A level is where a value stands: "root" (the arguments), "top" (a value directly in
    them) or "inner"."""

    @abstractmethod
    def text(self, level: str, rule: TextRule, others: frozenset[str]) -> Sequence[Piece] | None:
        """A string under a rule; `others` are the other types that the place admits."""

    @abstractmethod
    def string(self, level: str, value: str, others: frozenset[str]) -> Sequence[Piece] | None:
        """One string."""

    @abstractmethod
    def word(self, value: bool | None) -> str: ...

    @abstractmethod
    def array(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]:
        """What opens, separates and closes."""

    @abstractmethod
    def object(self, level: str) -> tuple[Sequence[Piece], Sequence[Piece], Sequence[Piece]]: ...

    @abstractmethod
    def key(self, level: str, name: str) -> Sequence[Piece] | None:
        """A key and what stands between it and its value; None if the key cannot be written."""

    @abstractmethod
    def free_key(self, level: str, others: frozenset[str]) -> Sequence[Piece]: ...

    @abstractmethod
    def member_end(self, level: str) -> Sequence[Piece]: ...


class Values:
    """The values of one document in one spelling."""

    def __init__(self, document: Schema, spelling: Spelling, request: Request, level: str = "root") -> None:
        self.level = level
        self.spelling, self.request = spelling, request
        self._pieces: dict[tuple[Node, str], Piece] = {}
        self._productive: dict[tuple[Node, str], bool] = {}
        self._scalars: dict[tuple[int, str], Sequence[Piece] | None] = {}
        self.root = Document(document, request).node(document)
        self._find_productive()

    # Satisfiable?

    def _find_productive(self) -> None:
        """The least fixed point: what can be finished without needing itself."""
        reached = self._reached()
        self._productive = dict.fromkeys(reached, False)
        changed = True
        while changed:
            changed = False
            for place in reached:
                if not self._productive[place] and any(self._finishes(shape, place) for shape in place[0].shapes):
                    self._productive[place] = changed = True

    def _reached(self) -> list[tuple[Node, str]]:
        todo, seen = [(self.root, self.level)], {(self.root, self.level)}
        for node, level in todo:
            for shape in node.shapes:
                children = [*shape.items, *shape.members.values()]
                children += [child for child in (shape.rest, shape.free) if child is not None]
                for place in [(child, below(level)) for child in children]:
                    if place not in seen:
                        seen.add(place)
                        todo.append(place)
        return todo

    def _finishes(self, shape: Shape, place: tuple[Node, str]) -> bool:
        if shape.kind == "array":
            enough = shape.most is None or shape.most >= shape.least
            return enough and all(self.productive(self.item(shape, i), place[1]) for i in range(shape.least))
        if shape.kind == "object":
            level = below(place[1])
            fine = (self._productive[shape.members[k], level] and self.writable(k, place[1]) for k in shape.required)
            return all(fine)
        if place[1] == "root":
            return False
        return self.scalar(shape, place) is not None

    def writable(self, key: str, level: str) -> bool:
        return self.spelling.key(level, key) is not None

    def item(self, shape: Shape, index: int) -> Node | None:
        return shape.items[index] if index < len(shape.items) else shape.rest

    def productive(self, node: Node | None, level: str) -> bool:
        return node is not None and self._productive[node, below(level)]

    @property
    def satisfiable(self) -> bool:
        return self._productive[self.root, self.level]

    # Shapes to pieces

    def scalar(self, shape: Shape, place: tuple[Node, str]) -> Sequence[Piece] | None:
        key = (id(shape), place[1])
        if key not in self._scalars:
            self._scalars[key] = self._scalar(shape, place)
        return self._scalars[key]

    def _scalar(self, shape: Shape, place: tuple[Node, str]) -> Sequence[Piece] | None:
        others = frozenset(other.json_type for other in place[0].shapes) - {"string"}
        if any(other.json_type == "string" and other.kind == "string" for other in place[0].shapes):
            others |= {"untyped"} if len(others) >= 5 else frozenset()
        if shape.kind == "literal":
            return self._literal(shape.literal, place[1], others)
        if shape.kind in ("integer", "number"):
            numeral = Numeral(shape.numbers)
            return (numeral,) if numeral.satisfiable() else None
        if shape.kind == "string":
            rule = TextRule(
                least=shape.least,
                most=shape.most,
                machines=tuple((pattern(text), True) for text in shape.patterns),
                escapes=self.request.any_escape,
            )
            return self.spelling.text(place[1], rule, others)
        words = (None,) if shape.kind == "null" else (True, False)
        return (Choice([(Word(tuple(self.spelling.word(word).encode())),) for word in words]),)

    def _literal(self, value: Any, level: str, others: frozenset[str]) -> Sequence[Piece] | None:
        if isinstance(value, str):
            return self.spelling.string(level, value, others)
        if value is None or isinstance(value, bool):
            return (Word(tuple(self.spelling.word(value).encode())),)
        if isinstance(value, int | float):
            return (Word(tuple(repr(value).encode())),)
        raise Unsupported("a container in enum or const")

    def whole(self) -> Piece:
        """The value of the document itself."""
        return self.value(self.root, self.level)

    def value(self, node: Node, level: str) -> Piece:
        if (node, level) not in self._pieces:
            self._pieces[node, level] = Later(lambda: (Choice(self._options(node, level)),))
        return self._pieces[node, level]

    def _options(self, node: Node, level: str) -> Iterator[Sequence[Piece]]:
        for shape in node.shapes:
            if not self._finishes(shape, (node, level)):
                continue
            if shape.kind == "array":
                opener, _, closer = self.spelling.array(level)
                yield (*opener, _Items(self, shape, level, 0), *closer)
            elif shape.kind == "object":
                opener, _, closer = self.spelling.object(level)
                keys = tuple(k for k, child in shape.members.items() if self._productive[child, below(level)])
                keys = tuple(k for k in keys if self.writable(k, level))
                if self.request.key_order == "sorted":
                    keys = tuple(sorted(keys, key=str.lower))
                yield (*opener, _Members(self, shape, level, keys, False), *closer)
            elif (pieces := self.scalar(shape, (node, level))) is not None:
                yield pieces


def below(level: str) -> str:
    return "top" if level == "root" else "inner"


class _Items(Piece):
    """What is left of an array after some items."""

    __slots__ = ("count", "level", "shape", "values")

    def __init__(self, values: Values, shape: Shape, level: str, count: int) -> None:
        self.values, self.shape, self.level = values, shape, level
        limit = max(shape.least, len(shape.items), 1)
        self.count = count if shape.most is not None else min(count, limit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Items) and (self.shape is other.shape, self.count) == (True, other.count)

    def __hash__(self) -> int:
        return hash((id(self.shape), self.count))

    def open(self) -> Iterator[Sequence[Piece]]:
        shape, values = self.shape, self.values
        if self.count >= shape.least:
            yield ()
        item = values.item(shape, self.count)
        if (shape.most is None or self.count < shape.most) and values.productive(item, self.level):
            assert item is not None
            separator = values.spelling.array(self.level)[1] if self.count else ()
            after = _Items(values, shape, self.level, self.count + 1)
            yield (*separator, values.value(item, below(self.level)), after)


class _Members(Piece):
    """What is left of an object after some members: the keys that may still come, in order where there is one."""

    __slots__ = ("keys", "level", "shape", "some", "values")

    def __init__(self, values: Values, shape: Shape, level: str, keys: tuple[str, ...], some: bool) -> None:
        self.values, self.shape, self.level, self.keys, self.some = values, shape, level, keys, some

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Members):
            return False
        return self.shape is other.shape and (self.level, self.keys, self.some) == (other.level, other.keys, other.some)

    def __hash__(self) -> int:
        return hash((id(self.shape), self.keys, self.some))

    def open(self) -> Iterator[Sequence[Piece]]:
        missing = [key for key in self.keys if key in self.shape.required]
        if not missing:
            yield ()
        spelling, level = self.values.spelling, self.level
        separator = spelling.object(level)[1] if self.some else ()
        for index, key in enumerate(self.keys):
            if self.values.request.key_order == "any":
                left = self.keys[:index] + self.keys[index + 1 :]
            elif missing and self.keys.index(missing[0]) < index:
                break
            else:
                left = self.keys[index + 1 :]
            spelt = spelling.key(level, key)
            assert spelt is not None
            yield (*separator, *spelt, *self._tail(self.shape.members[key], left))
        if self.shape.free is not None and self.values.productive(self.shape.free, level):
            key_pieces = spelling.free_key(level, frozenset(self.shape.members))
            yield (*separator, *key_pieces, *self._tail(self.shape.free, self.keys))

    def _tail(self, child: Node, left: tuple[str, ...]) -> Sequence[Piece]:
        after = _Members(self.values, self.shape, self.level, left, True)
        value = self.values.value(child, below(self.level))
        return (value, *self.values.spelling.member_end(self.level), after)
