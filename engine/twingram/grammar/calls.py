"""Calls: where a format's calls say their name and their arguments, and how the arguments are spelt.

In: a grammar, or a mask `Compiler` of it. Out: the rule of the arguments and its spelling, the terminal of names; or a
`GrammarError` for calls that no mask could write: arguments before the name, twice or not at all, names with something
around them, objects and values that cannot be taken apart.

Only canonical rules count. A mask puts a tool's name in the place of the role and what its schema allows in the place
of the arguments, so that both stand in a call exactly where the rules have them.
Cost: two milliseconds a grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .alphabet import Alphabet
from .canonical import canonical, canonical_rules, value_roles
from .compile import Compiler, Reading, names_in
from .rules import Choice, Condition, Grammar, Group, Loop, Node, Rule, Use
from .spelling import ObjectShape, Spelling

__all__ = ["arguments_of", "check_calls", "name_terminal"]

_WAYS = 64  # orders of names and arguments in one call that are looked at
_ROLES = "see docs/grammars.md for the roles of a call"
_FAULTS = (  # what is wrong with an order of names (n) and arguments (o), and what to do
    (r"[^n]*", "a tool_call holds no tool_name", _ROLES),
    (r"on.*", "the arguments of a call stand before its name", "a call can only begin once its name is known"),
    (r"n+", "a tool_call may leave out its object", "read what lacks it by a rule of negative priority"),
    (r".*", "a call holds its arguments twice", "write one rule of each form, with its own priority"),
)  # fmt: skip


def arguments_of(compiler: Compiler) -> tuple[Spelling, ObjectShape] | None:
    """How arguments are spelt: the object rule that stands in the rule of a call."""
    grammar = compiler.grammar
    call = next(_calls(grammar), None)
    found = None if call is None else _arguments(call, grammar)
    if found is None:
        return None
    value = _value_rule(found, grammar)
    return Spelling(compiler, value), Spelling.plain(compiler, value).object_of(found)


def name_terminal(grammar: Grammar) -> str:
    """The terminal of tools' names."""
    generated = canonical_rules(grammar)
    rule = next(rule for rule in grammar.rules.values() if rule.role == "tool_name" and rule.name in generated)
    node = canonical(rule.choice, grammar)
    assert isinstance(node, Use), "a grammar is checked before masks are made of it"
    return node.name


def check_calls(grammar: Grammar) -> None:
    """Raise `GrammarError` where calls could be read and never be written."""
    for rule in _calls(grammar):
        orders = _orders(canonical(rule.choice, grammar), grammar, ())
        if all(re.fullmatch("n+", order) for order in orders):
            raise grammar.fault(rule, "a tool_call holds no object", _ROLES)
        for order in sorted(orders):
            if not re.fullmatch("n+on*", order):
                message, hint = next((said, hint) for form, said, hint in _FAULTS if re.fullmatch(form, order))
                raise grammar.fault(rule, message, hint)
    for rule in _generated(grammar, "tool_name"):
        node = canonical(rule.choice, grammar)
        if not isinstance(node, Use) or node.name not in grammar.terminals:
            raise grammar.fault(
                rule, f"a tool's name is one terminal, but {rule.name!r} is: {rule}",
                "tool_name: NAME, and what stands around the name in the rule of the call",
            )
    call = next(_calls(grammar), None)
    arguments = None if call is None else _arguments(call, grammar)
    if arguments is not None and _members(arguments, grammar):  # without any it is a format that is only read
        found = arguments_of(Compiler(grammar, Alphabet.of(grammar.markers), Reading.MASK))
        if found is not None:
            _take_apart(found[0], set())


def _take_apart(spelling: Spelling, done: set[str]) -> None:
    """Whatever a schema may ask for is looked at once."""
    if spelling.rule in done:
        return
    done.add(spelling.rule)
    types = spelling.types
    _ = spelling.string if "string" in types else None
    _ = spelling.number if "number" in types else None
    if "object" in types:
        _take_apart(spelling.object.value, done)
    if "array" in types:
        _take_apart(spelling.array.item, done)


def _calls(grammar: Grammar) -> Iterator[Rule]:
    return _generated(grammar, "tool_call")


def _generated(grammar: Grammar, role: str) -> Iterator[Rule]:
    generated = canonical_rules(grammar)
    return (rule for rule in grammar.rules.values() if rule.role == role and rule.name in generated)


def _orders(node: Node | None, grammar: Grammar, above: tuple[str, ...]) -> set[str]:
    """In which orders names (n) and arguments (o) may stand in a part of a call."""
    found = {""}
    match node:
        case Use(name=name) | Condition(name=name) if name in grammar.rules:
            rule = grammar.rules[name]
            if rule.role in ("tool_name", "object"):
                return {"n" if rule.role == "tool_name" else "o"}
            if name not in above:
                return _orders(canonical(rule.choice, grammar), grammar, (*above, name))
        case Group(parts=parts):
            for part in parts:
                more = _orders(part, grammar, above)
                found = set(sorted(one + other for one in found for other in more)[:_WAYS])
        case Choice(branches=branches):
            return {order for branch in branches for order in _orders(branch.node, grammar, above)}
        case Loop(node=inner, low=low, high=high):
            once = _orders(inner, grammar, above)
            twice = {order + order for order in once} if high != 1 else set[str]()
            return once | twice | ({""} if low == 0 else set())
    return found


def _arguments(call: Rule, grammar: Grammar) -> str | None:
    names = [use.name for branch in call.choice.branches for use in names_in(branch.node)]
    return next((found for name in names if (found := _object_below(name, grammar)) is not None), None)


def _object_below(name: str, grammar: Grammar) -> str | None:
    rule = grammar.rules.get(name)
    if rule is None or rule.parsed_only:
        return None
    if rule.role == "object":
        return name
    if rule.role in ("arguments", None):  # a rule without a role is as good as what it stands for
        below = [use.name for branch in rule.choice.branches for use in names_in(branch.node)]
        return next((found for inner in below if (found := _object_below(inner, grammar)) is not None), None)
    return None


def _members(object_rule: str, grammar: Grammar) -> list[Rule]:
    rules = grammar.rules
    below = [use.name for branch in rules[object_rule].choice.branches for use in names_in(branch.node)]
    found = [rules[name] for name in below if name in rules and rules[name].role == "member"]
    return [rule for rule in found if not rule.parsed_only]


def _value_rule(object_rule: str, grammar: Grammar) -> str:
    members = _members(object_rule, grammar)
    names = [use.name for rule in members for branch in rule.choice.branches for use in names_in(branch.node)]
    found = next((name for name in names if value_roles(name, grammar)), None)
    if found is None:
        rule = (members or [grammar.rules[object_rule]])[0]
        raise grammar.fault(
            rule, f"no member with a value stands in the arguments of a call: {rule}",
            'object: "{" [member ("," member)*] "}", and member: key ":" value',
        )
    return found
