"""The reader: a position in the automaton, its track, the text so far, and the emitter behind it.

In: transitions. Out: deltas, on request. Parser and session are both thin layers on this one: that is what keeps them
from drifting apart.

Deltas are a function of the position alone: they are worked out when asked for, from the last place where they were.
What a transition fired is only noted; the track is followed up to here when deltas are asked for.
After a rollback the emitter is rebuilt from the last snapshot that is still in the past, so what had been given out for
tokens that are now undone is simply given again when they are accepted again.
Invariants: `text` holds exactly the decoded bytes of what was read; a snapshot is never changed.
Cost: reading a token is a dictionary look-up, an append or two and an addition; deltas cost what they emit.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from sys import maxsize
from typing import NamedTuple

from ..automaton.begun import half
from ..automaton.machine import State, Transition
from ..automaton.moves import Move
from ..automaton.tags import CUT, Tag
from .acts import play
from .deltas import Delta, ParseError
from .emitter import Emitter
from .track import ROOT, Fork, Node, collect, common, extend, first_after

__all__ = ["Reader"]

_APART = 32  # steps between two snapshots: a copy of the emitter takes 2 us, to read 32 tokens again about 30


class Snapshot(NamedTuple):
    """All that deltas depend on, after so many steps."""

    steps: int
    followed: int
    fork: Fork | None
    base: int
    emitter: Emitter


class Reader:
    """Reads one turn. `steps` is the number of transitions taken; up to `pending` bytes may stay undecided."""

    __slots__ = (
        *("_base", "_emitter", "_followed", "_fork", "_past", "_pending", "_snapshots", "_told"),
        *("due", "fired", "places", "position", "state", "text"),
    )

    def __init__(self, start: State, emitter: Emitter, pending: int = maxsize) -> None:
        assert len(start.threads) == 1, "a turn begins with one reading"
        self.state = start
        self.position = 0
        self.text = bytearray()
        self.fired: list[Transition] = []  # the transitions that fired anything,
        self.places: list[int] = []  # and where they began: two lists, for pairs made the garbage collector busy
        self._past: list[tuple[State, int, int]] = []  # state, position and length of `fired` before each step
        self._emitter = emitter
        self._followed = 0  # how many of `fired` the emitter has had, as far as they are certain
        self._fork: Fork | None = None  # what is known there where it is not all certain,
        self._base = 0  # and where that began
        self._snapshots: list[Snapshot] = []
        self._pending = max(pending, 1)
        self.due = self._pending  # from this position on `settle` is to be called before more is read
        self._told = 0  # steps up to which deltas have been given out

    @property
    def steps(self) -> int:
        return len(self._past)

    def take(self, transition: Transition) -> None:
        """Follow the transition of a token or a piece of text."""
        position, data = self.position, transition.data
        self._past.append((self.state, position, len(self.fired)))
        if transition.moves is not None:
            self.fired.append(transition)
            self.places.append(position)
        self.state = transition.state
        self.text += data
        self.position = position + len(data)

    def follow(self, transition: Transition) -> None:
        """As `take`, but not to be rolled back."""
        if transition.moves is not None:
            self.fired.append(transition)
            self.places.append(self.position)
        self.state = transition.state
        self.text += transition.data
        self.position += len(transition.data)

    def known(self, tokens: Iterator[int]) -> int | None:
        """Follow tokens as long as each was met before at its state; the first that was not, None if all were.

        The hot loop of a parser: 0.15 us a token. Not to be rolled back.
        """
        state, position, text, due = self.state, self.position, self.text, self.due
        unknown = None
        for token in tokens:
            step = state.pieces.get(token)
            if step is None:
                unknown = index(token)
                break
            if step.moves is not None:
                self.fired.append(step)
                self.places.append(position)
            data = step.data
            text += data
            position += len(data)
            state = step.state
            if position > due:
                self.state, self.position = state, position
                self.settle()
                state, due = self.state, self.due
        self.state, self.position = state, position
        return unknown

    def read(self, data: bytes) -> int:
        """Follow the bytes one by one; how many were read before nothing went on. Not to be rolled back."""
        state, position, fired, places = self.state, self.position, self.fired, self.places
        at, size = 0, len(data)
        while at < size:
            byte = data[at]
            try:
                step = state.next[byte]
            except KeyError:  # new, or another thread's states have just been forgotten
                step = state.step(byte)
            if step is None:
                break
            if step.moves is not None:
                fired.append(step)
                places.append(position + at)
            elif step.state is state:
                at = state.skip(data, at + 1)
                continue
            state = step.state
            at += 1
        self.state, self.position = state, position + at
        self.text += data if at == size else data[:at]
        return at

    def settle(self) -> None:
        """Where text has been undecided for too long the reading counts that would if the output ended here. `due` says
        when to ask again."""
        self._follow()
        fork, since = self._fork, self.position
        if fork is not None and fork.upto is not None:
            since = self._base + fork.upto
            if self.position - since >= self._pending:
                for delta in self._emitter.more(self.text, since):  # what was certain comes before the error
                    self._emitter.add(delta)
                since = self.position
                best, _ = self._best()
                alone = self.state.machine.state((self.state.threads[best],))
                self.follow(Transition(alone, (Move(best, ()),)))
                self._follow()
                note = f"text undecided for more than Limits.pending_bytes = {self._pending}"
                self._emitter.add(ParseError("", note))
        self.due = since + self._pending

    def deltas(self) -> list[Delta]:
        """What has become certain since the last call."""
        if self._followed < len(self.fired):
            self._follow()
        fork = self._fork
        if fork is None or fork.upto is None:
            return self._emitter.more(self.text, self.position)
        return self._emitter.more(self.text, self._base + fork.upto)

    def _follow(self) -> None:
        """Tell the emitter all tags up to here that are certain."""
        fork, base, fired, places = self._fork, self._base, self.fired, self.places
        for at in range(self._followed, len(fired)):
            step = fired[at]
            if fork is None:
                fork, base = step.fork or Fork.of(step), places[at]
            else:
                fork = fork.after(step, places[at] - base)
                if fork.anew:
                    base = places[at]
                elif fork.moved:
                    base += fork.moved
            if fork.acts:
                play(self._emitter, self.text, fork.acts, fork.news, base)
            if fork.level:
                fork = None
        self._followed, self._fork, self._base = len(fired), fork, base

    # -- rollback ------------------------------------------------------------------------------------------------------

    def told(self) -> None:
        """Deltas have been given out: a rollback to further back has to rebuild the emitter."""
        steps = self._told = len(self._past)
        if steps >= self._snapshots[-1].steps + _APART:
            self.keep()

    def keep(self) -> None:
        """Remember the emitter as it is now. To be called at the beginning, and where `finish` has closed it."""
        emitter = self._emitter.clone()
        self._snapshots.append(Snapshot(len(self._past), self._followed, self._fork, self._base, emitter))

    def rollback(self, count: int) -> None:
        """Undo the last `count` transitions."""
        if not count:
            return
        self.state, self.position, fired = self._past[-count]
        del self._past[-count:]
        del self.fired[fired:], self.places[fired:]
        del self.text[self.position :]
        steps = len(self._past)
        if self._told <= steps:
            return  # nothing that is undone has been given out
        while self._snapshots[-1].steps > steps:
            self._snapshots.pop()
        _, self._followed, self._fork, self._base, emitter = self._snapshots[-1]
        self._emitter = emitter.clone()
        self.deltas()  # what was given out up to here stays given out
        self._told = steps

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, reason: str | None) -> list[Delta]:
        """The end of the output here."""
        self._follow()
        fork, base = self._fork, self._base
        best, ending = self._best()
        rest = [] if fork is None else collect(fork.nodes[best], fork.shared)
        self._emitter.fire(self.text, rest, base)
        out = self._emitter.advance(self.text, [(tag, self.position) for tag in ending], self.position)
        if ending == (CUT,):
            self._emitter.cut_in(half(self.state.threads[best], self.state.machine.literals, self.text))
        return out + self._emitter.finish(self.text, self.position, reason)

    def _best(self) -> tuple[int, tuple[Tag, ...]]:
        """The thread that counts if the output ends here, and what it fires then: the preferred one of those that may
        end; if none may, the preferred one is cut."""
        ways = [(thread, tags) for thread, tags in enumerate(self.state.ends) if tags is not None]
        return ways[0] if ways else (0, (CUT,))

    def tracks(self) -> tuple[Node, ...]:
        """For each reading all that it has fired since the beginning."""
        nodes: tuple[Node, ...] = (ROOT,)
        for step, position in zip(self.fired, self.places, strict=True):
            assert step.moves is not None
            nodes = extend(nodes, step.moves, position)
        return nodes

    def tags(self) -> list[tuple[Tag, int]]:
        """All tags of the turn with their places, if the output ends here."""
        best, ending = self._best()
        return collect(self.tracks()[best], ROOT) + [(tag, self.position) for tag in ending]

    def replay(self, emitter: Emitter, *, ended: bool) -> list[Delta]:
        """All deltas up to here, from a new emitter."""
        nodes = self.tracks()
        shared = common(nodes)
        upto = first_after(nodes, shared)
        out = emitter.advance(self.text, collect(shared, ROOT), self.position if upto is None else upto)
        return out + emitter.finish(self.text, self.position, None) if ended else out

    def fork(self) -> Reader:
        """A copy that goes on by itself."""
        copy = Reader.__new__(Reader)
        copy.state, copy.position = self.state, self.position
        copy.text, copy._past = self.text[:], self._past[:]
        copy.fired, copy.places = self.fired[:], self.places[:]
        copy._emitter, copy._followed = self._emitter.clone(), self._followed
        copy._fork, copy._base = self._fork, self._base
        copy._snapshots, copy._told = self._snapshots[:], self._told
        copy._pending, copy.due = self._pending, self.due
        return copy

