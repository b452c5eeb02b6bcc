"""Patterns: `re` by brute force, interegular's automata for whole languages, `json` for spellings, tables besides."""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
import unicodedata

import interegular
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interegular.fsm import anything_else

from twingram.automaton import charset as cs
from twingram.automaton.dfa import Dfa, intersect, union
from twingram.automaton.dialect import dialect_named
from twingram.automaton.regex import RegexError, counted_pattern, parse, pattern_dfa, terminal_dfa, tree_dfa
from twingram.automaton.regions import any_text
from twingram.errors import LimitExceeded
from twingram.limits import Limits

TEXTS = ["".join(text) for size in range(5) for text in itertools.product("ab-", repeat=size)]

# Pieces on which Python and ECMA-262 agree for these texts. Assertions are drawn apart: interegular knows no anchors.
_ATOMS = st.sampled_from(["a", "b", "-", "[ab]", "[^a]", ".", r"\w", r"\W", r"\S", "[^b-]", r"[\w-]", "ab"])
_COUNTS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?", "??", "{0}", "{0,1}?"])
_ASSERTIONS = st.sampled_from(["^", "$", r"\b", r"\B"])


def _patterns(atoms: st.SearchStrategy[str], looks: bool) -> st.SearchStrategy[str]:
    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        forms = [
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            st.tuples(inner, _COUNTS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
            inner.map(lambda body: f"({body}|)"),
        ]
        if looks:
            forms += [inner.map(lambda body: f"(?={body})"), inner.map(lambda body: f"(?!{body})")]
        return st.one_of(forms)

    return st.recursive(atoms, grow, max_leaves=6)


def check_against_re(pattern: str, texts: list[str], dfa: Dfa, search: bool = True) -> None:
    compiled = re.compile(pattern, re.ASCII)
    match = compiled.search if search else compiled.fullmatch
    for text in texts:
        if not text and r"\B" in pattern:  # Python before 3.14 knows no `\B` in an empty text; ECMA-262 does
            continue
        assert dfa.matches(text.encode()) == (match(text) is not None), (pattern, text)


@given(_patterns(_ATOMS | _ASSERTIONS, looks=True))
def test_search_against_re(pattern: str) -> None:
    check_against_re(pattern, TEXTS, pattern_dfa(pattern.replace("{,", "{0,")))


@given(_patterns(_ATOMS | _ASSERTIONS, looks=True))
def test_whole_match_against_re(pattern: str) -> None:
    check_against_re(pattern, TEXTS, pattern_dfa(pattern, search=False, dialect="python"), search=False)


@given(_patterns(_ATOMS | _ASSERTIONS, looks=True))
def test_negated_patterns_are_the_rest(pattern: str) -> None:
    pattern = pattern.replace("{,", "{0,")
    yes, no = pattern_dfa(pattern), pattern_dfa(pattern, negate=True)
    assert intersect(yes, no).start == 0
    assert union(yes, no) is any_text()


def check_against_fsm(pattern: str) -> None:
    """Both automata walked together, one character of each of the other's letters at a time."""
    fsm = interegular.parse_pattern(pattern).to_fsm()
    dfa = pattern_dfa(pattern.replace("{,", "{0,"), search=False)  # its classes are ASCII, like those of ECMA-262
    letters = {}  # character -> letter of the other automaton
    others = [char for char in "az-0\n \té€😀\x00\U0010ffff" if char not in fsm.alphabet._symbol_mapping]
    for symbol, letter in fsm.alphabet._symbol_mapping.items():
        for char in others if symbol is anything_else else [str(symbol)]:
            letters[char] = letter
    letters.pop("\r", None)  # a line terminator for `.` in ECMA-262, not there
    todo, seen = [(dfa.start, fsm.initial, "")], {(dfa.start, fsm.initial)}
    for state, other, text in todo:
        assert dfa.accept[state] == (other in fsm.finals), (pattern, text)
        for char, letter in letters.items():
            target = state
            for byte in char.encode():
                target = dfa.rows[target][byte]
            pair = (target, fsm.map.get(other, {}).get(letter))
            if pair not in seen:
                seen.add(pair)
                todo.append((*pair, text + char))


@given(_patterns(_ATOMS, looks=False))
def test_languages_against_interegular(pattern: str) -> None:
    check_against_fsm(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-z0-9_-]{1,9}", r"\d{4}-\d{2}-\d{2}", "(?:ab|a)(?:bc|c)*", "(a|b)*a(a|b){4}", "[^\\n]*x", "é|[à-ÿ]+",
        r"(\.\d+)+\.?", "x?y?z?", "(a*)*b", "(|a)+", "[^é€]{2}", "\u20ac[\U0001f600-\U0001f64f]",
    ],
)  # fmt: skip
def test_known_languages_against_interegular(pattern: str) -> None:
    check_against_fsm(pattern.replace(r"\d", "[0-9]"))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^on$|^off$", ["on", "off"], ["on ", "o", "xoff"]),
        ("(^a|b$)", ["ax", "xb", "a", "b"], ["xa", "bx", ""]),
        ("^dev|rc|stable$", ["develop", "xrcx", "unstable"], ["a dev", "stable."]),
        ("a", ["xay", "a"], ["", "b"]),
        ("", ["", "x"], []),
        ("^$", [""], ["x", "\n"]),
        ("^abc$", ["abc"], ["abc\n"]),
        ("$^", [""], ["x"]),
        ("a^b|c$d", [], ["ab", "cd", "a\nb"]),
        ("^(?:^a)+$", ["a"], ["aa"]),
        ("^a$(b)?", ["a"], ["ab"]),
        ("^.$", ["x", "😀", "\x85"], ["\n", "\r", "\u2028", "\u2029", "xx"]),
        (r"^(?=.*\d)(?=.*[a-z])\w{3,5}$", ["a1b", "12z45"], ["abc", "123", "a1", "a1-", "a1b2c3"]),
        (r"^(?!.*admin)[a-z]+$", ["adm", "madmi"], ["admin", "xadminx"]),
        (r"^((?!ab).)*$", ["", "ba", "aab"[:2]], ["ab", "xab"]),
        (r"(?!foo)bar", ["bar", "foobar"], ["foo"]),
        (r"^(?!foo$)\w+", ["foob", "fo"], ["foo"]),
        (r"\bcat\b", ["cat", "a cat.", "cat-x"], ["cats", "concat", "ca t"]),
        (r"\Bcat", ["concat"], ["cat", "a cat"]),
        (r"^\b", ["a"], ["", " a"]),
        (r"(?=\bx)[^y]\B.", ["xa"], ["x-", "axa"]),
        (r"^[\w.-]+@[\w-]+\.\w{2,}$", ["a.b@c-d.ef"], ["a@b", "@b.cc"]),
        (r"^[^]a]$", [], ["b]"]),
        (r"^[]$", [], ["", "]"]),
        (r"^[^]$", ["x", "\n", "😀"], ["", "xy"]),
        (r"^[a\]\-^]+$", ["a]-^"], ["b"]),
        (r"^[-a]+$|^[b-]+$", ["-a-", "b-b"], ["ab"]),
        (r"^[\w-.]+$", ["a-.b"], ["a b"]),
        (r"^\x41\u0042\u{1F600}\cJ\0\/\-$", ["AB😀\n\0/-"], []),
        (r"^\ud83d\ude00$", ["😀"], []),
        (r"^[\ud83d\ude00-\ud83d\ude05]$", ["😂"], ["😆"]),
        (r"^\ud83d$", [], ["😀", ""]),
        (r"^\p{Lu}\p{Letter}\P{L}[\p{Nd}\p{Sc}]\p{gc=Zs}$", ["Ää1€ "], ["ää1€ ", "ÄäÄ€ "]),
        (r"^\p{ASCII}$|^\p{Any}{2}$", ["a", "éé"], ["é"]),
        (r"^a{2}b{1,}c{0,1}d{,2}$", ["aabd{,2}", "aabbcd{,2}"], ["aab", "aabcd"]),
        ("^{}$|^a{x}$|^}$", ["{}", "a{x}", "}"], ["a"]),
        ("^]$", ["]"], []),
        (r"\Aab\Z", ["ab"], ["xab", "abx"]),
        (r"^(?<year>\d{4})-(?P<m>\d\d)$", ["2020-01"], ["20-01"]),
        (r"^(?i)ab(?-i:C)$|^(?i:x)y$", ["aBC", "Xy", "xY"], ["abc"]),
        (r"^(?:a(?i)b|c)d$", ["aBd", "cd"], ["Abd", "aBD"]),
        (r"^(?#note)a(?#)b$", ["ab"], []),
        (r"^(\d+)+(a|)*$", ["1", "12a"], ["a"]),
        (r"^(a?){3}$", ["", "aaa"], ["aaaa"]),
        (r"^\s$", [" ", "\t", "\ufeff", "\u3000", "\v"], ["\x85", "\x1c", "_"]),
        (r"^\S\W\D$", ["\x85éx", "aé-"], [" é1"]),
        (r"^\w\d$", ["a0"], ["é0", "a٣"]),
    ],
)  # fmt: skip
def test_ecma_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    for spelling in ("raw", "json"):
        dfa = pattern_dfa(pattern, spelling=spelling)
        for text in yes:
            assert dfa.matches(spelled(text, spelling)), (pattern, text, spelling)
        for text in no:
            assert not dfa.matches(spelled(text, spelling)), (pattern, text, spelling)


