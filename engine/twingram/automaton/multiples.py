"""Multiples of a decimal as byte automata.

In: a step above zero. Out: the automaton of its multiples, written without an exponent: `0.75` for a step of 0.25.

Method: with k digits after the step's point, x is a multiple if x * 10^k is one of m = step * 10^k. A state is what is
left over from m of the digits read so far, and how many of them stood after the point; missing ones count as zeros.
Cost: m * (k + 2) states, kept within `Limits.automaton_states`.
"""

from __future__ import annotations

from fractions import Fraction

from ..limits import DEFAULT_LIMITS, Limits
from .dfa import Dfa, check_states, from_draft
from .digits import MINUS, POINT, ZERO
from .kept import kept
from .runs import Draft, Row, merge_runs

__all__ = ["multiples_dfa"]


@kept
def multiples_dfa(step: Fraction, *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The multiples of a decimal, at most as many digits after the point as the step has."""
    places = 0
    while (step * 10**places).denominator != 1:
        places += 1
        check_states(places, limits)
    whole = int(step * 10**places)
    check_states(whole * (places + 2), limits)
    first = 4  # dead, start, behind the sign, after a zero; then (digits after the point, rest)

    def state(digits: int, rest: int) -> int:
        return first + digits * whole + rest

    def digits_of(rest: int, after: int) -> list[tuple[int, int, int]]:
        return [(ZERO + d, ZERO + d, state(after, (rest * 10 + d) % whole)) for d in range(10)]

    point = first + (places + 1) * whole  # behind the point: a digit has to follow
    leading = [(ZERO, ZERO, 3), *((ZERO + d, ZERO + d, state(0, d % whole)) for d in range(1, 10))]
    rows: list[Row] = [(), merge_runs([(MINUS, MINUS, 2), *leading]), merge_runs(leading)]
    rows.append(merge_runs([(POINT, POINT, point)] if places else []))
    accept = [0, 0, 0, 1]
    for digits in range(places + 1):
        for rest in range(whole):
            moves = digits_of(rest, digits if digits == 0 else digits + 1) if digits == 0 or digits < places else []
            if digits == 0 and places:
                moves = [(POINT, POINT, point + rest), *moves]
            rows.append(merge_runs(moves))
            accept.append(int(rest * 10 ** (places - digits) % whole == 0))
    if places:
        rows += [merge_runs(digits_of(rest, 1)) for rest in range(whole)]
        accept += [0] * whole
    boundary = [0] + [1] * (len(rows) - 1)
    return from_draft(Draft(rows, accept, boundary, 1))
