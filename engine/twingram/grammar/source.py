"""Grammar text -> `Grammar`: Lark reads the notation, directives say the rest.

In: the text of a `.lark` file (its imports are read from beside it or from the grammars that come with the package).
Out: a `Grammar` whose names all resolve. What Lark refuses is reported with its place in the file.
Invariant: rule and terminal names are Lark's own after import (`json__object` for `object` of `json.lark`), so that an
Earley parser made by Lark from the same file speaks of the same rules.
Cost: Lark's loader, about 20 ms a file; loaded grammars are shared.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lark import Token, Tree
from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import UnexpectedInput
from lark.grammar import NonTerminal
from lark.grammar import Terminal as LarkTerminal
from lark.load_grammar import load_grammar

from ..errors import GrammarError
from ..resources import grammar_folder
from .directives import Directive, read_directives, unquoted
from .rules import (
    ROLES,
    Branch,
    Choice,
    Condition,
    Grammar,
    Group,
    Literal,
    Loop,
    Node,
    Place,
    Recover,
    Rule,
    Same,
    Start,
    Terminal,
    Use,
)

__all__ = ["load", "load_file"]

_STATEMENTS = {
    "%ignore": "all text counts: name what may stand between things in the rules",
    "%declare": "a terminal is what it reads: NAME: /pattern/",
}
_UNREAD = re.compile(rf"^[ \t]*({'|'.join(_STATEMENTS)})\b", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ALTERNATIVES = 256  # rows of one terminal
_Piece = tuple[str, str, str]  # see `Terminal`
_WRAPPERS = ("_same", "_declared", "_declared_text")
_BOUNDS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class _Misused(Exception):
    """Notation that Lark reads and that has no meaning here: what is wrong, where, what to write instead."""

    def __init__(self, message: str, place: Place, hint: str = "") -> None:
        self.message, self.place, self.hint = message, place, hint


def load_file(path: str | Path) -> Grammar:
    """Read a grammar file. Raises `GrammarError`."""
    path = Path(path)
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GrammarError(f"cannot read the grammar file: {error}", file=str(path)) from error
    return load(source, str(path))


def load(source: str, file: str = "<grammar>") -> Grammar:
    """Read a grammar from its text; relative imports are looked for beside `file`."""
    if _SURROGATE.search(source):
        message = "half a surrogate pair, which is no character, stands in the text"
        raise GrammarError(message, file=file, hint="read the file as UTF-8")
    try:
        return _load(source, file)
    except _Misused as error:
        raise GrammarError(
            error.message, file=file, source=source, line=error.place.line, column=error.place.column, hint=error.hint
        ) from error
    except RecursionError as error:
        raise GrammarError("the groups of a rule nest too deeply", file=file, hint="give some a rule each") from error


def _load(source: str, file: str) -> Grammar:
    unread = _UNREAD.search(source)
    if unread is not None:
        at = unread.start(1)
        place = Place(source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at))
        raise _Misused(f"{unread[1]} has no meaning here", place, _STATEMENTS[unread[1]])
    folders = [str(Path(file).parent), str(grammar_folder())]
    try:
        read, used = load_grammar(source, file, folders, False)  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        message = "this is not grammar notation here"
        raise GrammarError(message, file=file, source=source, line=error.line, column=error.column) from error
    except (LarkGrammarError, AssertionError, OSError) as error:  # lark asserts that a file is imported in one way
        line, column = _place_in(str(error), source)
        raise GrammarError(str(error).splitlines()[0], file=file, source=source, line=line, column=column) from error
    rules = {}
    for name, params, tree, options in read.rule_defs:
        if params:
            continue  # templates are wrappers, expanded where they are used
        rules[str(name)] = Rule.of(str(name), _choice(tree), options.priority or 0, _first_place(tree))
    terminals = {str(name): _terminal(str(name), tree) for name, (tree, _) in read.term_defs}
    grammar = _assemble(file, source, rules, terminals, _imported_directives(used, file))
    _check_names(grammar)
    return grammar


def _place_in(message: str, source: str) -> tuple[int | None, int | None]:
    """Where a message of Lark's points to: it says so, or it names a rule and what is missing in it."""
    said = re.search(r"line (\d+),? column (\d+)", message)
    if said:
        return int(said.group(1)), int(said.group(2))
    missing = re.search(r"'(\w+)' used but not defined \(in (?:rule|terminal) (\w+)\)", message)
    if missing is None:
        return None, None
    name, rule = missing.groups()
    begin = re.search(rf"^[?!]?{re.escape(rule)}\b", source, re.MULTILINE)
    used = re.compile(rf"\b{re.escape(name)}\b").search(source, begin.end() if begin else 0)
    if used is None:
        return None, None
    return source.count("\n", 0, used.start()) + 1, used.start() - source.rfind("\n", 0, used.start())


