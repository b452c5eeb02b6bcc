"""Byte automata: canonical form, operations, counts; text regions. Oracles: sets of words, `re`, naive refinement."""

from __future__ import annotations

import gc
import itertools
import pickle
import random
import re
from concurrent.futures import ThreadPoolExecutor
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twingram.automaton.dfa import NEVER, Dfa, concat, difference, from_draft, intersect, literal, literals, union
from twingram.automaton.kept import kept, known
from twingram.automaton.lengths import WordLengths
from twingram.automaton.regex import parse, pattern_dfa, terminal_dfa
from twingram.automaton.regions import any_text, exclude_dfa, parse_region, unlike_dfa, until_dfa
from twingram.automaton.runs import Draft, merge_runs, row_of
from twingram.errors import LimitExceeded
from twingram.limits import Limits

WORDS = [bytes(word) for size in range(5) for word in itertools.product(b"abc", repeat=size)]
EMPTY = literals([])

languages = st.frozensets(st.sampled_from(WORDS), max_size=12)


def words_of(dfa: Dfa) -> set[bytes]:
    return {word for word in WORDS if dfa.matches(word)}


def check_canonical(dfa: Dfa) -> None:
    """Trimmed, minimal, numbered breadth first, every attribute in line with the table."""
    table, accept = dfa.table.astype(np.int64), np.frombuffer(dfa.accept, np.uint8)
    assert tuple(map(tuple, table.tolist())) == dfa.rows
    assert not table[0].any()
    assert not accept[0]
    order = [0, dfa.start] if dfa.start else [0]
    for state in order:
        order += [t for t in dict.fromkeys(dfa.rows[state]) if t not in order]
    assert order == list(range(len(dfa)))
    for state in range(len(dfa)):
        assert dfa.first[state] == sum(1 << byte for byte in range(256) if dfa.rows[state][byte])
        targets = [dfa.shortest[t] for t in dfa.rows[state] if t]
        best = 0 if dfa.accept[state] else 1 + min(targets, default=NEVER)
        assert dfa.shortest[state] == min(best, NEVER)
        assert (dfa.shortest[state] == NEVER) == (state == 0)
    classes = np.unique(np.stack([accept, np.frombuffer(dfa.boundary, np.uint8)], 1), axis=0, return_inverse=True)[1]
    while True:
        classes = classes.reshape(-1)
        signature = np.column_stack([classes, classes[table]])
        finer = np.unique(signature, axis=0, return_inverse=True)[1].reshape(-1)
        if finer.max() == classes.max():
            break
        classes = finer
    assert len(set(classes)) == len(dfa)


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    size = draw(st.integers(1, 9))
    seed = draw(st.integers(0, 1 << 30))
    chance = random.Random(seed)
    states = range(size)
    rows = [()] + [
        merge_runs([(0x61 + i, 0x61 + i, chance.choice([0, *states])) for i in range(3)]) if size > 1 else ()
        for _ in states[1:]
    ]
    accept = [0] + [int(chance.random() < 0.4) for _ in states[1:]]
    boundary = [0] + [int(chance.random() < 0.8) for _ in states[1:]]
    return Draft(rows, accept, boundary, 1 if size > 1 else 0)


def run(draft: Draft, word: bytes) -> bool:
    state = draft.start
    for byte in word:
        state = next((target for low, high, target in draft.rows[state] if low <= byte <= high), 0)
    return bool(draft.accept[state])


@given(drafts())
def test_any_draft_becomes_canonical(draft: Draft) -> None:
    dfa = from_draft(draft)
    check_canonical(dfa)
    assert words_of(dfa) == {word for word in WORDS if run(draft, word)}