def spelled(text: str, spelling: str) -> bytes:
    return text.encode() if spelling == "raw" else json.dumps(text, ensure_ascii=False)[1:-1].encode()


@pytest.mark.parametrize(
    ("pattern", "flags", "yes", "no"),
    [
        (r"[^{}\s:(][^{}\s(]*", "", ["a:b", "é"], ["a b", ":a", ""]),
        ("a.b", "", ["a\rb", "a\u2028b"], ["a\nb"]),
        ("a.b", "s", ["a\nb"], ["ab"]),
        ("straße|K", "i", ["STRAßE", "k", "\u212a"], ["STRASSE"]),
        ("(?m)^a$", "", ["a"], ["a\n"]),
        ("^a$\n^b$", "m", ["a\nb"], ["ab"]),
        ("a b # c\n\\ [ #]", "x", ["ab  ", "ab #"], ["a b"]),
        ("[]a]+[^]]", "", ["]ax"], ["a]"]),
        (r"\w\d\s", "", ["é٣\x85"], ["--x"]),
        (r"\a\x41\u0042\U0001F600\0\07", "", ["\aAB😀\0\x07"], []),
        ("a{,2}", "", ["", "aa"], ["aaa"]),
        (r"[\1\-\]\b]", "", ["\x01", "-", "]", "\b"], ["1"]),
        (r"\A(?P<n>a)\Z", "", ["a"], []),
    ],
)  # fmt: skip
def test_terminals_in_python_syntax(pattern: str, flags: str, yes: list[str], no: list[str]) -> None:
    dfa = terminal_dfa(pattern, flags)
    compiled = re.compile(pattern, sum(getattr(re, flag.upper()) for flag in flags))
    for text in [*yes, *no]:
        assert dfa.matches(text.encode()) == (text in yes), text
        assert (compiled.fullmatch(text) is not None) == (text in yes), text


