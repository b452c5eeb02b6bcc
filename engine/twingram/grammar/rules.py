"""The checked form of a grammar file: rules, terminals and directives as plain frozen values.

In: nothing; these are the nodes. Out: what `source.py` builds, `check.py` examines and `compile.py` turns into
expressions. Nodes print themselves in the notation of the file, which is what error messages and reports show.
Invariant: a `Grammar` that left `source.load` names only rules and terminals that it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..errors import GrammarError

__all__ = [
    "CLOSED_RULES",
    "COMMIT_RULE",
    "END_RULE",
    "ROLES",
    "TEXT_ROLES",
    "Branch",
    "Choice",
    "Condition",
    "Grammar",
    "Group",
    "Literal",
    "Loop",
    "Node",
    "Place",
    "Recover",
    "Rule",
    "Same",
    "Start",
    "Terminal",
    "Use",
    "literals_in",
]

ROLES = frozenset(
    {
        *("reasoning", "content", "dropped", "silent", "padding", "error"),
        *("tool_call", "tool_name", "arguments", "object", "member", "key", "array"),
        *("string", "number", "true", "false", "null", "bare"),
    }
)
TEXT_ROLES = frozenset({"reasoning", "content", "dropped"})  # the tags stand around the text region alone
COMMIT_RULE = "_commit"
END_RULE = "_end"
CLOSED_RULES = {"_closed": "tool_call", "_closed_object": "object"}  # the role that is closed


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a grammar file, from 1."""

    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    text: str
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return '"' + self.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@dataclass(frozen=True, slots=True)
class Use:
    """A rule or a terminal by name."""

    name: str
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Group:
    """Parts in a row."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative; `role` renames the rule that holds it."""

    node: Node
    role: str | None = None

    def __str__(self) -> str:
        return f"{self.node} -> {self.role}" if self.role else str(self.node)


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Branch, ...]

    def __str__(self) -> str:
        return "(" + " | ".join(map(str, self.branches)) + ")"


@dataclass(frozen=True, slots=True)
class Loop:
    """`low` to `high` times; `high` None is without end."""

    node: Node
    low: int
    high: int | None

    def __str__(self) -> str:
        known = {(0, 1): "?", (0, None): "*", (1, None): "+"}
        return f"({self.node}){known.get((self.low, self.high), f'~{self.low}..{self.high}')}"


@dataclass(frozen=True, slots=True)
class Same:
    """The text that rule `name` has read before, once more."""

    name: str
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f"_same{{{self.name}}}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Rule `name`, but only what the tools declare; `of_text`: a key whose value may be a string."""

    name: str
    of_text: bool = False
    place: Place = field(default=Place(), compare=False)

    def __str__(self) -> str:
        return f"_declared{'_text' * self.of_text}{{{self.name}}}"


Node: TypeAlias = "Literal | Use | Group | Choice | Loop | Same | Condition"


@dataclass(frozen=True, slots=True)
class Rule:
    """`role` is the last part of the (perhaps imported) name, or the alias of all its alternatives; `space` the file it
    came from, "" for the main one."""

    name: str
    choice: Choice
    priority: int = 0
    place: Place = field(default=Place(), compare=False)
    alias: str | None = None

    @classmethod
    def of(cls, name: str, choice: Choice, priority: int, place: Place) -> Rule:
        """A rule whose alternatives all stand for one role is a rule of that role."""
        roles = {branch.role for branch in choice.branches}
        alias = next(iter(roles))
        if len(roles) > 1 or alias not in ROLES or name.rpartition("__")[2] in ROLES:
            return cls(name, choice, priority, place)
        return cls(name, Choice(tuple(Branch(branch.node) for branch in choice.branches)), priority, place, alias)

    @property
    def space(self) -> str:
        return self.name.rpartition("__")[0]

    @property
    def role(self) -> str | None:
        last = self.name.rpartition("__")[2]
        return last if last in ROLES else self.alias

    @property
    def parsed_only(self) -> bool:
        return self.priority < 0

    @property
    def on_request(self) -> bool:
        """Parsed only when salvage is asked for."""
        return self.priority < -1

    def __str__(self) -> str:
        alias = "" if self.alias is None else f" -> {self.alias}"
        return f"{self.name}: {' | '.join(f'{branch}{alias}' for branch in self.choice.branches)}"