@given(drafts(), st.randoms(use_true_random=False))
def test_renamed_and_doubled_states_change_nothing(draft: Draft, chance: random.Random) -> None:
    """Each state twice, edges to either copy at random, in another order: the same object comes out."""
    size = len(draft.rows)
    names = list(range(1, 2 * size - 1))
    chance.shuffle(names)
    copies = [(0, 0)] + [(names[2 * s - 2], names[2 * s - 1]) for s in range(1, size)]
    rows: list[object] = [()] * (2 * size - 1)
    accept, boundary = [0] * (2 * size - 1), [0] * (2 * size - 1)
    for state in range(1, size):
        for name in copies[state]:
            moves = [(b, t) for low, high, t in draft.rows[state] for b in range(low, high + 1)]
            rows[name] = row_of((byte, chance.choice(copies[target])) for byte, target in moves)
            accept[name], boundary[name] = draft.accept[state], draft.boundary[state]
    doubled = Draft(rows, accept, boundary, copies[draft.start][0])  # type: ignore[arg-type]
    assert from_draft(doubled) is from_draft(draft)


@given(languages, languages)
def test_operations_against_sets_of_words(left: frozenset[bytes], right: frozenset[bytes]) -> None:
    a, b = literals(left), literals(right)
    for dfa, words in (
        (a, left),
        (union(a, b), left | right),
        (intersect(a, b), left & right),
        (difference(a, b), left - right),
    ):
        assert words_of(dfa) == words
        assert dfa is literals(words)
        check_canonical(dfa)
    assert concat(a, b) is literals({x + y for x in left for y in right})


@given(drafts(), drafts())
def test_operations_on_cyclic_automata(left: Draft, right: Draft) -> None:
    a, b = from_draft(left), from_draft(right)
    assert words_of(union(a, b)) == words_of(a) | words_of(b)
    assert words_of(intersect(a, b)) == words_of(a) & words_of(b)
    assert words_of(difference(a, b)) == words_of(a) - words_of(b)
    both = concat(a, b)
    check_canonical(both)
    assert words_of(both) == {
        word for word in WORDS if any(a.matches(word[:i]) and b.matches(word[i:]) for i in range(len(word) + 1))
    }


def test_the_empty_language() -> None:
    assert (EMPTY.start, len(EMPTY), EMPTY.accept, EMPTY.shortest) == (0, 1, b"\0", (NEVER,))
    a = literal(b"a")
    assert union() is union(EMPTY, EMPTY) is intersect(a, EMPTY) is difference(a, a) is concat(a, EMPTY) is EMPTY
    assert union(a, EMPTY) is difference(a, EMPTY) is a
    assert not EMPTY.matches(b"")
    assert EMPTY.lengths(0, 5) == 0


def test_union_of_many() -> None:
    words = [b"%d" % number for number in range(50)]
    assert union(*map(literal, words)) is literals(words)


def test_equal_languages_are_one_object_until_nobody_holds_them() -> None:
    dfa = literals([b"one", b"two"])
    assert dfa is pattern_dfa("^(?:one|two)$")
    assert pickle.loads(pickle.dumps(dfa)) is dfa
    key = literal(b"nobody keeps this").key
    gc.collect()
    assert literal(b"nobody keeps this").key == key


def test_boundary_flags_keep_states_apart() -> None:
    rows = ((), ((0x61, 0x61, 2), (0x62, 0x62, 3)), (), ())
    apart = from_draft(Draft(rows, (0, 0, 1, 1), (0, 1, 1, 0), 1))
    merged = from_draft(Draft(rows, (0, 0, 1, 1), (0, 1, 1, 1), 1))
    assert (len(apart), len(merged)) == (4, 3)


def test_boundaries_of_literals_follow_utf8() -> None:
    dfa = literal("aé😀".encode())
    assert list(dfa.boundary) == [0, 1, 1, 0, 1, 0, 0, 0, 1]
    assert dfa.lengths(1, 9) == 1 << 3


def test_first_operand_gives_the_boundaries() -> None:
    spelled, plain = pattern_dfa("^.{2}$", spelling="json"), terminal_dfa(r"[ -~]*")
    assert intersect(spelled, plain).lengths(1, 20) == 1 << 2
    assert intersect(plain, spelled).lengths(1, 20) > 1 << 2


