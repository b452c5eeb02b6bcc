"""Number ranges: every integer of an interval, random decimals, what a reader's doubles make of them."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twingram.automaton.dfa import Dfa, difference, intersect, literals
from twingram.automaton.numbers import integer_dfa, number_dfa
from twingram.errors import LimitExceeded
from twingram.limits import Limits

INTEGERS = range(-1200, 1201)
EDGES = [None, -1200, -1000, -999, -123, -100, -99, -10, -9, -1, 0, 1, 2, 9, 10, 11, 99, 100, 101, 345, 999, 1000, 1199]
NOT_CANONICAL = [b"", b"-", b"-0", b"00", b"01", b"-01", b"+1", b"1.0", b"1e2", b" 1", b"1 ", b"0x1", b"\xd9\xa1"]


def integers_of(dfa: Dfa) -> set[int]:
    return {number for number in INTEGERS if dfa.matches(b"%d" % number)}


@pytest.mark.parametrize("minimum", EDGES)
def test_every_integer_in_every_range(minimum: int | None) -> None:
    for maximum in EDGES:
        low, high = minimum if minimum is not None else -1200, maximum if maximum is not None else 1200
        dfa = integer_dfa(minimum, maximum)
        assert integers_of(dfa) == set(range(low, high + 1)), (minimum, maximum)
        assert not any(map(dfa.matches, NOT_CANONICAL))
        if minimum is not None and maximum is not None:
            assert dfa is literals(b"%d" % number for number in range(low, high + 1))


@given(st.sampled_from(EDGES), st.sampled_from(EDGES), st.integers(1, 150))
def test_multiples(minimum: int | None, maximum: int | None, step: int) -> None:
    dfa = integer_dfa(minimum, maximum, step)
    low, high = minimum if minimum is not None else -1200, maximum if maximum is not None else 1200
    assert integers_of(dfa) == {number for number in range(low, high + 1) if number % step == 0}
    assert not any(map(dfa.matches, NOT_CANONICAL))
    assert dfa is integer_dfa(minimum, maximum, -step)


@given(st.integers(-(10**60), 10**60), st.integers(0, 10**60), st.integers(-5, 5))
def test_large_bounds_are_exact(minimum: int, width: int, offset: int) -> None:
    maximum = minimum + width
    dfa = integer_dfa(minimum, maximum)
    for number in (minimum + offset, maximum + offset, minimum + width // 2, minimum - 10**60, maximum * 10 + 1, 0):
        assert dfa.matches(b"%d" % number) == (minimum <= number <= maximum)


def test_huge_bounds_and_limits() -> None:
    dfa = integer_dfa(-(10**300), 10**300 - 1)
    assert dfa.matches(b"9" * 300)
    assert not dfa.matches(b"1" + b"0" * 300)
    assert dfa.matches(b"-1" + b"0" * 300)
    assert integer_dfa(7, 10**30, 10**29).matches(b"9" + b"0" * 29)
    small = Limits(automaton_states=50)
    for bounds in ((0, 10**100, None), (0, None, 97), (0, 10**9, 997)):
        with pytest.raises(LimitExceeded, match="automaton_states = 50"):
            integer_dfa(*bounds, limits=small)
    with pytest.raises(LimitExceeded):
        integer_dfa(None, None, 10**6)
    with pytest.raises(LimitExceeded):
        number_dfa(Decimal("1e-30000"))


def test_what_has_no_numbers() -> None:
    two = Decimal(2)
    for dfa in (integer_dfa(3, 2), integer_dfa(11, 19, 10), number_dfa(Decimal(3), False, two),
                number_dfa(two, True, two), number_dfa(two, False, two, True)):  # fmt: skip
        assert dfa.start == 0
    with pytest.raises(ValueError, match="not zero"):
        integer_dfa(0, 9, 0)
    with pytest.raises(ValueError, match="finite"):
        number_dfa(Decimal("NaN"))


GENERAL = re.compile(r"-?[1-9][0-9]*|0|-?(?:0|[1-9][0-9]{0,199})(?=[.eE])(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")


@given(st.text("-+0123456789.eE", max_size=9))
def test_unbounded_numbers_against_a_pattern(text: str) -> None:
    data = text.encode()
    assert number_dfa().matches(data) == (GENERAL.fullmatch(text) is not None)
    assert number_dfa(exponent=False).matches(data) == (GENERAL.fullmatch(text) is not None and "e" not in text.lower())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_of_two_exponent_digits_is_written(value: float) -> None:
    text = repr(value)
    if re.search(r"e[+-]\d{3}", text) is None:
        assert number_dfa().matches(text.encode())


def test_digits_before_the_point_are_limited_so_that_all_is_finite() -> None:
    dfa = number_dfa()
    assert dfa.matches(b"9" * 200 + b".5e99")
    assert not dfa.matches(b"9" * 201 + b".5")
    assert not dfa.matches(b"9" * 201 + b"e9")
    assert dfa.matches(b"9" * 5000)
    assert float("9" * 200 + ".5e99") < float("inf")
    assert all(dfa.matches(text) for text in (b"-0.0", b"-0.5", b"0e5"))
    assert not any(dfa.matches(text) for text in (b"-0", b".5", b"5.", b"01.5"))


_BOUNDS = st.sampled_from(
    [None, *map(Decimal, ("-1000", "-90", "-10", "-1.5", "-0.05", "0", "0.001", "0.5", "1", "2.50", "9.99", "10",
                          "99.5", "1E+3", "12345.678"))]
)  # fmt: skip


@st.composite
def _spellings(draw: st.DrawFn, bounds: tuple[Decimal | None, Decimal | None]) -> str:
    """A JSON number near a bound or anywhere, as plain decimal or with an exponent."""
    near = draw(st.sampled_from([*(bound for bound in bounds if bound is not None), Decimal(0), Decimal(50)]))
    value = near + draw(st.integers(-30, 30)) * Decimal(10) ** draw(st.integers(-6, 3))
    if draw(st.booleans()):
        text = f"{value:f}"
        return text if "." not in text or draw(st.booleans()) else text + "0" * draw(st.integers(0, 3))
    mantissa, power = f"{value:e}".split("e")
    power = str(int(power)) if draw(st.booleans()) else power
    return mantissa + draw(st.sampled_from("eE")) + power


@given(st.data(), _BOUNDS, st.booleans(), _BOUNDS, st.booleans())
def test_bounded_numbers_against_decimals(
    data: st.DataObject, minimum: Decimal | None, above: bool, maximum: Decimal | None, below: bool
) -> None:
    dfa = number_dfa(minimum, above, maximum, below)
    bounded = [bound for bound in (minimum, maximum) if bound is not None]
    for _ in range(12):
        text = data.draw(_spellings((minimum, maximum)))
        value = Decimal(text)
        within = (minimum is None or (value > minimum if above else value >= minimum)) and (
            maximum is None or (value < maximum if below else value <= maximum)
        )
        if not GENERAL.fullmatch(text):
            assert not dfa.matches(text.encode())
        elif "e" in text.lower() and value == 0 and any(bounded):
            assert not dfa.matches(text.encode()) or within  # `0e5`: admitted where only the sign is bounded
        elif text.startswith("-0") and value == 0:
            assert not dfa.matches(text.encode()) or within
        else:
            assert dfa.matches(text.encode()) == within, (text, minimum, above, maximum, below)


@given(st.floats(-1e6, 1e6), st.booleans(), st.integers(1, 3), st.sampled_from(["5", "0" * 21 + "1", "9" * 18]))
def test_no_text_rounds_onto_an_exclusive_bound(bound: float, up: bool, cut: int, tail: str) -> None:
    exact = Decimal(repr(bound))
    dfa = number_dfa(exact, True) if up else number_dfa(None, False, exact, True)
    digits = f"{exact:f}"
    for text in (digits, digits + "0", digits + tail, digits[:-cut] + tail, digits + "." * ("." not in digits) + tail):
        if GENERAL.fullmatch(text) and dfa.matches(text.encode()):
            value = json.loads(text)
            assert value > bound if up else value < bound, text


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.booleans(), st.booleans())
def test_every_double_within_the_bounds_is_written(
    low: float, high: float, value: float, above: bool, below: bool
) -> None:
    dfa = number_dfa(Decimal(repr(low)), above, Decimal(repr(high)), below)
    within = (value > low if above else value >= low) and (value < high if below else value <= high)
    text = repr(value)
    if re.search(r"e[+-]\d{3}", text) is None and not (above and low == 0 and 0 < value < 1e-200) and text != "-0.0":
        assert dfa.matches(text.encode()) == within


def test_walks_stay_within_the_bounds() -> None:
    """Random texts of the automata themselves, read as JSON."""
    chance = random.Random(11)
    cases = [(None, 0, None, 0), ("0", 1, None, 0), ("-1", 0, "1", 1), ("0.1", 1, "0.3", 1),
             ("99.5", 0, "12345.6789", 0), (None, 0, "-3", 1), ("1e-7", 0, "1e-5", 0), ("1e20", 0, None, 0),
             ("-180", 0, "180", 0), ("5", 0, "5", 0)]  # fmt: skip
    for minimum, above, maximum, below in cases:
        low, high = (Decimal(bound) if bound is not None else None for bound in (minimum, maximum))
        dfa = number_dfa(low, bool(above), high, bool(below))
        for _ in range(300):
            text = walk(dfa, chance)
            value = json.loads(text)
            assert low is None or (value > float(low) if above else value >= float(low)), (text, minimum)
            assert high is None or (value < float(high) if below else value <= float(high)), (text, maximum)
            assert abs(value) < float("inf")


def walk(dfa: Dfa, chance: random.Random) -> bytes:
    state, text = dfa.start, bytearray()
    while not (dfa.accept[state] and chance.random() < 0.2):
        moves = [(byte, target) for byte, target in enumerate(dfa.rows[state]) if target]
        if len(text) > 30 or not moves:
            moves = [(b, t) for b, t in moves if dfa.shortest[t] < dfa.shortest[state]]
            if not moves:
                break
        byte, state = chance.choice(moves)
        text.append(byte)
    return bytes(text)


def test_integers_are_numbers() -> None:
    for bounds in ((None, None), (0, 10), (-5, None), (17, 99)):
        low, high = (None if bound is None else Decimal(bound) for bound in bounds)
        assert difference(integer_dfa(*bounds), number_dfa(low, False, high)).start == 0
        both = intersect(number_dfa(low, False, high), integer_dfa(None, None))
        assert both is integer_dfa(*bounds)


def test_ranges_are_kept() -> None:
    assert number_dfa(Decimal(1)) is number_dfa(Decimal("1.0"))
    assert integer_dfa(1, 5) is integer_dfa(1, 5)