@dataclass(frozen=True, slots=True)
class Terminal:
    """`node` has `Literal`s and `Pattern`s as leaves; most terminals are one pattern."""

    name: str
    pieces: tuple[tuple[tuple[str, str, str], ...], ...]  # alternatives of (kind "str"|"re", text, flags)
    place: Place = field(default=Place(), compare=False)

    @property
    def space(self) -> str:
        return self.name.rpartition("__")[0]

    @property
    def pattern(self) -> tuple[str, str] | None:
        """(regular expression, flags) if the terminal is just one."""
        if len(self.pieces) == 1 and len(self.pieces[0]) == 1 and self.pieces[0][0][0] == "re":
            return self.pieces[0][0][1], self.pieces[0][0][2]
        return None


@dataclass(frozen=True, slots=True)
class Start:
    """A start rule; `after` is what the prompt ends with when generation begins there, "" for the default."""

    rule: str
    after: str = ""


@dataclass(frozen=True, slots=True)
class Recover:
    """What to do when every reading inside `role` is dead: its text is an error up to a sync point, then `then`."""

    role: str
    until: tuple[tuple[str, bool], ...]  # (literal, consumed)
    then: str


@dataclass(frozen=True, slots=True)
class Grammar:
    """One format, complete. Immutable; compiled forms hang on it by identity."""

    name: str
    version: int
    file: str
    source: str
    rules: Mapping[str, Rule]
    terminals: Mapping[str, Terminal]
    starts: tuple[Start, ...]
    markers: tuple[str, ...]
    stops: tuple[str, ...]
    stops_after_call: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()
    casts: str = "quoted"
    escapes: Mapping[str, str] = field(default_factory=dict)  # space -> table of spelt characters
    recovers: tuple[Recover, ...] = ()
    recorded: frozenset[str] = frozenset()  # the rules whose text is wanted again
    conditions: frozenset[str] = frozenset()  # the rules that stand in conditions on what the tools declare
    answer: str = ""  # the rule of values that spells an answer which has to follow a schema

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def literals(self) -> frozenset[str]:
        """The texts that stand in rules between quotes, cut at the markers in them."""
        texts = {text for rule in self.rules.values() for text in literals_in(rule.choice)}
        return frozenset(piece for text in texts for piece in self.pieces(text))

    def fault(self, rule: Rule | Terminal, message: str, hint: str) -> GrammarError:
        """The error that shows where a rule stands."""
        line, column = rule.place.line, rule.place.column
        if rule.space:
            return GrammarError(message, file=self.file, line=line, column=column, hint=hint)
        if line is None:  # a rule of names alone: the reader of the notation gives no places
            begin = re.search(rf"^[?!]*{re.escape(rule.name)}\b", self.source, re.MULTILINE)
            line, column = (self.source.count("\n", 0, begin.start()) + 1, 1) if begin else (None, None)
        return GrammarError(message, file=self.file, source=self.source, line=line, column=column, hint=hint)

    def pieces(self, text: str) -> tuple[str, ...]:
        """A text cut at the markers in it, as a tokenizer cuts it: of several that begin at one place the longest."""
        if text in self.markers or not self.markers:
            return (text,)
        cut = "|".join(map(re.escape, sorted(self.markers, key=len, reverse=True)))
        return tuple(piece for piece in re.split(f"({cut})", text) if piece)


def literals_in(node: Node) -> Iterator[str]:
    match node:
        case Literal(text=text):
            yield text
        case Group(parts=parts):
            for part in parts:
                yield from literals_in(part)
        case Choice(branches=branches):
            for branch in branches:
                yield from literals_in(branch.node)
        case Loop(node=inner):
            yield from literals_in(inner)
