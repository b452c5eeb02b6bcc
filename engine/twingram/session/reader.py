"""The reader: a position in the automaton, its track, the text so far, and the emitter behind it.

In: transitions. Out: deltas, on request. Parser and session are both thin layers on this one: that is what keeps them
from drifting apart.

Deltas are a function of the position alone: they are worked out when asked for, from the last place where they were.
What a transition fired is only noted; the track is followed up to here when deltas are asked for. While one reading is
left, and that is nearly always so, its tags are certain as they come and no track is needed.
After a rollback the emitter is rebuilt from the last snapshot that is still in the past, so what had been given out for
tokens that are now undone is simply given again when they are accepted again.
Invariants: `text` holds exactly the decoded bytes of what was read; a snapshot is never changed.
Cost: reading a token is a dictionary look-up, an append or two and an addition; deltas cost what they emit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..automaton.machine import Move, State, Transition
from ..automaton.tags import Tag
from .deltas import Delta
from .emitter import Emitter
from .track import ROOT, Node, collect, common, extend, first_after

__all__ = ["Reader"]

_APART = 32  # steps between two snapshots: a copy of the emitter takes 2 us, to read 32 tokens again about 30

Fired = tuple[tuple[Move, ...], int]  # what a transition fired, and where it began


class Snapshot(NamedTuple):
    """All that deltas depend on, after so many steps."""

    steps: int
    followed: int
    nodes: tuple[Node, ...]
    given: Node
    emitter: Emitter


class Reader:
    """Reads one turn. `steps` is the number of transitions taken."""

    __slots__ = (
        *("_emitter", "_followed", "_given", "_nodes", "_past", "_snapshots", "_start", "_told"),
        *("fired", "position", "state", "text"),
    )

    def __init__(self, start: State, emitter: Emitter) -> None:
        self.state = self._start = start
        self.position = 0
        self.text = bytearray()
        self.fired: list[Fired] = []  # of the transitions that fired anything
        self._past: list[tuple[State, int, int]] = []  # state, position and length of `fired` before each step
        self._emitter = emitter
        self._nodes: tuple[Node, ...] = (ROOT,) * len(start.threads)  # the track after so many of `fired`,
        self._followed = 0
        self._given = ROOT  # and what of it the emitter has had
        self._snapshots: list[Snapshot] = []
        self._told = 0  # steps up to which deltas have been given out

    @property
    def steps(self) -> int:
        return len(self._past)

    def take(self, transition: Transition) -> None:
        """Follow the transition of a token or a piece of text."""
        position, data = self.position, transition.data
        self._past.append((self.state, position, len(self.fired)))
        if transition.moves is not None:
            self.fired.append((transition.moves, position))
        self.state = transition.state
        self.text += data
        self.position = position + len(data)

    def follow(self, transition: Transition) -> None:
        """As `take`, but not to be rolled back."""
        if transition.moves is not None:
            self.fired.append((transition.moves, self.position))
        self.state = transition.state
        self.text += transition.data
        self.position += len(transition.data)

    def known(self, tokens: Iterator[int]) -> int | None:
        """Follow tokens as long as each was met before at its state; the first that was not, None if all were.

        The hot loop of a parser: 0.15 us a token. Not to be rolled back.
        """
        state, position, text = self.state, self.position, self.text
        unknown = None
        for token in tokens:
            step = state.pieces.get(token)
            if step is None:
                unknown = token
                break
            if step.moves is not None:
                self.fired.append((step.moves, position))
            data = step.data
            text += data
            position += len(data)
            state = step.state
        self.state, self.position = state, position
        return unknown

    def read(self, data: bytes) -> int:
        """Follow the bytes one by one; how many were read before nothing went on. Not to be rolled back."""
        state, position, fired = self.state, self.position, self.fired
        read = len(data)
        for at, byte in enumerate(data):
            try:
                step = state.next[byte]
            except KeyError:  # new, or another thread's states have just been forgotten
                step = state.step(byte)
            if step is None:
                read = at
                break
            if step.moves is not None:
                fired.append((step.moves, position + at))
            state = step.state
        self.state, self.position = state, position + read
        self.text += data[:read]
        return read

    def deltas(self) -> list[Delta]:
        """What has become certain since the last call."""
        if self._followed == len(self.fired) and len(self._nodes) == 1:
            return self._emitter.more(self.text, self.position)
        events, upto = self._certain()
        return self._emitter.advance(self.text, events, upto)

    def _certain(self) -> tuple[list[tuple[Tag, int]], int]:
        """Follow the track up to here: the tags that are newly certain, and up to where the text is."""
        events: list[tuple[Tag, int]] = []
        nodes, given = self._nodes, self._given
        fired = self.fired[self._followed :] if self._followed else self.fired
        for moves, position in fired:
            if len(moves) == 1 and len(nodes) == 1:
                for tag, offset in moves[0].tags:
                    events.append((tag, position + offset))
                continue
            nodes = extend(nodes, moves, position)
            if len(nodes) == 1:  # no choice is open any more: everything read so far is certain
                events += collect(nodes[0], given)
                nodes, given = _CERTAIN, ROOT  # what lies behind is done with
        upto = self.position
        if len(nodes) > 1:
            shared = common(nodes)
            upto = first_after(nodes, shared, upto)
            if shared is not given:
                events += collect(shared, given)
                given = shared
        self._followed, self._nodes, self._given = len(self.fired), nodes, given
        return events, upto

    # -- rollback ------------------------------------------------------------------------------------------------------

    def told(self) -> None:
        """Deltas have been given out: a rollback to further back has to rebuild the emitter."""
        steps = self._told = len(self._past)
        if steps >= self._snapshots[-1].steps + _APART:
            self.keep()

    def keep(self) -> None:
        """Remember the emitter as it is now. To be called at the beginning, and where `finish` has closed it."""
        emitter = self._emitter.clone()
        self._snapshots.append(Snapshot(len(self._past), self._followed, self._nodes, self._given, emitter))

    def rollback(self, count: int) -> None:
        """Undo the last `count` transitions."""
        if not count:
            return
        self.state, self.position, fired = self._past[-count]
        del self._past[-count:]
        del self.fired[fired:]
        del self.text[self.position :]
        steps = len(self._past)
        if self._told <= steps:
            return  # nothing that is undone has been given out
        while self._snapshots[-1].steps > steps:
            self._snapshots.pop()
        _, self._followed, self._nodes, self._given, emitter = self._snapshots[-1]
        self._emitter = emitter.clone()
        self.deltas()  # what was given out up to here stays given out
        self._told = steps

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, reason: str | None) -> list[Delta]:
        """The end of the output here."""
        events, _ = self._certain()
        events += collect(self._ending(self._nodes), self._given)
        out = self._emitter.advance(self.text, events, self.position)
        return out + self._emitter.finish(self.text, self.position, reason)

    def _ending(self, nodes: tuple[Node, ...]) -> Node:
        """The track if the output ends here: the preferred reading that may end wins; if none may, the preferred one
        is cut."""
        ways = [(thread, tags) for thread, tags in enumerate(self.state.ends) if tags is not None]
        best, ending = ways[0] if ways else (0, ())
        node = nodes[best]
        for tag in ending:
            node = Node(node, tag, self.position)
        return node

    def tracks(self) -> tuple[Node, ...]:
        """For each reading all that it has fired since the beginning."""
        nodes: tuple[Node, ...] = (ROOT,) * len(self._start.threads)
        for moves, position in self.fired:
            nodes = extend(nodes, moves, position)
        return nodes

    def tags(self) -> list[tuple[Tag, int]]:
        """All tags of the turn with their places, if the output ends here."""
        return collect(self._ending(self.tracks()), ROOT)

    def replay(self, emitter: Emitter, *, ended: bool) -> list[Delta]:
        """All deltas up to here, from a new emitter."""
        nodes = self.tracks()
        shared = common(nodes)
        out = emitter.advance(self.text, collect(shared, ROOT), first_after(nodes, shared, self.position))
        return out + emitter.finish(self.text, self.position, None) if ended else out

    def fork(self) -> Reader:
        """A copy that goes on by itself."""
        copy = Reader.__new__(Reader)
        copy.state, copy.position, copy._start = self.state, self.position, self._start
        copy.text, copy.fired, copy._past = self.text[:], self.fired[:], self._past[:]
        copy._emitter, copy._followed = self._emitter.clone(), self._followed
        copy._nodes, copy._given = self._nodes, self._given
        copy._snapshots, copy._told = self._snapshots[:], self._told
        return copy


_CERTAIN = (ROOT,)