def test_table_is_small_and_read_only() -> None:
    table = literal(b"abc").table
    assert (table.dtype, table.shape) == (np.uint16, (5, 256))
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


@given(drafts())
def test_lengths_against_enumeration(draft: Draft) -> None:
    dfa = from_draft(draft)
    rows, limit = dfa.rows, 6
    for state in range(1, len(dfa)):
        found = 0
        todo, seen = [(state, 0)], {(state, 0)}
        for at, count in todo:
            if dfa.accept[at]:
                found |= 1 << count
            for byte in b"abc":
                after = (rows[at][byte], count + dfa.boundary[rows[at][byte]])
                if after[0] and after[1] <= limit and after not in seen:
                    seen.add(after)
                    todo.append(after)
        assert dfa.lengths(state, 3) == found & 0b1111
        assert dfa.lengths(state, limit) == found
        assert dfa.lengths(state, limit) == found


def test_lengths_of_long_and_endless_languages() -> None:
    evens = pattern_dfa("^(?:..)*$")
    assert evens.lengths(1, 100_001) == sum(1 << n for n in range(0, 100_002, 2))
    assert pattern_dfa("^[a-z]{3,5}$", spelling="json").lengths(1, 99) == 0b111000
    assert any_text("json").lengths(1, 10) == (1 << 11) - 1
    assert evens.lengths(1, -1) == 0


def test_limits_are_kept() -> None:
    small = Limits(automaton_states=10)
    with pytest.raises(LimitExceeded, match="automaton_states = 10"):
        literal(b"more than ten bytes", limits=small)
    a, b = literals([b"abcdefgh"]), pattern_dfa("^.*$")
    with pytest.raises(LimitExceeded):
        intersect(pattern_dfa("^.{30}$"), b, limits=small)
    for operation in (union, concat):
        with pytest.raises(LimitExceeded):
            operation(a, literal(b"0123456789"), limits=small)


def test_memory_is_reported() -> None:
    small, large = literal(b"a"), pattern_dfa("^[a-z]{100}$")
    assert 1_000 < small.memory_usage() < large.memory_usage()


MARKERS = [b"<|call>", b"<call|>", b"<|", b"a<", b"ab", b"bab"]
LETTERS = b"<|cab>"


@given(st.sets(st.sampled_from(MARKERS), max_size=4), st.lists(st.sampled_from(LETTERS), max_size=12), st.booleans())
def test_exclude_against_search(needles: set[bytes], letters: list[int], strict: bool) -> None:
    text = bytes(letters)
    assert exclude_dfa(needles, strict=strict).matches(text) == (not any(needle in text for needle in needles))


def test_exclude_is_canonical_and_holds_prefixes() -> None:
    for needles in ([], MARKERS, [b"<tool>", "é".encode(), "éa".encode()]):
        for strict, spelling in ((True, "raw"), (True, "json"), (False, "raw")):
            dfa = exclude_dfa(needles, strict=strict, spelling=spelling)
            check_canonical(dfa)
            assert dfa.accept[1:] == (dfa.boundary[1:] if strict else b"\1" * (len(dfa) - 1))


def test_strict_regions_hold_text_only() -> None:
    strict, loose = exclude_dfa([b"<x>"], strict=True), exclude_dfa([b"<x>"], strict=False)
    for data in (b"\xff", b"\xc3", b"a\x80", b"\xed\xa0\x80"):
        assert not strict.matches(data)
        assert loose.matches(data)
        assert not loose.matches(data + b"<x>")


def test_excluded_letters_in_a_json_string() -> None:
    dfa = exclude_dfa([b"</v>", b"\\u003"], strict=True, spelling="json")
    for body, good in (
        ("a<b", True), ("</v", True), ("</v>", False), (r"<\/v>", True), (r"\u003c/v>", False), (r"\u004a", True),
        ('a"b', False), ("\\", False), ("\n", False), (r"\ud83d\ude00", True), (r"\ud83d", False), ("", True),
    ):  # fmt: skip
        assert dfa.matches(body.encode()) == good, body