@pytest.mark.parametrize(
    ("pattern", "position", "construct"),
    [
        (r"(a)\1", 3, "back-reference"),
        (r"(?<n>a)\k<n>", 7, "back-reference"),
        ("(?P<n>a)(?P=n)", 8, "back-reference"),
        ("x(?<=a)", 1, "look-behind"),
        ("(?<!a)", 0, "look-behind"),
        ("(?>a)", 0, "atomic group"),
        ("a++", 2, "possessive"),
        ("(a)(?(1)b)", 3, "conditional"),
        ("(ab", 0, "group without an end"),
        ("ab)", 2, "unmatched"),
        ("[ab", 0, "class without an end"),
        ("a**", 2, "quantifier"),
        ("*a", 0, "nothing to repeat"),
        ("a|+", 2, "nothing"),
        ("{2}", 0, "nothing to repeat"),
        ("a{3,2}", 1, "out of order"),
        ("[z-a]", 2, "out of order"),
        ("a\\", 1, "last backslash"),
        (r"\y", 0, "unknown escape"),
        (r"\xg1", 0, "incomplete"),
        (r"\u{110000}", 0, "incomplete"),
        (r"\u12", 0, "incomplete"),
        (r"\p{Script=Greek}", 0, "Unicode property"),
        (r"\pL", 0, "incomplete"),
        ("(?z)", 0, "unknown kind of group"),
        ("(?#a", 0, "comment"),
        (r"\c1", 0, "unknown"),
        ("(" * 200 + ")" * 200, 80, "nested deeper"),
        ("(?R)", 0, "recursion"),
    ],
)  # fmt: skip
def test_errors_name_place_and_construct(pattern: str, position: int, construct: str) -> None:
    with pytest.raises(RegexError) as caught:
        pattern_dfa(pattern)
    assert construct in str(caught.value)
    assert (caught.value.position, caught.value.pattern) == (position, pattern)


