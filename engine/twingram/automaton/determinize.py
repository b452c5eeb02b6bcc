"""Regular expression trees to minimal automata over classes of characters.

In: a `Tree`. Out: a minimal `Draft` whose letters are classes, and the `Partition` that names them.

Method: the tree becomes a program of a nondeterministic machine (one instruction a character set, counted repetitions
unrolled). A configuration is a place in the program, what the previous character was (as far as an assertion asks), and
the look-aheads still open, each as a state of its own small deterministic automaton: one that is fulfilled is dropped,
one that is violated kills its configuration. States of the result are sets of configurations, kept as bit sets; moves
of a configuration are computed once. So anchors, word boundaries and look-aheads may stand anywhere, loops included.
Cost: states times configurations times classes; exponential in the worst case, which `Limits.automaton_states` ends.
Source: K. Thompson, "Regular Expression Search Algorithm" (1968); M. O. Rabin, D. Scott (1959).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..limits import Limits
from .charset import ANY, CharSet, Partition, partition
from .dfa import check_states
from .minimize import minimize
from .runs import EMPTY_DRAFT, Draft, Row, row_of
from .tree import ANYTHING, Anchor, Chars, Choice, Concat, Look, Repeat, Tree

__all__ = ["complement_draft", "determinize"]

_CHAR, _FORK, _ANCHOR, _LOOK, _MATCH = range(5)
_START, _WORD, _BREAK = 1, 2, 4  # what may be known of the previous character; of the next one: _WORD, _BREAK

_WORK_PER_STATE = 16  # configurations a state, on average, before a pattern counts as too large

Owed = frozenset[tuple[int, int]]  # open look-aheads: (index in `_Looks.automata`, state)
_NOTHING_OWED: Owed = frozenset()


class _Instruction(NamedTuple):
    code: int
    value: int | str  # character set, anchor kind, look-ahead
    targets: tuple[int, ...]


class _Program:
    """Instructions of one tree; look-aheads are programs of their own. `sets` is shared by all of one pattern."""

    def __init__(self, tree: Tree, sets: dict[CharSet, int], limits: Limits) -> None:
        self.sets, self.limits = sets, limits
        self.code: list[_Instruction] = [_Instruction(_MATCH, 0, ())]
        self.looks: list[tuple[_Program, bool]] = []  # (program, negative)
        self.known = 0  # which facts about neighbours matter
        self.words: CharSet = ()
        self.breaks: CharSet = ()
        self.endless: set[int] = set()  # places from which every text is accepted
        self._places: dict[_Instruction, int] = {}
        self._loops: dict[tuple[Tree, int], int] = {}
        self._unrolled = 0
        self.start = self._emit(tree, 0)

    def _add(self, code: int, value: int | str, *targets: int) -> int:
        """The place of an instruction. Alternatives that end alike share their ends: equal instructions are one."""
        self._unrolled += 1
        check_states(self._unrolled // 4, self.limits)
        instruction = _Instruction(code, value, targets)
        place = self._places.get(instruction)
        if place is None:
            place = self._places[instruction] = len(self.code)
            self.code.append(instruction)
        return place

    def _emit(self, tree: Tree, then: int) -> int:
        """Adds the instructions of `tree`, followed by the place `then`; returns where they start."""
        if isinstance(tree, Chars):
            return self._add(_CHAR, self.sets.setdefault(tree.chars, len(self.sets)), then)
        if isinstance(tree, Concat):
            for item in reversed(tree.items):
                then = self._emit(item, then)
            return then
        if isinstance(tree, Choice):
            return self._add(_FORK, 0, *[self._emit(item, then) for item in tree.items])
        if isinstance(tree, Repeat):
            return self._repeat(tree, then)
        if isinstance(tree, Look):
            return self._look(tree, then)
        return self._anchor(tree, then)

    def _repeat(self, tree: Repeat, then: int) -> int:
        if tree.high is None:
            then = self._loop(tree.item, then)
        else:
            end = then
            for _ in range(tree.high - tree.low):
                then = self._add(_FORK, 0, self._emit(tree.item, then), end)
        for _ in range(tree.low):
            then = self._emit(tree.item, then)
        return then

    def _loop(self, item: Tree, then: int) -> int:
        """Any number of an item."""
        loop = self._loops.get((item, then))
        if loop is None:
            loop = self._loops[item, then] = len(self.code)
            self.code.append(_Instruction(_FORK, 0, ()))  # not known yet
            self.code[loop] = _Instruction(_FORK, 0, (self._emit(item, loop), then))
            if item == ANYTHING.item and self.code[then].code == _MATCH:
                self.endless.add(loop)
        return loop

    def _look(self, tree: Look, then: int) -> int:
        inner = _Program(Concat((tree.item, ANYTHING)), self.sets, self.limits)
        self.looks.append((inner, tree.negative))
        self.known |= inner.known
        self.words, self.breaks = self.words or inner.words, self.breaks or inner.breaks
        return self._add(_LOOK, len(self.looks) - 1, then)

    def _anchor(self, tree: Anchor, then: int) -> int:
        if tree.kind in ("word", "notword"):
            self.known |= _WORD
            self.words = tree.chars
        elif tree.kind in ("line_start", "line_end"):
            self.known |= _START | _BREAK
            self.breaks = tree.chars
        elif tree.kind == "start":
            self.known |= _START
        return self._add(_ANCHOR, tree.kind, then)


class _Classes(NamedTuple):
    """The letters, and what an assertion may want to know of them."""

    size: int
    members: tuple[tuple[int, ...], ...]  # by character set
    facts: tuple[int, ...]  # by class: _WORD, _BREAK
    groups: tuple[tuple[int, frozenset[int]], ...]  # (facts, classes that share them)


def _classes(program: _Program, parts: Partition, sets: dict[CharSet, int]) -> _Classes:
    facts = [0] * parts.size
    for chars, fact in ((program.words, _WORD), (program.breaks, _BREAK)):
        for name in parts.members[sets[chars]] if chars else ():
            facts[name] |= fact
    groups = tuple((fact, frozenset(n for n in range(parts.size) if facts[n] == fact)) for fact in sorted(set(facts)))
    return _Classes(parts.size, parts.members, tuple(facts), groups)


class _LookAutomaton(NamedTuple):
    rows: list[list[int]]  # by state, then class
    accept: list[int]
    negative: bool
    kept: int  # the state in which it is fulfilled whatever follows, -1 if there is none
    broken: int  # the state in which it is violated whatever follows, -1 if there is none


class _Machine:
    """Configurations of one program and their moves, each computed once."""

    def __init__(self, program: _Program, classes: _Classes, limits: Limits) -> None:
        self.program, self.classes, self.limits = program, classes, limits
        self._numbers: dict[tuple[int, int, Owed], int] = {}
        self._places: list[tuple[int, int, Owed]] = []
        self._moves: list[tuple[tuple[tuple[int, int], ...], int] | None] = []
        self.endless = 0  # configurations that accept every text
        self._automata: list[_LookAutomaton] = []
        self._variants: dict[tuple[int, int], int] = {}  # (look-ahead, what is known) -> automaton

    def configuration(self, place: int, known: int, owed: Owed) -> int:
        key = (place, known, owed)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._places)
            self._places.append(key)
            self._moves.append(None)
            check_states(number // 4, self.limits)
            if place in self.program.endless and not owed:
                self.endless |= 1 << number
        return number

    def moves(self, number: int) -> tuple[tuple[tuple[int, int], ...], int]:
        """((class, set of configurations) ..., whether the text may end here)"""
        found = self._moves[number]
        if found is None:
            found = self._moves[number] = self._compute(number)
        return found

    def _compute(self, number: int) -> tuple[tuple[tuple[int, int], ...], int]:
        place, known, owed = self._places[number]
        moves: dict[int, int] = {}
        groups = self.classes.groups
        for facts, names in groups:
            for at, due in self._closure(place, known, owed, facts):
                if at:
                    self._move(at, due, names if len(groups) > 1 else None, moves)
        accepts = any(not at and self._settled(due) for at, due in self._closure(place, known, owed, -1))
        return tuple(moves.items()), int(accepts)

    def _move(self, at: int, owed: Owed, names: frozenset[int] | None, moves: dict[int, int]) -> None:
        _, chars, (then,) = self.program.code[at]
        members = self.classes.members[int(chars)]
        known = self.program.known
        if not owed and not known:
            bit = 1 << self.configuration(then, 0, owed)
            for name in members:
                moves[name] = moves.get(name, 0) | bit
            return
        for name in members:
            if names is None or name in names:
                due = self._pay(owed, name)
                if due is not None:
                    bit = 1 << self.configuration(then, self.classes.facts[name] & known, due)
                    moves[name] = moves.get(name, 0) | bit

    def _closure(self, place: int, known: int, owed: Owed, facts: int) -> Iterator[tuple[int, Owed]]:
        """Where a character is read next, place 0 for the end; `facts` of the next character, -1 at the end."""
        code = self.program.code
        stack, seen = [(place, owed)], {(place, owed)}
        while stack:
            at, due = stack.pop()
            kind, value, targets = code[at]
            if kind in (_CHAR, _MATCH):
                if (kind == _MATCH) == (facts < 0):
                    yield at, due
                continue
            if kind == _ANCHOR and not _holds(str(value), known, facts):
                continue
            if kind == _LOOK:
                owing = self._owe(int(value), known, due)
                if owing is None:
                    continue
                due = owing
            for target in targets:
                if (target, due) not in seen:
                    seen.add((target, due))
                    stack.append((target, due))

    def _owe(self, look: int, known: int, owed: Owed) -> Owed | None:
        program, negative = self.program.looks[look]
        key = (look, known & program.known)
        index = self._variants.get(key)
        if index is None:
            index = self._variants[key] = len(self._automata)
            self._automata.append(_look_automaton(program, self.classes, key[1], negative, self.limits))
        automaton = self._automata[index]
        start = 1 if len(automaton.rows) > 1 else 0
        if start == automaton.broken:
            return None
        return owed if start == automaton.kept else owed | {(index, start)}

    def _pay(self, owed: Owed, name: int) -> Owed | None:
        """The look-aheads that stay open after a character of this class; None if one of them is violated."""
        if not owed:
            return owed
        rest = []
        for index, state in owed:
            automaton = self._automata[index]
            target = automaton.rows[state][name]
            if target == automaton.broken:
                return None
            if target != automaton.kept:
                rest.append((index, target))
        return frozenset(rest)

    def _settled(self, owed: Owed) -> bool:
        return all(self._automata[i].accept[state] != self._automata[i].negative for i, state in owed)


def _holds(kind: str, known: int, facts: int) -> bool:
    end = facts < 0
    if kind == "start":
        return bool(known & _START)
    if kind == "end":
        return end
    if kind == "line_start":
        return bool(known & (_START | _BREAK))
    if kind == "line_end":
        return end or bool(facts & _BREAK)
    changes = bool(known & _WORD) != (not end and bool(facts & _WORD))
    return changes == (kind == "word")


def _look_automaton(program: _Program, classes: _Classes, known: int, negative: bool, limits: Limits) -> _LookAutomaton:
    draft = _subsets(program, classes, known, limits)
    rows = [[0] * classes.size for _ in draft.rows]
    always = -1
    for state, row in enumerate(draft.rows):
        for low, high, target in row:
            rows[state][low : high + 1] = [target] * (high - low + 1)
        if draft.accept[state] and row == ((0, classes.size - 1, state),):
            always = state
    kept, broken = (0, always) if negative else (always, 0)
    return _LookAutomaton(rows, [int(flag) for flag in draft.accept], negative, kept, broken)


def _subsets(program: _Program, classes: _Classes, known: int, limits: Limits) -> Draft:
    machine = _Machine(program, classes, limits)
    start = 1 << machine.configuration(program.start, known, _NOTHING_OWED)
    numbers, order = {start: 1}, [start]
    rows: list[Row] = [()]
    accept = [0]
    work = 0
    for state in order:
        work += state.bit_count()
        check_states(work // _WORK_PER_STATE, limits)
        moves, accepts = _moves_of(machine, state)
        row = []
        for name, target in moves:
            if target & machine.endless:
                target = machine.endless & -machine.endless
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(numbers) + 1
                order.append(target)
                check_states(number, limits)
            row.append((name, number))
        rows.append(row_of(row))
        accept.append(accepts)
    return minimize(Draft(rows, accept, [0] + [1] * len(order), 1))


def _moves_of(machine: _Machine, state: int) -> tuple[list[tuple[int, int]], int]:
    merged: dict[int, int] = {}
    accepts = 0
    while state:
        bit = state & -state
        state ^= bit
        moves, ends = machine.moves(bit.bit_length() - 1)
        accepts |= ends
        for name, targets in moves:
            merged[name] = merged.get(name, 0) | targets
    return sorted(merged.items()), accepts


def determinize(tree: Tree, limits: Limits) -> tuple[Draft, Partition]:
    """The minimal automaton of the tree over the classes of the partition; empty if nothing matches."""
    sets: dict[CharSet, int] = {ANY: 0}
    program = _Program(tree, sets, limits)
    for chars in (program.words, program.breaks):
        sets.setdefault(chars, len(sets))
    parts = partition(tuple(sets))
    classes = _classes(program, parts, sets)
    return _subsets(program, classes, program.known & _START, limits), parts


def complement_draft(draft: Draft, size: int) -> Draft:
    """The automaton over `size` classes that accepts exactly what this one refuses."""
    if not draft.start:
        return Draft([(), ((0, size - 1, 1),)], [0, 1], [0, 1], 1)
    sink = len(draft.rows)
    rows: list[Row] = [()]
    for row in [*draft.rows[1:], ()]:
        targets = [sink] * size
        for low, high, target in row:
            targets[low : high + 1] = [target] * (high - low + 1)
        rows.append(row_of(enumerate(targets)))
    accept = [0, *(1 - flag for flag in draft.accept[1:]), 1]
    return minimize(Draft(rows, accept, [0] + [1] * sink, draft.start)) if any(accept) else EMPTY_DRAFT