def _imported_directives(used: dict[Any, Any], file: str) -> dict[str, list[Directive]]:
    """File stem -> directives, of every imported file."""
    out = {}
    for name in used:
        path = Path(getattr(name, "path", name))
        path = path if path.exists() else grammar_folder() / path
        if path.exists() and path.resolve() != Path(file).resolve():
            out[path.stem] = read_directives(path.read_text(encoding="utf-8"), str(path))
    return out


# -- Lark's trees -> nodes ---------------------------------------------------------------------------------------------


def _choice(tree: Tree[Any]) -> Choice:
    branches = []
    for item in tree.children:
        if item.data == "alias":
            inner, role = item.children
            branches.append(Branch(_sequence(inner), str(getattr(role, "name", role)) if role is not None else None))
        else:
            branches.append(Branch(_sequence(item)))
    return Choice(tuple(branches))


def _sequence(tree: Tree[Any]) -> Node:
    parts = [_node(child) for child in tree.children]
    return parts[0] if len(parts) == 1 else Group(tuple(parts))


def _node(item: Any) -> Node:
    if isinstance(item, (NonTerminal, LarkTerminal)):
        if item.name in _WRAPPERS:
            place = Place(getattr(item.name, "line", None), getattr(item.name, "column", None))
            raise _Misused(f"{item.name} stands alone, and has no meaning then", place, f"{item.name}{{rule}}")
        return Use(str(item.name))
    kind = item.data
    if kind in ("value", "atom"):
        return _node(item.children[0])
    if kind == "literal":
        token, place = item.children[0], _first_place(item)
        if token.type != "STRING":
            raise _Misused(f"the pattern {token} stands in a rule", place, f"give it a name: SOME_TEXT: {token}")
        return Literal(_string(token), place)
    if kind == "maybe":
        return Loop(_plain(_choice(item.children[0])), 0, 1)
    if kind == "expansions":
        return _plain(_choice(item))
    if kind == "expr":
        return _loop(item.children)
    if kind == "template_usage":
        wrapper, inner = str(item.children[0].name), _node(item.children[1])
        if wrapper not in _WRAPPERS or not isinstance(inner, Use):
            hint = f"the wrappers are: {', '.join(f'{name}{{rule}}' for name in _WRAPPERS)}"
            raise _Misused(f"{wrapper}{{...}} has no meaning here", _first_place(item), hint)
        return Same(inner.name) if wrapper == "_same" else Condition(inner.name, wrapper == "_declared_text")
    raise _Misused(f"the construct {kind!r} has no meaning here", _first_place(item))


def _plain(choice: Choice) -> Node:
    only = choice.branches[0]
    return only.node if len(choice.branches) == 1 and only.role is None else choice


def _loop(children: list[Any]) -> Node:
    body, operator = _node(children[0]), str(children[1])
    if operator in _BOUNDS:
        return Loop(body, *_BOUNDS[operator])
    numbers = [int(child) for child in children[2:]]
    return Loop(body, numbers[0], numbers[-1])


def _string(token: Token) -> str:
    if str(token).endswith("i"):
        hint = "write it as a terminal: SOME_TEXT: /(?:[Yy][Ee][Ss])/"
        raise _Misused(f"{token}: strings that ignore case are not supported", Place(token.line, token.column), hint)
    return unquoted(str(token))


def _first_place(tree: Tree[Any]) -> Place:
    for token in tree.scan_values(lambda value: isinstance(value, Token) and value.line is not None):
        return Place(token.line, token.column)
    return Place()


def _terminal(name: str, tree: Tree[Any]) -> Terminal:
    return Terminal(name, tuple(_alternatives(name, tree)), _first_place(tree))


def _alternatives(name: str, tree: Tree[Any]) -> list[tuple[_Piece, ...]]:
    """What a terminal may be: rows of texts and patterns. Other terminals stand in it by what they are."""
    found: list[tuple[_Piece, ...]] = []
    for expansion in tree.children:
        rows: list[tuple[_Piece, ...]] = [()]
        for value in expansion.children:
            inner: Any = value.children[0] if value.data == "value" else value
            ways: list[tuple[_Piece, ...]]
            if inner.data == "literal":
                ways = [(_piece(inner.children[0]),)]
            elif inner.data == "expansions":
                ways = _alternatives(name, inner)
            else:
                hint = "write a terminal as strings, other terminals or one /pattern/"
                raise _Misused(f"terminal {name} repeats or leaves out a part, or is a range", _first_place(tree), hint)
            rows = [row + way for row in rows for way in ways]
            if len(rows) > _ALTERNATIVES:
                hint = "write it as one /pattern/"
                raise _Misused(f"terminal {name} has too many alternatives", _first_place(tree), hint)
        found += rows
    return found


def _piece(token: Token) -> _Piece:
    if token.type == "STRING":
        return ("str", _string(token), "")
    body, _, flags = str(token).rpartition("/")
    return ("re", body[1:].replace("\\/", "/"), flags)


# -- directives --------------------------------------------------------------------------------------------------------