def test_misuse() -> None:
    with pytest.raises(ValueError, match="dialect is one of"):
        parse("a", dialect="pcre")
    with pytest.raises(ValueError, match="spelling is one of"):
        pattern_dfa("a", spelling="xml")
    with pytest.raises(RegexError, match="unknown flags"):
        parse("a", flags="q")


def test_limits_are_kept() -> None:
    for pattern in ("(a|b)*a(a|b){18}", "a{100000}", "((a{1,900}){1,900}){1,900}",
                    "(?=(.{200}a)*$)(?=(.{201}b)*$)(?=(.{203}c)*$)"):  # fmt: skip
        with pytest.raises(LimitExceeded, match="automaton_states"):
            pattern_dfa(pattern)
    with pytest.raises(LimitExceeded, match="pattern_bytes = 5"):
        pattern_dfa("abcdef", limits=Limits(pattern_bytes=5))


def test_any_text_is_exactly_valid_utf8() -> None:
    dfa, chance = any_text(), random.Random(7)
    edges = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
    samples = [bytes(data) for size in range(4) for data in itertools.product(edges, repeat=size)]
    samples += [bytes(chance.choice(edges) for _ in range(chance.randint(4, 8))) for _ in range(3000)]
    samples += ["".join(chr(chance.choice([0x7F, 0x7FF, 0xFFFF, 0x10FFFF])) for _ in range(4)).encode()] * 2
    for data in samples:
        assert dfa.matches(data) == decodes(data), data


def decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


CODES = [0, 9, 0x1F, 0x20, 0x22, 0x2F, 0x5C, 0x61, 0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000,
         0x1F600, 0x10FFFF]  # fmt: skip


def spellings(char: str) -> set[bytes]:
    """All ways to write a character in a JSON string."""
    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    found = {char.encode()} if char not in '"\\' and char >= " " else set()
    found |= {short[char].encode()} if char in short else set()
    units = char.encode("utf-16-be").hex()
    halves = [units[i : i + 4] for i in range(0, len(units), 4)]
    cases = [{half.lower(), half.upper(), half.capitalize()} for half in halves]
    return found | {"".join(rf"\u{half}" for half in pair).encode() for pair in itertools.product(*cases)}


