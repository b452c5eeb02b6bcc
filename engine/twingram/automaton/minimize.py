"""The smallest automaton of a draft: trim, merge, number.

In: any `Draft`. Out: the smallest draft of the same language and the same boundary flags, in which every state but 0 is
reached from the start and reaches acceptance, numbered breadth first in the order of the letters. So two drafts of one
language come out equal, part for part.

Method: strongly connected components, those that lead nowhere else first. When a component is met, all states behind it
are known by their final names. A state on no cycle is then decided by its row alone: one look-up. A cycle is refined
from within (Moore), and then either all of it equals states already named or none does, which a walk over pairs tells
(if one of its states equals a named one, so does every state that it reaches, hence all).
Cost: linear, times the rounds of refinement inside a cycle; states start out told apart by their shortest words.
Source: E. F. Moore, "Gedanken-experiments on Sequential Machines" (1956); R. E. Tarjan, "Depth-First Search and Linear
Graph Algorithms" (1972); J. E. Hopcroft, R. M. Karp, "A Linear Algorithm for Testing Equivalence of Finite Automata"
(1971).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .runs import EMPTY_DRAFT, Draft, Row, merge_runs, number

__all__ = ["minimize"]

_ANY = 0  # stands for "whatever the targets are": no live state leads to the dead one by a run


def minimize(draft: Draft) -> Draft:
    """The smallest equal automaton, trimmed and in canonical order."""
    shortest = _shortest(draft, _reachable(draft))
    if draft.start not in shortest:
        return EMPTY_DRAFT
    merged = _Merged(draft, shortest)
    for component in _components(draft, shortest):
        state = component[0]
        if len(component) > 1 or any(target == state for _, _, target in draft.rows[state]):
            merged.add_cycle(component)
        else:
            merged.add(state)
    return number(Draft(merged.rows, merged.accept, merged.boundary, merged.names[draft.start]))


def _reachable(draft: Draft) -> list[int]:
    order = [draft.start]
    seen = {0, draft.start}
    for state in order:
        for _, _, target in draft.rows[state]:
            if target not in seen:
                seen.add(target)
                order.append(target)
    return order


def _shortest(draft: Draft, states: Sequence[int]) -> dict[int, int]:
    """Length of the shortest word of each state that has one."""
    sources: dict[int, list[int]] = {}
    for state in states:
        for _, _, target in draft.rows[state]:
            sources.setdefault(target, []).append(state)
    lengths = {state: 0 for state in states if state and draft.accept[state]}
    order = list(lengths)
    for state in order:
        for source in sources.get(state, ()):
            if source not in lengths:
                lengths[source] = lengths[state] + 1
                order.append(source)
    return lengths


def _components(draft: Draft, live: dict[int, int]) -> Iterator[list[int]]:
    """Strongly connected components of the live states, each after all that it leads to (Tarjan, without recursion)."""
    rows = draft.rows
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    closed: set[int] = set()
    path = [(draft.start, iter(rows[draft.start]))]
    index[draft.start] = lowest[draft.start] = 0
    stack.append(draft.start)
    while path:
        state, runs = path[-1]
        for _, _, target in runs:
            if target not in live or target in closed:
                continue
            if target not in index:
                index[target] = lowest[target] = len(index)
                stack.append(target)
                path.append((target, iter(rows[target])))
                break
            lowest[state] = min(lowest[state], index[target])
        else:
            path.pop()
            if path:
                above = path[-1][0]
                lowest[above] = min(lowest[above], lowest[state])
            if lowest[state] == index[state]:
                place = _last_index(stack, state)
                component = stack[place:]
                del stack[place:]
                closed.update(component)
                yield component


def _last_index(stack: list[int], state: int) -> int:
    place = len(stack) - 1
    while stack[place] != state:
        place -= 1
    return place


class _Merged:
    """States that are final so far. `names` leads from a state of the draft to its final one."""

    def __init__(self, draft: Draft, shortest: dict[int, int]) -> None:
        self.draft, self.shortest = draft, shortest
        self.names: dict[int, int] = {}
        self.rows: list[Row] = [()]
        self.accept, self.boundary = [0], [0]
        self._register: dict[tuple[Row, int, int], int] = {}
        self._cyclic: dict[tuple[int, ...], list[int]] = {}  # (marks of a state, a target of its) -> such final states

    def add(self, state: int) -> None:
        """A state on no cycle."""
        row = merge_runs([(low, high, self.names.get(t, 0)) for low, high, t in self.draft.rows[state]])
        self.names[state] = self._name(row, self.draft.accept[state], self.draft.boundary[state])

    def _name(self, row: Row, accept: int, boundary: int) -> int:
        key = (row, accept, boundary)
        name = self._register.get(key)
        if name is None:
            name = self._register[key] = len(self.rows)
            self.rows.append(row)
            self.accept.append(accept)
            self.boundary.append(boundary)
        return name

    def add_cycle(self, component: list[int]) -> None:
        """All states of a cycle. Until they are final, their blocks are named below zero."""
        blocks = self._refine(component)
        local = {blocks[state]: state for state in component}  # block -> one of its states
        rows = {block: self._signature(state, blocks) for block, state in local.items()}
        known = self._find(local, rows)
        if known is None:
            known = {block: len(self.rows) + place for place, block in enumerate(local)}
            for block, state in local.items():
                row = merge_runs([(low, high, known.get(t, t)) for low, high, t in rows[block]])
                self._name(row, self.draft.accept[state], self.draft.boundary[state])
                marks = self._marks(state)
                for target in {_ANY, *(target for _, _, target in row)}:
                    self._cyclic.setdefault((*marks, target), []).append(known[block])
        for state in component:
            self.names[state] = known[blocks[state]]

    def _marks(self, state: int) -> tuple[int, int, int]:
        return self.draft.accept[state], self.draft.boundary[state], self.shortest[state]

    def _signature(self, state: int, blocks: dict[int, int]) -> Row:
        names = self.names
        return merge_runs([(low, high, blocks.get(t) or names.get(t, 0)) for low, high, t in self.draft.rows[state]])

    def _refine(self, component: list[int]) -> dict[int, int]:
        members: dict[tuple[int, int, int], list[int]] = {}
        for state in component:
            members.setdefault(self._marks(state), []).append(state)
        blocks = {state: -1 - place for place, group in enumerate(members.values()) for state in group}
        count, undecided = len(members), [group for group in members.values() if len(group) > 1]
        while undecided:
            before, rest = count, []
            for states in undecided:
                parts: dict[Row, list[int]] = {}
                for state in states:
                    parts.setdefault(self._signature(state, blocks), []).append(state)
                groups = list(parts.values())
                for group in groups[1:]:
                    count += 1
                    blocks.update(dict.fromkeys(group, -count))
                rest += [group for group in groups if len(group) > 1]
            if count == before:
                break
            undecided = rest
        return blocks

    def _find(self, local: dict[int, int], rows: dict[int, Row]) -> dict[int, int] | None:
        """The final states that equal these blocks, if there are any: block -> final state."""
        block, candidates = self._likely(local, rows)
        for candidate in candidates:
            found = self._walk(block, candidate, local, rows)
            if found is not None:
                return found
        return None

    def _likely(self, local: dict[int, int], rows: dict[int, Row]) -> tuple[int, Sequence[int]]:
        """A block and the final states that it may equal, as few as can be told from one target that is final."""
        found: tuple[int, Sequence[int]] | None = None
        for block, state in local.items():
            marks = self._marks(state)
            for target in {_ANY, *(target for _, _, target in rows[block] if target > 0)}:
                candidates = self._cyclic.get((*marks, target), ())
                if found is None or len(candidates) < len(found[1]):
                    found = block, candidates
                if len(candidates) < 2:
                    return block, candidates
        assert found is not None
        return found

    def _walk(self, block: int, final: int, local: dict[int, int], rows: dict[int, Row]) -> dict[int, int] | None:
        known = {block: final}
        todo = [block]
        for at in todo:
            state, other = local[at], known[at]
            if self.draft.accept[state] != self.accept[other] or self.draft.boundary[state] != self.boundary[other]:
                return None
            pairs = _pairs(rows[at], self.rows[other])
            if pairs is None:
                return None
            for ours, theirs in pairs:
                if ours < 0 and ours not in known:
                    known[ours] = theirs
                    todo.append(ours)
                elif known.get(ours, ours) != theirs:
                    return None
        return known


def _pairs(a: Row, b: Row) -> list[tuple[int, int]] | None:
    """The targets of two rows side by side; None if one of them is dead where the other is not."""
    found = []
    i = j = 0
    low = -1
    while i < len(a) and j < len(b):
        if max(a[i][0], low) != max(b[j][0], low):
            return None
        found.append((a[i][2], b[j][2]))
        low = min(a[i][1], b[j][1]) + 1
        i, j = i + (a[i][1] < low), j + (b[j][1] < low)
    return found if i == len(a) and j == len(b) else None
