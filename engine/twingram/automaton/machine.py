"""The automaton: states are tuples of expressions, made when they are reached, and kept.

In: a start expression and a `Recovery` (or none). Out: `State` objects; `state.step(symbol)` is the next transition.

A state holds its *threads*: readings of the input so far that differ in their tags, the preferred one first. Most
states have one thread. A transition names, for each thread of the next state, the thread it came from and the tags it
fired, with their place (0 before the symbol, 1 after it).

Invariants: within a state no two threads are the same expression (the preferred one is kept); a thread that passes a
commit tag ends all threads below it, but for those that part from it later; tags that stand first in any case have
fired already, so that an end is reported with the symbol that decides it.
Cost: a first step costs the heads of the threads; a repeated one is one dictionary look-up.
The table of states is bounded: past `Limits.machine_states` all states forget their transitions and the table starts
again (an epoch); a session that holds a state goes on with it unharmed.

Source: V. Laurikari (2000), for tagged automata determinised while they run; R. Cox, "Regular Expression Matching in
the Wild" (2010), for bounded lazy state caches and ordered threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..caches import charge, watch
from ..limits import DEFAULT_LIMITS, Limits
from .bound import Bound, bound, end_of, first_of
from .choice import Alt, alt
from .depth import Depth
from .derivative import derive
from .expression import EMPTY, NOTHING, Expr, Literal, Seq, seq
from .hoist import hoist
from .loops import loop_of
from .moves import Fired, Move, Moves, compose, simplified
from .shared import Shared, plain, run_shared, shared_of
from .tags import COMMIT, DROPPED, Tag

__all__ = ["Machine", "State", "Transition"]

STATE_BYTES, STEP_BYTES, FORK_BYTES = 800, 160, 900  # measured with tracemalloc over a few hundred calls
_FORKS_KEPT = 10_000  # of one machine; see session.track
_LEARN = (8, 64, 512, 4096)  # see State.skip: once so many bytes were not known to lead back, look again


class Transition:
    """`moves` is None when all threads go on with nothing fired: the common case, one test in the hot loop.
    `data` is the text that a token or a run of bytes reads; empty where a single symbol is read."""

    __slots__ = ("data", "fork", "moves", "state")

    def __init__(self, state: State, moves: Moves, data: bytes = b"") -> None:
        self.state, self.moves, self.data = state, moves, data
        self.fork: Any = None  # whatever the session layer keeps for this transition


class State:
    """Threads, what is known of what follows them, and nothing of any session."""

    __slots__ = (
        "__weakref__", "_ends", "_loop", "_missed", "_plain", "_shared", "first", "machine", "mask", "next", "pieces",
        "threads",
    )  # fmt: skip

    def __init__(self, machine: Machine, threads: tuple[Expr, ...]) -> None:
        self.machine, self.threads = machine, threads
        self.next: dict[int, Transition | None] = {}  # symbol -> transition, None if dead
        self.pieces: dict[int | bytes, Transition | None] = {}  # token id or short text -> transition
        self.mask: object = None  # whatever the token layer keeps for this state
        self._ends: tuple[tuple[Tag, ...] | None, ...] | None = None
        self._loop: re.Pattern[bytes] | None = None  # bytes known to lead back here
        self._missed = 0
        self._plain: bool | None = None
        self._shared: Shared | bool | None = False  # False: not looked for yet
        first = 0
        for thread in threads:
            first |= first_of(thread)
        self.first = first

    @property
    def ends(self) -> tuple[tuple[Tag, ...] | None, ...]:
        """For each thread the tags that an end here fires, None where it cannot end."""
        if self._ends is None:
            self._ends = tuple(map(end_of, self.threads))
        return self._ends

    @property
    def accepting(self) -> bool:
        return any(tags is not None for tags in self.ends)

    @property
    def shortest(self) -> int:
        """Fewest symbols to an end."""
        return min(thread.shortest for thread in self.threads)

    @property
    def plain(self) -> bool:
        """Whether no placeholder comes first."""
        if self._plain is None:
            self._plain = plain(self)
        return self._plain

    @property
    def shared(self) -> Shared | None:
        """The state that all meanings of its placeholders share, see `shared.py`."""
        if self._shared is False:
            self._shared = shared_of(self)
        return self._shared  # type: ignore[return-value]

    def step(self, sym: int) -> Transition | None:
        """The transition for one symbol; None if nothing goes on."""
        try:
            return self.next[sym]
        except KeyError:
            found = self.next[sym] = self.machine.derive(self, sym)
            charge(STEP_BYTES)
            return found

    def run(self, data: bytes) -> Transition | None:
        """The transition for a run of bytes, composed from single steps; fixed text is taken in one."""
        state, at = self, 0
        moves: Moves = None
        while at < len(data):
            far = run_shared(state, data, at) if len(data) - at > 1 else None
            if far is not None:
                state, fired, width = far
            else:
                step, width = state.leap(data, at) or (state.step(data[at]), 1)
                if step is None:
                    return None
                state, fired = step.state, step.moves
            if fired is not None:
                moves = compose(moves, fired, at)
            at += width
        return Transition(state, simplified(moves, len(self.threads)), data)

    def skip(self, data: bytes, at: int) -> int:
        """Past those bytes from `at` on that are known to change nothing here, as most do inside a text.

        See `loops`; what is known grows, so it is looked for again a few times.
        """
        found = None if self._loop is None else self._loop.match(data, at)
        if found is not None:
            return found.end()
        self._missed += 1
        if self._missed in _LEARN:
            self._loop = loop_of(self)
        return at

    def leap(self, data: bytes, at: int) -> tuple[Transition, int] | None:
        """Past fixed text, as much of it as `data` has, if that is all that can follow.

        Saves a state for each byte: an unseen call in a format with long tags went from 170 to 74 us a token.
        """
        if len(self.threads) != 1:
            return None
        whole = self.threads[0]
        thread = whole.base if isinstance(whole, Bound) else whole
        head = thread.head if isinstance(thread, Seq) else thread
        if not isinstance(head, Literal):
            return None
        width = min(len(head.data), len(data) - at)
        if data[at : at + width] != head.data[:width]:
            return None
        found = self.next.get(data[at]) if width == 1 else None
        if found is None:
            late, rest = hoist(seq(head.rest(width), thread.tail if isinstance(thread, Seq) else EMPTY))
            target = self.machine.state((bound(rest, whole.env) if isinstance(whole, Bound) else rest,))
            found = Transition(target, (Move(0, tuple((tag, width) for tag in late)),) if late else None)
            if width == 1:
                self.next[data[at]] = found
                charge(STEP_BYTES)
        return found, width

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.threads))


class Machine:
    """The states reachable from one start expression."""

    __slots__ = (
        "__weakref__", "_forked", "_forks", "_states", "depth", "epoch", "limits", "literals", "ordered", "recovery",
        "start", "widths",
    )  # fmt: skip

    def __init__(
        self,
        start: Expr,
        *,
        widths: tuple[int, ...] = (),
        recovery: Callable[[tuple[Expr, ...]], list[tuple[int, tuple[Fired, ...], Expr]]] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        depth: Depth | None = None,
        ordered: bool = True,
        literals: tuple[bytes, ...] = (),
    ) -> None:
        """`ordered`: readings have an order of preference, and only `Limits.threads` of them are kept (a tag says so);
        else, where all text has one reading only, none is lost. `widths[k]`: length in bytes of marker k's text.
        `recovery`: see `grammar.recovery`; None for masks. `depth`: how many containers may be open; one more than is
        read by default, so that the reader sees it and says which limit it is. `literals`: those of the grammar."""
        self.limits, self.recovery, self.widths, self.epoch = limits, recovery, widths, 0
        self.depth = Depth(limits.depth + 1) if depth is None else depth
        self.ordered, self.literals = ordered, literals
        self._states: dict[tuple[Expr, ...], State] = {}
        self._forks = 0  # kept at transitions,
        self._forked: list[Transition] = []  # and those
        self.start = self.state((start,))
        watch(self)

    def state(self, threads: tuple[Expr, ...]) -> State:
        """The one state with these threads (within an epoch)."""
        found = self._states.get(threads)
        if found is None:
            if len(self._states) >= self.limits.machine_states:
                self.clear()
            found = self._states.setdefault(threads, State(self, threads))
            charge(STATE_BYTES)
        return found

    def clear(self) -> None:
        """Forget all states and what was derived from them: the next epoch."""
        old, self._states = self._states, {}
        self.epoch += 1
        self._forget_forks()
        for state in [self.start, *old.values()]:
            state.next, state.pieces, state.mask = {}, {}, None
            for thread in state.threads:  # else all that follows the start would hang on it
                _forget(thread)

    def keep_fork(self, start: Transition | None) -> None:
        """One more fork is kept, at this transition if it begins there. When they are many, all are forgotten: so what
        came long ago does not stand in the way."""
        if self._forks >= _FORKS_KEPT:
            self._forget_forks()
        self._forks += 1
        if start is not None:
            self._forked.append(start)
        charge(FORK_BYTES)

    def _forget_forks(self) -> None:
        forked, self._forked, self._forks = self._forked, [], 0
        for step in forked:
            step.fork = None

    def memory_usage(self) -> int:
        """Bytes of the states, about: their tables of transitions and what these hold (masks are counted elsewhere)."""
        states = list(self._states.values())
        steps = sum(len(state.next) + len(state.pieces) for state in states)
        return STATE_BYTES * len(states) + STEP_BYTES * steps + FORK_BYTES * self._forks

    def __len__(self) -> int:
        return len(self._states)

    def width(self, sym: int) -> int:
        """Bytes that a symbol takes in the decoded text."""
        return 1 if sym < 256 else self.widths[sym - 256]

    def derive(self, state: State, sym: int) -> Transition | None:
        """One step, worked out from the heads of the threads."""
        found = self._threads(enumerate(state.threads), sym)
        if not found and self.recovery is not None:
            for source, fired, rest in self.recovery(state.threads):
                again = self._threads([(source, rest)], sym)
                found += [(expr, src, (*fired, *tags)) for expr, src, tags in again]
            found = self._kept(found, self.width(sym))
        if not found:
            return None
        target = self.state(tuple(expr for expr, _, _ in found))
        moves = tuple(Move(source, tags) for _, source, tags in found)
        return Transition(target, simplified(moves, len(state.threads)))

    def _threads(
        self, threads: Iterable[tuple[int, Expr]], sym: int
    ) -> list[tuple[Expr, int, tuple[Fired, ...]]]:
        out: list[tuple[Expr, int, tuple[Fired, ...]]] = []
        width = self.width(sym)
        calm = self.depth.calm
        for source, thread in threads:
            cut: tuple[Tag, ...] | None = None  # the tags up to a commit: what did not pass it is over
            for early, late, rest in derive(thread, sym):
                if rest.nesting > calm:
                    rest = self.depth.cut(rest)
                    if rest is NOTHING:
                        continue
                if cut is not None and early[: len(cut)] != cut:
                    continue
                fired = (*((tag, 0) for tag in early), *((tag, width) for tag in late)) if early or late else ()
                out.append((rest, source, fired))
                if COMMIT in late:
                    return _distinct(out)
                if cut is None and COMMIT in early:
                    cut = early[: early.index(COMMIT) + 1]
            if cut is not None:
                return _distinct(out)
        if len(out) > 1 and not self.ordered:
            return _together(out)
        return self._kept(out, width) if len(out) > 1 else out

    def _kept(
        self, found: list[tuple[Expr, int, tuple[Fired, ...]]], width: int
    ) -> list[tuple[Expr, int, tuple[Fired, ...]]]:
        """As many readings as may stand side by side; where that is not all, a tag says so."""
        found, most = _distinct(found), max(self.limits.threads, 1)
        if len(found) <= most:
            return found
        return [(rest, source, (*fired, (DROPPED, width))) for rest, source, fired in found[:most]]


def _forget(thread: Expr) -> None:
    """What was derived from a thread, and from what it is made of."""
    thread.derived = None
    if isinstance(thread, Bound):
        thread.base.derived = None
    elif isinstance(thread, Alt) and thread.binding:
        for item in thread.items:
            _forget(item)


def _together(found: list[tuple[Expr, int, tuple[Fired, ...]]]) -> list[tuple[Expr, int, tuple[Fired, ...]]]:
    """Readings that came the same way and fired the same are one."""
    groups: dict[tuple[int, tuple[Fired, ...]], list[Expr]] = {}
    for rest, source, fired in found:
        groups.setdefault((source, fired), []).append(rest)
    return _distinct([(alt(rests), source, fired) for (source, fired), rests in groups.items()])


def _distinct(found: list[tuple[Expr, int, tuple[Fired, ...]]]) -> list[tuple[Expr, int, tuple[Fired, ...]]]:
    seen: set[Expr] = set()
    out = []
    for item in found:
        if item[0] not in seen:
            seen.add(item[0])
            out.append(item)
    return out