def test_json_spelling_admits_every_escape_and_counts_characters() -> None:
    one, other = pattern_dfa("^.$", spelling="json", flags="s"), pattern_dfa("^[^a]$", spelling="json")
    for code in CODES:
        for text in spellings(chr(code)):
            assert json.loads(b'"' + text + b'"') == chr(code)
            state, count = one.start, 0
            for byte in text:
                state = one.rows[state][byte]
                count += one.boundary[state]
            assert (one.accept[state], count) == (1, 1), text
            assert other.matches(text) == (code != 0x61)
    for text in (b"", b'"', b"\\", b"\n", rb"\x", rb"\ud83d", rb"\ude00", rb"\ud83d\u0041", rb"\u123", rb"\'",
                 b"\xed\xa0\x80"):  # fmt: skip
        assert not one.matches(text)


@given(st.lists(st.sampled_from([*'"\\/u0dD8cCeE3', "\\u", "é", "\n", "😀", r"\ud83d"]), max_size=12))
def test_json_bodies_against_json(pieces: list[str]) -> None:
    body = "".join(pieces)
    try:
        json.loads(f'"{body}"').encode()
        good = True
    except ValueError:
        good = False
    assert any_text("json").matches(body.encode()) == good


@given(_patterns(_ATOMS | st.sampled_from(["é", "[é-ÿ]", r"\n", '"', "[^😀]"]), looks=False))
def test_json_patterns_are_the_raw_ones_spelled(pattern: str) -> None:
    chance = random.Random(pattern)
    raw, spelt, short = (pattern_dfa(pattern, spelling=name) for name in ("raw", "json", "json-short"))
    for _ in range(40):
        text = "".join(chance.choice('ab-é\n"ÿ😀') for _ in range(chance.randint(0, 4)))
        written = b"".join(chance.choice(sorted(spellings(char))) for char in text)
        assert spelt.matches(written) == raw.matches(text.encode())
        assert short.matches(json.dumps(text, ensure_ascii=False)[1:-1].encode()) == raw.matches(text.encode())


def test_large_json_patterns_keep_their_plain_spelling() -> None:
    dfa = pattern_dfa("^[a-z\\n]{1,255}$", spelling="json")
    assert dfa.matches(b"a" * 255)
    assert dfa.matches(rb"a\nb\u000Ac")
    assert not dfa.matches(rb"\u0061")
    no = pattern_dfa("^[a-z\\n]{1,255}$", spelling="json", negate=True)
    assert intersect(dfa, no).start == 0


def test_counts_follow_the_pattern() -> None:
    for spelling in ("raw", "json"):
        assert pattern_dfa("^(?:é|😀a){2}$", spelling=spelling).lengths(1, 9) == 0b11100


def test_classes_against_re() -> None:
    every = [chr(code) for code in range(0x32000) if not 0xD800 <= code <= 0xDFFF]
    for letter in "dsw":
        chars = dialect_named("python").named_class(letter)
        want = set(re.compile(rf"\{letter}").findall("".join(every)))
        assert {chr(code) for low, high in chars for code in range(low, high + 1) if code < 0x32000} == want
        assert dialect_named("python").named_class(letter.upper()) == cs.complement(chars)
    for letter in "dDsSwW":
        common, ecma, python = (dialect_named(name).named_class(letter) for name in ("common", "ecma", "python"))
        assert common == cs.intersection(ecma, python)


def test_categories_against_unicodedata() -> None:
    chance = random.Random(3)
    codes = [chance.randrange(0x110000) for _ in range(4000)] + CODES
    for code in codes:
        if not 0xD800 <= code <= 0xDFFF:
            name = unicodedata.category(chr(code))
            assert cs.contains(cs.category(name) or (), code), hex(code)
            assert cs.contains(cs.category(name[0]) or (), code)
            assert not cs.contains(cs.category("Lu" if name != "Lu" else "Ll") or (), code)
    assert cs.category("Xx") is None


