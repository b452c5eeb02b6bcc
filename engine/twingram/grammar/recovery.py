"""Recovery: what the parser goes on with when every reading inside a scope is dead.

In: the `recover` directives, compiled. Out: a function from dead threads to readings to go on with, each with the
thread it comes from and the tags that it fires, for `automaton.machine.Machine`.

The scope of a thread is written in it: the closing tags of all open roles still stand in its spine, innermost first.
A scope that has not begun yet, but stands ahead, counts as well: what leads to it (a header) is what is broken then.
The broken scope's text becomes an error up to a sync point: a literal that is consumed with it, or one that is kept
because reading goes on there. One step closes all that is open, however deep. Where no such scope is in sight, the
first directive's sync points are taken, and the error begins with what could not be read: a later call is never lost.
What the thread had read of a literal when it died may be the beginning of a sync point: the error is read from there.
A marker that nothing goes on with counts only where no other reading has gone on with it.
Invariant: recovery is neither an alternative (its thread would hold back all output) nor a wrapper round each thread:
it starts only when nothing else is left, so a well-formed text never meets it.
Cost: one walk over the spine of a dead thread; the expressions are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from ..automaton.begun import begun, strayed
from ..automaton.bound import bound, env_of
from ..automaton.choice import alt
from ..automaton.derivative import derive
from ..automaton.ending import scopes
from ..automaton.expression import NOTHING, Expr, Literal, Mark, Symbol, mark, seq, text
from ..automaton.regions import exclude_dfa
from ..automaton.tags import Tag, TagKind, close_tag, open_tag, tag
from .compile import Compiler
from .rules import Recover

__all__ = ["recovery_of"]

_Found = list[tuple[int, tuple[tuple[Tag, int], ...], Expr]]
Recovery = Callable[[tuple[Expr, ...]], _Found]


def recovery_of(compiler: Compiler, ending: Expr) -> Recovery | None:
    """`ending` is what follows the whole turn in the parser's expression (a stop marker in text, or nothing)."""
    plans = {recover.role: _resume(compiler, recover, ending) for recover in compiler.grammar.recovers}
    if not plans:
        return None

    def recover(threads: tuple[Expr, ...]) -> _Found:
        scopes = [_broken_scope(thread, plans) for thread in threads]
        read = [begun(thread) for thread in threads]
        tried = [at for at, thread in enumerate(threads) if not strayed(thread)] or range(len(threads))
        at = next((at for at in tried if scopes[at][1]), tried[0])
        at = next((other for other in tried if read[other] and scopes[other] == scopes[at]), at)
        broken, role = scopes[at]
        role = role or compiler.grammar.recovers[0].role
        abort = (tag(TagKind.ABORT, broken or role), -len(read[at]))
        plan, env = plans[role], env_of(threads[at])
        if env is not None:
            plan = bound(plan, env)
        return [(at, (abort, *fired), rest) for fired, rest in _after(plan, read[at])]

    return recover


def _after(plan: Expr, read: bytes) -> list[tuple[tuple[tuple[Tag, int], ...], Expr]]:
    """The readings of a plan once some text is behind, with the tags fired and their places before the present one."""
    ways: list[tuple[tuple[tuple[Tag, int], ...], Expr]] = [((), plan)]
    for place, byte in enumerate(read, -len(read)):
        ways = [
            ((*fired, *((each, place) for each in early), *((each, place + 1) for each in late)), rest)
            for fired, at in ways
            for early, late, rest in derive(at, byte)
        ]
    return ways


def _broken_scope(thread: Expr, plans: Container[str]) -> tuple[str, str]:
    """The role to abort in a dead thread, and the one whose plan says how to go on; "" for none."""
    found = scopes(thread)
    around = [part.tag.role for part in found.closing if isinstance(part, Mark)]
    role = next((role for role in around if role in plans), "")
    if role:
        return role, role
    ahead = next((role for role in found.ahead if role in plans), "")
    return (around[-1] if around else ahead), ahead


def _resume(compiler: Compiler, recover: Recover, ending: Expr) -> Expr:
    """An error up to a sync point, then the rule to go on with."""
    symbols, needles = compiler.alphabet.symbols, []
    for literal, _ in recover.until:
        number = compiler.alphabet.number(literal)
        if number is None:
            needles.append(literal.encode())
        else:
            symbols &= ~(1 << number)
    then = seq(compiler.rule(recover.then), ending)
    close = mark(close_tag("error"))
    ways = []
    for literal, consumed in recover.until:
        if consumed:
            ways.append(seq(compiler.letters(literal), close, then))
        else:
            ways.append(seq(close, _beginning(then, compiler.letters(literal))))
    ways.append(seq(close, ending))
    body = text(exclude_dfa(needles, strict=False), symbols=symbols)
    return seq(mark(open_tag("error")), body, alt(ways))


def _beginning(then: Expr, literal: Expr) -> Expr:
    """Of `then` only the readings that begin with the literal."""
    ways = []
    for tags, leaf, tail in then.heads():
        same = leaf is literal or (
            isinstance(leaf, Literal) and isinstance(literal, Literal) and leaf.data.startswith(literal.data)
        )
        if same and isinstance(leaf, (Literal, Symbol)):
            ways.append(seq(*(mark(fired) for fired in tags), leaf, tail))
    return alt(ways) if ways else NOTHING