def test_bad_needles() -> None:
    with pytest.raises(ValueError, match="empty text"):
        exclude_dfa([b"a", b""], strict=True)
    with pytest.raises(ValueError, match="strict=True"):
        exclude_dfa([b"a"], strict=False, spelling="json")


def test_loose_counts_are_of_characters() -> None:
    dfa = exclude_dfa([b"<x>"], strict=False)
    state, count = dfa.start, 0
    for byte in "aé<😀>".encode():
        state = dfa.rows[state][byte]
        count += dfa.boundary[state]
    assert count == 5


CLOSER = r"((?!<\/p>\s*(<p|<\/i>)).)+"


def test_region_idiom() -> None:
    region = parse_region(CLOSER, "s")
    assert region is not None
    assert (region.literals, region.prefixes, region.least) == ((None,), (b"</p>",), 1)
    region = parse_region(r"((?!<\|\"\|>|<b>|a+b|x(?:yz|yw)).)*", "s")
    assert region is not None
    assert region.literals == (b'<|"|>', b"<b>", None, b"xyz", b"xyw")
    assert region.prefixes == (b'<|"|>', b"<b>", b"a", b"xyz", b"xyw")
    assert (region.least, len(region.terminators), region.unlike) == (0, 5, None)
    assert parse_region("(?s:(?:(?!a).)+)") == parse_region("((?!a).)+", "s")


@pytest.mark.parametrize(
    ("end", "prefixes", "whole"),
    [
        ("<\\/?a>", {b"<a>", b"</a>"}, True),
        ("<(?:a|b)[12]?>", {b"<a>", b"<a1>", b"<a2>", b"<b>", b"<b1>", b"<b2>"}, True),
        ("\\n{0,2}<a>", {b"<a>", b"\n<a>", b"\n\n<a>"}, True),
        ("<\\/?a>\\s*b", {b"<a>", b"</a>"}, False),
        ("[a-z]<a>\\s", {bytes((letter,)) + b"<a>" for letter in range(0x61, 0x7B)}, False),
        ("[a-z]+<a>", {b""}, False),
    ],
)
def test_what_ends_a_region_is_written_out(end: str, prefixes: set[bytes], whole: bool) -> None:
    region = parse_region(rf"((?!{end}).)+", "s")
    assert region is not None
    assert set(region.prefixes) == prefixes
    assert set(region.literals) == (prefixes if whole else {None})


@pytest.mark.parametrize(
    ("pattern", "fits", "not_"),
    [
        (r"(?!\[)((?!<e>).)+", ["a", "a[", "<", "a<f"], ["[", "[a", "a<e>", "", "<e>"]),
        (r"(?!ab|c)((?!<e>).)*", ["", "a", "b", "aab"], ["ab", "abc", "c"]),
        (r"(?!\s*<t>)((?!<e>).)+", [" ", " <t", "a<t>"], ["<t>", "  <t>", "\n<t>x"]),
    ],
)
def test_what_a_region_does_not_begin_with(pattern: str, fits: list[str], not_: list[str]) -> None:
    region = parse_region(pattern, "s")
    assert region is not None
    assert region.unlike is not None
    dfa = intersect(until_dfa(region.terminators, strict=False), unlike_dfa(region.unlike))
    for text in fits:
        assert dfa.matches(text.encode()), text
        assert re.compile(pattern, re.DOTALL).fullmatch(text), text
    for text in not_:
        assert not dfa.matches(text.encode()) or not text, text
        assert not re.compile(pattern, re.DOTALL).fullmatch(text), text


@pytest.mark.parametrize("pattern", ["[^{}]+", "((?!a).)+", "((?=a).)+", "(?!a).+", "((?!a).){3,}", "((?!a)b)+", "a"])
def test_what_is_no_region(pattern: str) -> None:
    assert parse_region(pattern, "" if pattern == "((?!a).)+" else "s") is None


