"""The reader: a position in the automaton, its track, the text so far, and the emitter behind it.

In: transitions. Out: deltas, on request. Parser and session are both thin layers on this one: that is what keeps them
from drifting apart.

Deltas are a function of the position alone: they are worked out when asked for, from the last place where they were.
After a rollback the emitter is rebuilt from the last snapshot that is still in the past, so what had been given out for
tokens that are now undone is simply given again when they are accepted again.
Invariants: `text` holds exactly the decoded bytes of what was read; a snapshot is never changed.
Cost: reading a token is a dictionary look-up, two appends and an addition; deltas cost what they emit.
"""

from __future__ import annotations

from ..automaton.machine import State, Transition
from ..automaton.tags import Tag
from .deltas import Delta
from .emitter import Emitter
from .track import ROOT, Node, collect, common, extend, first_after

__all__ = ["Reader"]

Snapshot = tuple[int, Node, int, Emitter]  # (steps taken, tags given, text given up to, the emitter then)


class Reader:
    """Reads one turn. `steps` is the number of transitions taken."""

    __slots__ = ("_emitter", "_given", "_past", "_snapshots", "_upto", "nodes", "position", "state", "text")

    def __init__(self, start: State, emitter: Emitter) -> None:
        self.state = start
        self.nodes: tuple[Node, ...] = (ROOT,) * len(start.threads)
        self.position = 0
        self.text = bytearray()
        self._past: list[tuple[State, tuple[Node, ...], int]] = []
        self._emitter, self._given, self._upto = emitter, ROOT, 0
        self._snapshots: list[Snapshot] = [(0, ROOT, 0, emitter.clone())]

    @property
    def steps(self) -> int:
        return len(self._past)

    def take(self, transition: Transition, data: bytes) -> None:
        """Follow a transition that read `data`."""
        position = self.position
        self._past.append((self.state, self.nodes, position))
        if transition.moves is not None:  # as `follow` does it: a call less for each token
            self.nodes = extend(self.nodes, transition.moves, position)
        self.state = transition.state
        self.text += data
        self.position = position + len(data)

    def follow(self, transition: Transition, data: bytes) -> None:
        """As `take`, but not to be rolled back."""
        if transition.moves is not None:
            self.nodes = extend(self.nodes, transition.moves, self.position)
        self.state = transition.state
        self.text += data
        self.position += len(data)

    def read(self, data: bytes) -> int:
        """Follow the bytes one by one; how many were read before nothing went on. Not to be rolled back."""
        state, nodes, position = self.state, self.nodes, self.position
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
                nodes = extend(nodes, step.moves, position + at)
            state = step.state
        self.state, self.nodes, self.position = state, nodes, position + read
        self.text += data[:read]
        return read

    def deltas(self) -> list[Delta]:
        """What has become certain since the last call."""
        nodes = self.nodes
        if len(nodes) == 1:  # no choice is open: everything read so far is certain
            return self._advance(nodes[0], self.position)
        shared = common(nodes)
        return self._advance(shared, first_after(nodes, shared, self.position))

    def _advance(self, shared: Node, upto: int) -> list[Delta]:
        if shared is self._given and upto == self._upto:
            return []
        events = collect(shared, self._given) if shared is not self._given else ()
        out = self._emitter.advance(self.text, events, upto)
        self._given, self._upto = shared, upto
        return out

    def snapshot(self) -> None:
        """Remember the emitter as it is now, so that a later rollback to here or further costs little."""
        if self._snapshots[-1][0] != self.steps:
            self._snapshots.append((self.steps, self._given, self._upto, self._emitter.clone()))

    def rollback(self, count: int) -> None:
        """Undo the last `count` transitions."""
        if not count:
            return
        self.state, self.nodes, self.position = self._past[-count]
        del self._past[-count:]
        del self.text[self.position :]
        if self._snapshots[-1][0] <= self.steps:
            return  # nothing that is undone has been given out
        while self._snapshots[-1][0] > self.steps:
            self._snapshots.pop()
        _, self._given, self._upto, emitter = self._snapshots[-1]
        self._emitter = emitter.clone()
        self.deltas()  # what was given out up to here stays given out
        self.snapshot()

    def finish(self, reason: str | None) -> list[Delta]:
        """The end of the output here."""
        out = self._advance(self._ending(), self.position)
        return out + self._emitter.finish(self.text, self.position, reason)

    def _ending(self) -> Node:
        """The track if the output ends here: the preferred reading that may end wins; if none may, the preferred one
        is cut."""
        ways = [(thread, tags) for thread, tags in enumerate(self.state.ends) if tags is not None]
        best, ending = ways[0] if ways else (0, ())
        node = self.nodes[best]
        for tag in ending:
            node = Node(node, tag, self.position)
        return node

    def tags(self) -> list[tuple[Tag, int]]:
        """All tags of the turn with their places, if the output ends here."""
        return collect(self._ending(), ROOT)

    def replay(self, emitter: Emitter, *, ended: bool) -> list[Delta]:
        """All deltas up to here, from a new emitter."""
        shared = common(self.nodes)
        out = emitter.advance(self.text, collect(shared, ROOT), first_after(self.nodes, shared, self.position))
        return out + emitter.finish(self.text, self.position, None) if ended else out

    def fork(self) -> Reader:
        """A copy that goes on by itself."""
        copy = Reader.__new__(Reader)
        copy.state, copy.nodes, copy.position = self.state, self.nodes, self.position
        copy.text, copy._past = self.text[:], self._past[:]
        copy._emitter, copy._given, copy._upto = self._emitter.clone(), self._given, self._upto
        copy._snapshots = self._snapshots[:]
        return copy
