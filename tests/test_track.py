"""Forks: what is certain of several readings, and from where on it is open, is what their whole past says."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from twingram.automaton.moves import Move
from twingram.automaton.tags import open_tag
from twingram.session.track import ROOT, Fork, Node, collect, common, extend, first_after

TAGS = [open_tag(role) for role in ("content", "tool_call", "key")]


class Step(SimpleNamespace):
    """What a fork asks of a transition."""

    __hash__ = object.__hash__
    moves: tuple[Move, ...]


def steps(rng: random.Random, count: int) -> list[Step]:
    """A few steps, taken again and again, between states of one to four readings."""
    machine = SimpleNamespace(keep_fork=lambda _start: None)
    widths = [1, *(rng.randint(1, 4) for _ in range(3))]
    known: dict[tuple[int, int], list[Step]] = {}
    out, at = [], 0
    for _ in range(count):
        after = rng.randrange(4)
        made = known.setdefault((at, after), [])
        if len(made) < 2:
            moves = tuple(_move(rng, widths[at]) for _ in range(widths[after]))
            made.append(Step(moves=moves, fork=None, state=SimpleNamespace(machine=machine)))
        out.append(rng.choice(made))
        at = after
    return out


def _move(rng: random.Random, threads: int) -> Move:
    tags = tuple((rng.choice(TAGS), offset) for offset in sorted(rng.choices((0, 1), k=rng.choice((0, 0, 1, 2)))))
    return Move(rng.randrange(threads), tags)


def test_a_fork_says_what_the_whole_past_says() -> None:
    assert sum(_forks_begun_anew(random.Random(seed)) for seed in range(60)) > 60


def _forks_begun_anew(rng: random.Random) -> int:
    nodes: tuple[Node, ...] = (ROOT,)
    told: list[Any] = []
    fork, base, anew = None, 0, 0
    for position, step in enumerate(steps(rng, 300)):
        if fork is None:
            fork, base = step.fork or Fork.of(step), position  # type: ignore[arg-type]
        else:
            fork = fork.after(step, position - base)  # type: ignore[arg-type]
            if fork.anew:
                base, anew = position, anew + 1
            base += 0 if fork.anew else fork.moved
        told += [(tag, base + offset) for tag, offset in fork.news]
        nodes = extend(nodes, step.moves, position)
        shared = common(nodes)
        assert told == collect(shared, ROOT)
        assert (None if fork.upto is None else base + fork.upto) == first_after(nodes, shared)
        if fork.level:
            fork = None
    assert told
    return anew