@given(st.lists(st.sampled_from(["</p>", "<p", "</i>", " ", "\n", "<", "/", "é"]), max_size=7), st.booleans())
def test_until_against_search(pieces: list[str], strict: bool) -> None:
    region = parse_region(CLOSER, "s")
    assert region is not None
    dfa = until_dfa(region.terminators, strict=strict)
    text = "".join(pieces)
    assert dfa.matches(text.encode()) == (re.search(r"</p>\s*(<p|</i>)", text) is None)


def test_until_is_canonical_and_holds_prefixes() -> None:
    trees = [parse(pattern, dialect="python") for pattern in (r"</p>\s*<", r"\d+;", "é")]
    for strict in (True, False):
        dfa = until_dfa(trees, strict=strict)
        check_canonical(dfa)
        assert dfa.accept[1:] == (dfa.boundary[1:] if strict else b"\1" * (len(dfa) - 1))
        assert dfa.matches(b"12</p> p")
        assert not dfa.matches(b"12;")
    assert until_dfa([], strict=True) is exclude_dfa([], strict=True) is any_text()
    assert until_dfa([parse("ab")], strict=False) is exclude_dfa([b"ab"], strict=False)
    with pytest.raises(ValueError, match="empty text"):
        until_dfa([parse("a*")], strict=True)


def test_kept_automata_are_bounded_by_their_states() -> None:
    made: list[int] = []

    def make(size: int, *, letter: bytes = b"a") -> Dfa:
        made.append(size)
        return literal(letter * size)

    ask = kept(make, states=100)
    assert ask(10) is ask(10) is not ask(10, letter=b"b")
    assert made == [10, 10]
    ask(500)  # larger than all that is kept: it stays alone
    ask(500)
    ask(10)
    assert made == [10, 10, 500, 10]
    for size in (20, 30, 10, 40, 10, 20):  # 30 + 20 + ... states: the least recently used goes
        ask(size)
    assert made == [10, 10, 500, 10, 20, 30, 40, 20]


def test_what_is_known_of_automata_holds_none() -> None:
    asked: list[int] = []

    def size(dfa: Dfa, more: tuple[Dfa, ...] = (), *, plus: int = 0) -> int:
        asked.append(len(dfa))
        return len(dfa) + sum(map(len, more)) + plus

    ask = known(size, most=4)
    dfas = [literal(bytes([letter]) * 40) for letter in b"abcdefghi"]
    assert [ask(dfa) for dfa in dfas[:4]] == [ask(dfa) for dfa in dfas[:4]] == [42] * 4
    assert ask(dfas[0], plus=1) == ask(dfas[0], plus=1) == 43
    assert ask(dfas[0], (dfas[1], dfas[2])) == ask(dfas[0], (dfas[1], dfas[2])) == 126
    assert ask(dfas[0], (dfas[1],)) == 84
    assert len(asked) == 7
    assert [ask(dfa) for dfa in (*dfas[4:], dfas[8], dfas[7])] == [42] * 7
    assert len(asked) == 12
    assert ask(dfas[1]) == 42  # forgotten: eight others were asked for since
    assert len(asked) == 13
    gone = [ref(dfa) for dfa in dfas]
    del dfas
    assert [dfa() for dfa in gone] == [None] * 9


def test_kept_automata_hold_no_others() -> None:
    ask = kept(union)
    one, other = literal(b"a" * 50), literal(b"b" * 50)
    made, gone = ask(one, other), [ref(one), ref(other)]
    assert ask(one, other) is made
    del one, other
    assert [dfa() for dfa in gone] == [None, None]
    assert ask(literal(b"a" * 50), literal(b"b" * 50)) is made


def test_threads_share_lengths() -> None:
    dfa = pattern_dfa("^(?:[a-z]{3}|[0-9]{5})*$")
    want = dfa.lengths(1, 400)
    for _ in range(5):
        shared = WordLengths(dfa.runs, dfa.accept, dfa.boundary)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(shared.upto, [1] * 16, [400, 3, 399, 200] * 4))
        assert answers == [want & ((2 << limit) - 1) for limit in [400, 3, 399, 200] * 4]
