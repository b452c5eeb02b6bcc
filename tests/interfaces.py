"""Whether a class of ours still has the interface that a program calls.

In: our class and the program's. Out: what differs, in words. Ours must take every call that fits the program's own
signatures (names included, for callers pass arguments by name), answer every method that its base leaves open, and
have no public name that the base does not know, but for those in `more`. So a method that is renamed on either side,
or one of whose arguments is, shows.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

__all__ = ["interface_faults", "signature_faults"]

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _function(member: Any) -> Any:
    return getattr(member, "__func__", member)


def _is_method(member: Any) -> bool:
    return inspect.isfunction(_function(member))


def _kind(member: Any) -> str:
    for kind in (staticmethod, classmethod, property, cached_property):
        if isinstance(member, kind):
            return "property" if kind is cached_property else kind.__name__
    return "method" if inspect.isfunction(member) else "value"


def _is_open(member: Any) -> bool:
    """Whether a base leaves this method to others: it is abstract, or does nothing but raise NotImplementedError."""
    function = _function(member)
    if getattr(function, "__isabstractmethod__", False):
        return True
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError):
        return False
    body = [part for part in getattr(tree, "body", []) if not (isinstance(part, ast.Expr) and _is_text(part.value))]
    return len(body) == 1 and isinstance(body[0], ast.Raise) and "NotImplementedError" in ast.unparse(body[0])


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def signature_faults(own: Any, other: Any) -> Iterator[str]:
    """Why calls that fit `other` may not fit `own`."""
    ours = [p for p in inspect.signature(own).parameters.values() if p.kind not in _REST]
    theirs = [p for p in inspect.signature(other).parameters.values() if p.kind not in _REST]
    rest = {p.kind for p in inspect.signature(own).parameters.values()}
    by_place = [p.name for p in ours if p.kind in _BY_PLACE]
    wanted = [p.name for p in theirs if p.kind in _BY_PLACE]
    for at, name in enumerate(wanted):
        if at >= len(by_place):
            if inspect.Parameter.VAR_POSITIONAL not in rest:
                yield f"takes no {name!r}"
        elif by_place[at] != name:
            yield f"argument {at} is called {by_place[at]!r}, not {name!r}"
    known = {p.name: p for p in ours}
    for parameter in theirs:
        mine = known.get(parameter.name)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and mine is None:
            if inspect.Parameter.VAR_KEYWORD not in rest:
                yield f"takes no {parameter.name!r}"
        elif mine is not None and mine.default is inspect.Parameter.empty is not parameter.default:
            yield f"wants {parameter.name!r}, which may be left out"
    given = {parameter.name for parameter in theirs}
    for mine in ours:
        if mine.name not in given and mine.default is inspect.Parameter.empty:
            yield f"wants {mine.name!r}, which nobody passes"


def interface_faults(own: type, *bases: type, more: Collection[str] = (), calls: Collection[str] = ()) -> list[str]:
    """What is wrong with `own` in the place of one that has all of `bases`. `calls`: special methods that count too."""
    out: list[str] = []
    mine = {
        name: member for base in reversed(own.__mro__) if base.__module__.startswith("twingram_bindings")
        for name, member in vars(base).items() if not name.startswith("_") or name in calls
    }  # fmt: skip
    for base in bases:
        theirs: dict[str, Any] = {}
        for parent in reversed(base.__mro__[:-1]):
            theirs.update(vars(parent))
        for name, member in theirs.items():
            if not name.startswith("_") and _is_method(member) and _is_open(member) and name not in mine:
                out.append(f"{base.__name__}.{name} is not answered")
            if name not in mine or _kind(member) == "value":
                continue
            if _kind(mine[name]) != _kind(member):
                out.append(f"{name} is a {_kind(mine[name])}, not a {_kind(member)}")
            elif _is_method(member):
                faults = signature_faults(_function(mine[name]), _function(member))
                out += [f"{name} {fault}" for fault in faults]
    known = {name for base in bases for parent in base.__mro__[:-1] for name in vars(parent)}
    out += [f"{name} is not in the interface" for name in mine if name not in known and name not in more]
    out += [f"{name} is not there" for name in (*more, *calls) if name not in mine]
    return out