def test_case_variants_against_re() -> None:
    chance = random.Random(5)
    cased = [chr(c) for c in range(0x1F000) if not 0xD800 <= c <= 0xDFFF and chr(c).lower() != chr(c).upper()]
    for char in [*"kKsSiIåÅµßſK", *chance.sample(cased, 300)]:
        chars = cs.with_case_variants(cs.single(ord(char)))
        compiled = re.compile(re.escape(char), re.IGNORECASE)
        for other in {form for form in (char.lower(), char.upper(), char.swapcase(), char.title()) if len(form) == 1}:
            assert cs.contains(chars, ord(other)) == (compiled.match(other) is not None), (char, other)


_CODES = st.integers(0, 40)


@given(st.lists(st.tuples(_CODES, _CODES), max_size=4), st.lists(_CODES, max_size=9))
def test_sets_against_sets(ranges: list[tuple[int, int]], codes: list[int]) -> None:
    a, b = cs.charset(ranges), cs.charset((code, code) for code in codes)
    plain = {code for low, high in ranges for code in range(low, high + 1)}
    for chars, want in ((a, plain), (b, set(codes)), (cs.intersection(a, b), plain & set(codes))):
        assert {code for low, high in chars for code in range(low, high + 1)} == want
        assert cs.complement(cs.complement(chars)) == chars
        assert all(low > high + 1 for (_, high), (low, _) in itertools.pairwise(chars))
    parts = cs.partition((a, b))
    for code in range(42):
        low, high, name = parts.spans[cs.span_at(parts.spans, code)]
        assert low <= code <= high
        assert [name in members for members in parts.members] == [cs.contains(a, code), cs.contains(b, code)]
    assert cs.charset([(0, sys.maxunicode)]) == cs.ANY == cs.complement(cs.NOTHING)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\s\S\w\W\d\D$", [" éa-0-"], ["\ufeffaa-0-", " \x1ca-0-", " aé-0-", " aaé0-", " aa-٣-", " aa-0٣"]),
        (r"^[^\s][^\w]$", ["a-"], ["\x1c-", "\ufeff-", "aé"]),
        (r"^(?!\s)(?=\s|.).(?!.)", ["a"], ["\x1c", "\ufeff", "ab", "a\r"]),
        (r"^(?!(?!\d).)", ["1", ""], ["٣", "a"]),
    ],
)
def test_the_common_dialect_pleases_both_readers(pattern: str, yes: list[str], no: list[str]) -> None:
    dfa = pattern_dfa(pattern, dialect="common")
    for text in [*yes, *no]:
        assert dfa.matches(text.encode()) == (text in yes), text
    assert intersect(dfa, pattern_dfa(pattern)) is dfa
    assert all(re.search(pattern, text) for text in yes)


@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [("^[a-z]{1,64}$", 1, 64), (r"^[a-z_][\w-]{0,63}x{2}.$", 4, 67), ("^.{9,}$", 9, None), ("^a{1,8}b$", 2, 9)],
)
def test_counted_patterns_are_the_same_texts(pattern: str, low: int, high: int | None) -> None:
    for spelling in ("raw", "json-short"):
        found = counted_pattern(pattern, spelling=spelling)
        assert found is not None
        assert found[1:] == (low, high)
        length = tree_dfa(parse(f"^.{{{low},{high or ''}}}$", flags="s"), spelling=spelling)
        assert intersect(found[0], length) is pattern_dfa(pattern, spelling=spelling)
    full = counted_pattern(pattern, spelling="json")
    assert full is not None
    assert len(full[0]) < 100


@pytest.mark.parametrize(
    "pattern", ["[a-z]{1,64}", "^[a-z]{1,64}", "^[a-z]{1,7}$", "^a{64}$", "^(ab){1,64}$", "^a{1,9}b{1,9}$", "^a*$", "a"]
)
def test_patterns_that_are_not_counted(pattern: str) -> None:
    assert counted_pattern(pattern) is None


def test_compiled_patterns_are_kept() -> None:
    assert pattern_dfa("^k{3}$") is pattern_dfa("^k{3}$") is terminal_dfa("kkk")
