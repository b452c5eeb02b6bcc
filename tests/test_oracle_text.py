"""The parts of the oracle, against brute force, `re` and `json`: numbers, patterns and text bodies."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.matcher import start
from tests.oracle.numerals import NumberRange, Numeral, exact
from tests.oracle.patterns import pattern
from tests.oracle.text import Text, TextRule


def accepted(piece: Any, data: bytes) -> bool | None:
    """None: not viable; else whether it may end."""
    state = start([piece]).run(data)
    return None if state is None else state.can_end


# Numbers


@pytest.mark.parametrize(
    ("low", "high", "step"), [(-123, 42, None), (-5, None, None), (None, -7, None), (0, 0, None), (98, 1001, 7)]
)
def test_integer_prefixes_agree_with_brute_force(low: int | None, high: int | None, step: int | None) -> None:
    bounds = NumberRange(
        True, None if low is None else exact(low), None if high is None else exact(high), multiple=step
    )
    numbers = [n for n in range(-20_000, 20_001) if (low is None or n >= low) and (high is None or n <= high)]
    texts = {str(n) for n in numbers if step is None or n % step == 0}
    prefixes = {text[:size] for text in texts for size in range(1, len(text) + 1)}
    assert Numeral(bounds).satisfiable()
    for n in range(-2100, 2101):
        for text in ("-", str(n), "-" + str(abs(n)), "0" + str(abs(n))):
            got = accepted(Numeral(bounds), text.encode())
            assert (got is not None) == (text in prefixes), text
            assert bool(got) == (text in texts), text


@pytest.mark.parametrize(("low", "high", "open_low", "open_high"), [(1, 5, False, False), (-0.5, 0.25, True, True)])
@pytest.mark.parametrize("exponent", [False, True])
def test_number_prefixes_agree_with_brute_force(
    low: float, high: float, open_low: bool, open_high: bool, exponent: bool
) -> None:
    bounds = NumberRange(False, exact(low), exact(high), open_low, open_high, exponent=exponent)
    shape = re.compile(r"(?!-0$)-?(0|[1-9]\d*)(\.\d+)?" + (r"([eE][+-]?\d{1,2})?" if exponent else ""))

    def fits(text: str) -> bool:
        value = exact(float(text)) if shape.fullmatch(text) else None
        above = value is not None and (value > exact(low) or (value == exact(low) and not open_low))
        return value is not None and above and (value < exact(high) or (value == exact(high) and not open_high))

    alphabet = "015.-" + ("e" if exponent else "")
    words = [""]
    texts = []
    for _ in range(5):
        words = [word + char for word in words for char in alphabet if re.match(r"-?(\d|$)", word + char)]
        texts += words
    good = {text for text in texts if fits(text)}
    for text in texts:
        got = accepted(Numeral(bounds), text.encode())
        assert bool(got) == (text in good), text
        if any(longer.startswith(text) for longer in good):
            assert got is not None, text


def test_numbers_have_one_spelling() -> None:
    free = NumberRange()
    for text in ("0", "-7", "1.0", "-0.0", "1e-07", "1E+22", "-0e1", "9" * 300, "1.50"):
        assert accepted(Numeral(free), text.encode()), text
    for text in ("-0", "1.", "1e", "-"):
        assert accepted(Numeral(free), text.encode()) is False, text
    for text in ("01", "+1", ".5", "1e999", "00", "-01", "9" * 201 + ".", "1.e"):
        assert accepted(Numeral(free), text.encode()) is None, text


# Patterns and text

PATTERNS = [
    "^a+$", "a|b$", "^on$|^off$", r"^\d{2,3}$", "b", "^(a|ab)(c|bcd)?$", r"\S", "[^a-c]$", "^.{1,3}$", "a*?b", "^$", "",
    "(a$|^b)", r"\w\W", "^(?:a{2}){1,2}$", "^[a-]b?$",
]  # fmt: skip


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_agree_with_re(text: str) -> None:
    rng = random.Random(text)
    meant = re.compile(text.replace("$", r"\Z"), re.ASCII)
    for _ in range(400):
        word = "".join(rng.choices("abcd1 -é", k=rng.randint(0, 6)))
        assert pattern(text).matches(word) == bool(meant.search(word)), word


@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize(("least", "most"), [(0, None), (2, 3), (0, 1)])
def test_text_viability_agrees_with_brute_force(text: str, least: int, most: int | None) -> None:
    needles = (b"ab-", b"b1")
    letters = "ab1-"
    words = [""]
    for size in range(5):
        words += [word + char for word in words if len(word) == size for char in letters]

    def fits(word: str) -> bool:
        plain = not any(needle.decode() in word for needle in needles)
        return plain and least <= len(word) <= (9 if most is None else most) and pattern(text).matches(word)

    good = {word for word in words if fits(word)}
    rule = TextRule(needles=needles, least=least, most=most, machines=((pattern(text), True),))
    for word in words:
        got = accepted(Text(rule), word.encode()) if Text(rule).satisfiable() else None
        assert bool(got) == (word in good), word
        if any(longer.startswith(word) for longer in good):
            assert got is not None, word
        if got is not None and most is not None:  # other letters may finish it: try a few
            tails = ["", *"abcd1- ", "cd", "c ", "dd", "aa", "on", "12"]
            assert any(pattern(text).matches(word + tail) for tail in tails), word


@given(st.binary(max_size=6))
def test_raw_text_is_valid_utf8(data: bytes) -> None:
    try:
        data.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert (accepted(Text(TextRule()), data) is True) == valid


@given(st.text(alphabet='a"\\/bnu0d83cDE{<|é😀\n\x1f', max_size=13))
def test_json_text_is_what_json_reads(text: str) -> None:
    try:
        value = json.loads(f'"{text}"')
        valid = not any(0xD800 <= ord(char) <= 0xDFFF for char in value)
    except ValueError:
        valid = False
    assert (accepted(Text(TextRule(spelling="json")), text.encode()) is True) == valid


@given(st.text(alphabet='a"\\é😀\n\x1f<', max_size=6), st.randoms(use_true_random=False))
def test_json_text_counts_characters(text: str, rng: random.Random) -> None:
    spelt = "".join(rng.choice([json.dumps(char)[1:-1], json.dumps(char, ensure_ascii=False)[1:-1]]) for char in text)
    for most in (len(text), len(text) - 1):
        if most >= 0:
            got = accepted(Text(TextRule(spelling="json", most=most)), spelt.encode())
            assert (got is True) == (most == len(text))
    short = TextRule(spelling="json", escapes=False)
    canonical = json.dumps(text, ensure_ascii=False)[1:-1]
    assert (accepted(Text(short), spelt.encode()) is True) == (spelt == canonical)


def test_a_needle_leaves_no_dead_end() -> None:
    rule = TextRule(needles=(b"<|x|>",), machines=((pattern(r"^a<\|x\|>$|^a<\|y\|>$"), True),))
    assert accepted(Text(rule), b"a<|y|>")
    assert accepted(Text(rule), b"a<|") is False
    assert accepted(Text(rule), b"a<|x") is None
