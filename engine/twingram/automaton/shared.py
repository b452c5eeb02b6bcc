"""Shared steps: where the meaning of placeholders has no say, all meanings take the same steps.

In: a state whose threads are bound to what a request declares, and a run of bytes. Out: where the run leads, as far as
no placeholder comes first on the way: worked out on the state of the bases, which is the same for every request, and
bound once at the end.

Invariant: state and moves are those that single steps give. So it is only done where one meaning does for all threads:
then threads that are equal as bases are equal.
Cost: a look-up a byte, and one small object a thread. The first turn of a request with new tools took up to a third
less of the processor's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .bound import Bound, Env, begins, bound
from .choice import Alt
from .expression import Expr
from .free import asked
from .moves import Move, Moves, compose
from .tags import TagKind

if TYPE_CHECKING:
    from .machine import State

__all__ = ["Shared", "plain", "run_shared", "shared_of"]


class Shared(NamedTuple):
    """The state of the bases, and the one meaning."""

    base: State
    env: Env


def shared_of(state: State) -> Shared | None:
    """None where there is no meaning, or not one for all threads."""
    envs = [thread.env for thread in state.threads if isinstance(thread, Bound)]
    if not envs or any(isinstance(thread, Alt) and thread.binding for thread in state.threads):
        return None
    env = _together(envs)
    bases = tuple(thread.base if isinstance(thread, Bound) else thread for thread in state.threads)
    if env is None or len(set(bases)) < len(bases) or any(_reads_more(each, env) for each in state.threads):
        return None
    return Shared(state.machine.state(bases), env)


def _together(envs: list[Env]) -> Env | None:
    """One meaning that says what all of them say; None if they contradict each other."""
    first = envs[0]
    if all(env is first for env in envs):
        return first
    places: dict[Expr, Expr] = {}
    for env in envs:
        for place, stands in env.places.items():
            if places.setdefault(place, stands) is not stands:
                return None
    return Env.of(places)


def _reads_more(thread: Expr, env: Env) -> bool:
    """Whether a thread would read something that it does not read now, had it this meaning."""
    return bool(asked(thread) & env.bits)


def plain(state: State) -> bool:
    """Whether no placeholder comes first in any thread."""
    for thread in state.threads:
        if isinstance(thread, Alt) and thread.binding:
            return False
        if begins(thread.base if isinstance(thread, Bound) else thread)[1]:
            return False
    return True


def _recovers(moves: tuple[Move, ...]) -> bool:
    """Whether a scope is given up: what is read then depends on the thread that recovers, and on its meaning."""
    return any(tag.kind is TagKind.ABORT for _, tags in moves for tag, _ in tags)


def run_shared(state: State, data: bytes, at: int) -> tuple[State, Moves, int] | None:
    """From `at` on as far as that is shared: where it leads, what it fires, how many bytes. None for less than two."""
    shared = state.shared
    if shared is None:
        return None
    now, begin = shared.base, at
    moves: Moves = None
    while at < len(data) and now.plain:
        step = now.step(data[at])
        if step is None:
            break
        if step.moves is not None:
            if _recovers(step.moves):
                break
            moves = compose(moves, step.moves, at - begin)
        now, at = step.state, at + 1
    if at - begin < 2:
        return None
    env = shared.env
    return state.machine.state(tuple([bound(thread, env) for thread in now.threads])), moves, at - begin
