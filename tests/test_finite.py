"""Numbers that are surely finite: the language itself, and reader and mask that agree on it."""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.oracle.atem import reads_as
from tests.spelt import ATEM, of_x
from twingram.automaton.dfa import difference
from twingram.automaton.finite import finite_dfa, is_finite
from twingram.automaton.numbers import number_dfa
from twingram.session.casts import cast_raw

WHOLE = ["0", "1", "9", "12345678", "123456789", "9" * 199, "9" * 200, "9" * 201, "9" * 308, "9" * 309, "007", ""]
FRACTIONS = ["", ".", ".0", ".5", ".7976931348623157", ".79769313486231570", ".7976931348623158", ".8", ".79", ".69"]
POWERS = ["", "e", "e5", "E+99", "e100", "e299", "e300", "e307", "e308", "e309", "e999", "e-999", "e+0007", "e+00308"]
BORDERS = [s + w + f + p for s in ("", "-") for w in WHOLE for f in FRACTIONS for p in POWERS]
OTHERS = ["1e", "+1", "--1", "1e1.5", "NaN", "Infinity", "0x1", "1 2", "1_0", "", "-", "e5", ".5", "true", "null", "é"]
FREE = [{"type": ["string", "number"]}, {"type": ["string", "array"]}, {"type": ["string", "integer", "object"]}, True]
FEW = {"array": [[0.25]], "object": [{"k": 0.25}], "number": [0.25], "integer": [77]}
UNIONS = [("number",), ("integer",), ("number", "array"), ("object",), ("integer", "array", "object")]


def test_what_it_holds_is_finite() -> None:
    for number in BORDERS + OTHERS:
        assert finite_dfa().matches(number.encode()) is is_finite(number), number
        assert is_finite(number) is (reads_as(number) in ("integer", "number")), number
        if is_finite(number):
            json.loads(number, parse_int=lambda _: 0)
            assert number.lstrip("-").isdigit() or math.isfinite(float(number)), number


def test_what_surely_is_finite_is_in_it() -> None:
    rng = random.Random(1)
    doubles = [struct.unpack("d", rng.randbytes(8))[0] for _ in range(5000)]
    for number in (*filter(math.isfinite, doubles), sys.float_info.max, -sys.float_info.max, 5e-324, 0.0, -0.0):
        assert is_finite(repr(number)), number
        assert is_finite(repr(number).replace("+", "")), number
    assert is_finite("-" + "9" * 100_000)
    assert not difference(number_dfa(), finite_dfa()).start, "masks write no other number"


@pytest.mark.parametrize("types", UNIONS, ids=str)
@pytest.mark.parametrize("form", ["{}", " {}\n", "[{}]", '{{"a": [1, {}]}}', "{}x"])
def test_readers_and_masks_agree(types: tuple[str, ...], form: str) -> None:
    """A text is written as a string just where it is read as one."""
    rest = [{"type": kind, "enum": FEW[kind]} for kind in types]
    made = ATEM.compile(of_x({"anyOf": [{"type": "string"}, *rest]}))
    assert {found.status for found in made.findings if found.path == "$.properties.x"} <= {"enforced"}
    before, _, after = ATEM.render({"x": "%"}).partition("%")
    start = ATEM.machine(made).start.run(ATEM.symbols(before))
    assert start is not None
    admitted = frozenset({"string", *types, *(("integer",) if "number" in types else ())})
    for number in BORDERS[::11] + OTHERS:
        text = form.format(number)
        found = start.state.run(ATEM.symbols(text + after))
        written = found is not None and found.state.accepting
        assert written is cast_raw(text, admitted, 500).startswith('"'), text


@pytest.mark.parametrize("schema", FREE, ids=str)
def test_free_unions_are_exact(schema: Any) -> None:
    made = ATEM.compile(of_x(schema))
    assert {found.status for found in made.findings if found.path == "$.properties.x"} <= {"enforced"}
    for text in ("1e999", "9" * 250 + ".5", "[1e999]", '{"a": -1e400}'):
        assert ATEM.admits(made, {"x": text})


@given(st.from_regex(r"-?[0-9]{1,12}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_random_numbers(number: str) -> None:
    assert finite_dfa().matches(number.encode()) is is_finite(number)
    if is_finite(number):
        assert number.lstrip("-").isdigit() or math.isfinite(float(number))
    kept = cast_raw(number, frozenset({"string", "integer", "number"}), 500)
    assert kept == (number if is_finite(number) else json.dumps(number))


@pytest.mark.parametrize("limit", [{"maxLength": 205}, {"minLength": 7}, {"pattern": "^[0-9e.]+$"}], ids=str)
def test_restricted_strings_beside_numbers_are_exact(limit: dict[str, Any]) -> None:
    made = ATEM.compile(of_x({"anyOf": [{"type": "string", **limit}, {"enum": [0.25]}]}))
    assert {found.status for found in made.findings if found.path.startswith("$.properties.x")} == {"enforced"}
    wanted = Draft202012Validator(limit)
    admitted = frozenset({"string", "integer", "number"})
    for number in BORDERS[::7] + OTHERS:
        written = wanted.is_valid(number) and cast_raw(number, admitted, 500).startswith('"')
        assert ATEM.admits(made, {"x": number}) is written, number