def _assemble(
    file: str,
    source: str,
    rules: dict[str, Rule],
    terminals: dict[str, Terminal],
    imported: dict[str, list[Directive]],
) -> Grammar:
    found: dict[str, Any] = {"starts": [], "stops": [], "stops_after_call": [], "markers": [], "recovers": []}
    found.update(name=Path(file).stem, version=1, casts="quoted", reserved=[], answer="")
    escapes: dict[str, str] = {}
    for directive in read_directives(source, file):
        try:
            _apply(directive, found, escapes)
        except (IndexError, ValueError) as error:
            reason = "a word is missing" if isinstance(error, IndexError) else error
            raise GrammarError(
                f"cannot understand the directive {directive.words[0]!r}: {reason}", file=file, source=source,
                line=directive.line, column=directive.column, hint="docs/grammars.md lists the directives",
            ) from error
    for stem, directives in imported.items():
        for directive in directives:
            if directive.words[0] == "escapes":
                escapes[stem] = directive.words[1]
    if not found["starts"]:
        raise GrammarError("no start rule", file=file, hint="add a line such as: //@ start turn")
    wrapped = _wrapped(rules)
    conditions = frozenset(node.name for node in wrapped if isinstance(node, Condition))
    recorded = frozenset(node.name for node in wrapped if isinstance(node, Same))
    markers = tuple(dict.fromkeys([*found["markers"], *found["stops"], *found["stops_after_call"]]))
    return Grammar(
        found["name"], found["version"], file, source, rules, terminals, tuple(found["starts"]), markers,
        tuple(found["stops"]), tuple(found["stops_after_call"]), frozenset(found["reserved"]), found["casts"],
        escapes, tuple(found["recovers"]), recorded, conditions, found["answer"],
    )


def _wrapped(rules: dict[str, Rule]) -> list[Same | Condition]:
    """Every use of a wrapper."""

    def below(node: Node) -> list[Same | Condition]:
        match node:
            case Same() | Condition():
                return [node]
            case Group(parts=parts):
                return [found for part in parts for found in below(part)]
            case Choice(branches=branches):
                return [found for branch in branches for found in below(branch.node)]
            case Loop(node=inner):
                return below(inner)
        return []

    return [found for rule in rules.values() for found in below(rule.choice)]


def _apply(directive: Directive, found: dict[str, Any], escapes: dict[str, str]) -> None:
    words = directive.words
    match words[0]:
        case "format":
            found["name"] = words[1]
            found["version"] = int(words[2]) if len(words) > 2 else 1
        case "start":
            found["starts"].append(Start(words[1], words[3] if len(words) > 3 and words[2] == "after" else ""))
        case "stop":
            after_call = words[-2:] == ("after", "tool_call")
            listed = directive.strings(-2 if after_call else None)
            found["stops_after_call" if after_call else "stops"].extend(listed)
        case "marker":
            found["markers"].extend(directive.strings())
        case "reserved":
            found["reserved"].extend(directive.strings())
        case "casts":
            if words[1] not in ("quoted", "raw"):
                raise ValueError(f"{words[1]!r} is not one of: quoted, raw")
            found["casts"] = words[1]
        case "escapes":
            if words[1] not in ("raw", "json"):
                raise ValueError(f"{words[1]!r} is not one of: raw, json")
            escapes[""] = words[1]
        case "answer":
            found["answer"] = words[1]
        case "recover":
            found["recovers"].append(_recover(words))
        case other:
            raise ValueError(f"there is no directive {other!r}")


def _recover(words: tuple[str, ...]) -> Recover:
    """`recover ROLE until "x" consumed, "y" kept then RULE`"""
    syncs = [word for word in words[3:-2] if word != ","]
    if len(words) < 7 or words[2] != "until" or words[-2] != "then" or not {*syncs[1::2]} <= {"consumed", "kept"}:
        raise ValueError('write: recover ROLE until "text" consumed, "text" kept then RULE')
    if len(syncs) % 2 or "" in syncs:
        raise ValueError('each text is followed by consumed or kept: "text" consumed, "text" kept')
    if words[1] not in ROLES:
        raise ValueError(f"{words[1]!r} is no role; the roles are {', '.join(sorted(ROLES - {'error'}))}")
    pairs = tuple((text, how == "consumed") for text, how in zip(syncs[::2], syncs[1::2], strict=True))
    return Recover(words[1], pairs, words[-1])


def _check_names(grammar: Grammar) -> None:
    """The rules that directives name exist; Lark has seen to all others."""
    named = [*(start.rule for start in grammar.starts), *(recover.then for recover in grammar.recovers)]
    for name in [*named, *([grammar.answer] if grammar.answer else ())]:
        if name not in grammar.rules:
            found = re.search(rf"^//@.*\b({re.escape(name)})\b", grammar.source, re.MULTILINE)
            at = found.start(1) if found else 0
            raise GrammarError(
                f"unknown rule {name!r}", file=grammar.file, source=grammar.source,
                line=grammar.source.count("\n", 0, at) + 1, column=at - grammar.source.rfind("\n", 0, at),
                hint=f"the rules are: {', '.join(sorted(grammar.rules))}",
            )
