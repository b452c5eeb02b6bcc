"""The canonical part of rules: what is left when everything that is only parsed is taken out.

In: a node. Out: the node as a generation may write it: parsed-only alternatives are gone, and so are parts that have
become empty. None is a node that cannot be written at all.
Cost: a walk over the node and the rules without a role below it.
"""

from __future__ import annotations

from .compile import names_in
from .rules import CLOSED_RULES, COMMIT_RULE, END_RULE, Branch, Choice, Grammar, Group, Loop, Node, Use

__all__ = ["NO_PARTS", "canonical", "canonical_rules", "value_roles"]

NO_PARTS = Group(())

_VALUES = frozenset({"object", "array", "string", "number", "true", "false", "null"})


def canonical(node: Node, grammar: Grammar, above: tuple[str, ...] = ()) -> Node | None:
    """What a generation may write of `node`. `above`: the rules that are being looked through."""
    match node:
        case Use(name=name):
            return _use(node, name, grammar, above)
        case Group(parts=parts):
            kept = [canonical(part, grammar, above) for part in parts]
            if any(part is None for part in kept):
                return None
            full = [part for part in kept if part is not None and part != NO_PARTS]
            return full[0] if len(full) == 1 else Group(tuple(full))
        case Choice(branches=branches):
            return _choice(branches, grammar, above)
        case Loop(node=inner, low=low, high=high):
            body = canonical(inner, grammar, above)
            if body is None:
                return NO_PARTS if low == 0 else None
            return NO_PARTS if body == NO_PARTS else Loop(body, low, high)
    return node


def _choice(branches: tuple[Branch, ...], grammar: Grammar, above: tuple[str, ...]) -> Node | None:
    kept = []
    for branch in branches:
        node = canonical(branch.node, grammar, above)
        if node is not None:
            kept.append(Branch(node, branch.role))
    if not kept:
        return None
    return kept[0].node if len(kept) == 1 and kept[0].role is None else Choice(tuple(kept))


def _use(node: Use, name: str, grammar: Grammar, above: tuple[str, ...]) -> Node | None:
    rule = grammar.rules.get(name)
    if rule is None:
        return node
    if rule.parsed_only:
        return None
    if name == COMMIT_RULE:
        return NO_PARTS
    if name in (END_RULE, *CLOSED_RULES):
        return None
    if rule.role is None and name.startswith("_") and name not in above:  # as Lark has it: see whether anything is left
        inside = canonical(rule.choice, grammar, (*above, name))
        return inside if inside is None or inside == NO_PARTS else node
    return node


def canonical_rules(grammar: Grammar) -> frozenset[str]:
    """The rules that a generation may lead through."""
    found: set[str] = set()
    todo = [*(start.rule for start in grammar.starts), grammar.answer]
    while todo:
        name = todo.pop()
        rule = grammar.rules.get(name)
        if rule is not None and name not in found and not rule.parsed_only:
            found.add(name)
            nodes = [canonical(branch.node, grammar) for branch in rule.choice.branches]
            todo += [use.name for node in nodes if node is not None for use in names_in(node)]
    return frozenset(found)


def value_roles(name: str, grammar: Grammar) -> dict[str, str]:
    """role -> rule, for a rule that only chooses among values; empty if it does not.

    Of two rules with one role the main file's own wins: raw strings over an imported spelling of strings.
    """
    rule = grammar.rules.get(name)
    if rule is None or rule.parsed_only:
        return {}
    if rule.role in _VALUES:
        return {rule.role: name}
    if rule.role is not None:
        return {}
    found: dict[str, str] = {}
    for branch in rule.choice.branches:
        node = canonical(branch.node, grammar)
        if node is None:
            continue
        below = value_roles(node.name, grammar) if isinstance(node, Use) and branch.role is None else {}
        if not below:
            return {}
        for role, inner in below.items():
            if role not in found or not grammar.rules[inner].space:
                found[role] = inner
    return found
