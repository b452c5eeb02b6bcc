"""Regular expression text to a tree.

In: a pattern in one of the dialects of `dialect.py`. Out: a `Tree`, or a `RegexError` that names place and construct.

Groups, names, greediness and laziness do not change the texts that a pattern means and are forgotten. Anchors, word
boundaries and look-aheads may stand anywhere; `$` is the end of the text, never the place before a last line break.
Refused is what no finite automaton can say, or what would change with the matcher's strategy: back-references,
look-behind, atomic groups, possessive quantifiers, conditionals.

Cost: linear in the pattern.
Source: ECMA-262, "Patterns"; the `re` chapter of Python's documentation.
"""

from __future__ import annotations

import re

from ..errors import TwingramError
from . import charset as cs
from .charset import CharSet
from .dialect import Dialect, dialect_named, property_set
from .tree import Anchor, Chars, Look, Repeat, Tree, choice, concat

__all__ = ["RegexError", "parse"]

_DEEPEST = 80  # nested groups
_COUNTS = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_PYTHON_COUNTS = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([aimsux]*)(-[imsx]+)?([:)])")
_NAME = re.compile(r"\(\?P?<([^\W\d][\w$]*)>")
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_UNSUPPORTED = {
    "(?<=": "look-behind", "(?<!": "look-behind", "(?>": "atomic group", "(?(": "conditional group",
    "(?P=": "back-reference", "(?P>": "recursion", "(?R": "recursion", "(?&": "recursion",
}  # fmt: skip


class RegexError(TwingramError, ValueError):
    """A pattern that is malformed, or that no byte automaton can say."""

    def __init__(self, pattern: str, position: int, construct: str, hint: str = "") -> None:
        self.pattern, self.position, self.construct, self.hint = pattern, position, construct, hint
        shown = pattern if len(pattern) <= 80 else f"{pattern[:77]}..."
        super().__init__(f"pattern {shown!r}, position {position}: {construct}" + (f" ({hint})" if hint else ""))


def parse(pattern: str, *, dialect: str = "ecma", flags: str = "") -> Tree:
    """The tree of a pattern. `flags` are letters of i, m, s, x; a, u, g and y change nothing here."""
    if set(flags) - set("imsxaugyv"):
        raise RegexError(pattern, 0, f"unknown flags {flags!r}")
    return _Parser(pattern, dialect_named(dialect), flags).whole()


class _Parser:
    """Recursive descent over the groups; everything else is a loop."""

    def __init__(self, pattern: str, dialect: Dialect, flags: str) -> None:
        self.text, self.dialect, self.flags = pattern, dialect, frozenset(flags)
        self.at = self.depth = 0
        self.excluded = False  # within a negated class or look-ahead: matching more admits less

    def fail(self, construct: str, at: int | None = None, hint: str = "") -> RegexError:
        return RegexError(self.text, self.at if at is None else at, construct, hint)

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def whole(self) -> Tree:
        tree = self.alternatives()
        if self.at < len(self.text):
            raise self.fail("unmatched `)`")
        return tree

    def alternatives(self) -> Tree:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail(f"groups nested deeper than {_DEEPEST}")
        flags, items = self.flags, [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            items.append(self.sequence())
        self.flags = flags
        self.depth -= 1
        return choice(items)

    def sequence(self) -> Tree:
        items: list[Tree] = []
        while (char := self.peek()) and char not in "|)":
            if "x" in self.flags and (char.isspace() or char == "#"):
                self.skip_comment()
                continue
            item = self.atom(char)
            if item is not None:
                items.append(self.quantified(item))
        return concat(items)

    def skip_comment(self) -> None:
        if self.peek() == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        else:
            self.at += 1

    def atom(self, char: str) -> Tree | None:
        start = self.at
        if char == "(":
            return self.group()
        if char == "[":
            return Chars(self.bracket())
        if char == "\\":
            return self.escape()
        self.at += 1
        if char in "*+?" or (char == "{" and self.counts(start)):
            raise self.fail(f"nothing to repeat before `{char}`", start)
        if char == ".":
            return Chars(cs.ANY if "s" in self.flags else cs.complement(self.dialect.breaks(excluded=self.excluded)))
        if char in "^$":
            kind = "start" if char == "^" else "end"
            return Anchor(f"line_{kind}", self.dialect.breaks()) if "m" in self.flags else Anchor(kind)
        return Chars(self.cased(cs.single(ord(char))))

    def cased(self, chars: CharSet) -> CharSet:
        return cs.with_case_variants(chars) if "i" in self.flags else chars

    def counts(self, at: int) -> re.Match[str] | None:
        found = (_PYTHON_COUNTS if self.dialect.python else _COUNTS).match(self.text, at)
        return found if found and (found[1] or found[2]) else None

    def quantified(self, item: Tree) -> Tree:
        char = self.peek()
        found = self.counts(self.at) if char == "{" else None
        if found:
            low = int(found[1] or 0)
            high = low if not found[2] else int(found[3]) if found[3] else None
            if high is not None and high < low:
                raise self.fail("bounds of a repetition are out of order")
            self.at = found.end()
        elif char and char in "*+?":
            low, high = (1 if char == "+" else 0), (1 if char == "?" else None)
            self.at += 1
        else:
            return item
        if self.peek() == "?":  # lazy: the same texts
            self.at += 1
        elif self.peek() == "+":
            raise self.fail("possessive quantifier")
        elif (self.peek() and self.peek() in "*?") or (self.peek() == "{" and self.counts(self.at)):
            raise self.fail("a quantifier after a quantifier")
        return Repeat(item, low, high)

    def group(self) -> Tree | None:
        start, text = self.at, self.text
        for opening, construct in _UNSUPPORTED.items():
            if text.startswith(opening, start):
                raise self.fail(construct)
        if text.startswith("(?#", start):
            end = text.find(")", start)
            if end < 0:
                raise self.fail("comment without an end")
            self.at = end + 1
            return None
        outer = self.flags
        look = text[start : start + 3] if text[start : start + 3] in ("(?=", "(?!") else ""
        flags, name = _FLAGS.match(text, start), _NAME.match(text, start)
        if look:
            self.at += 3
        elif flags:
            self.at = flags.end()
            self.flags = (self.flags | set(flags[1])) - set(flags[2] or "")
            if flags[3] == ")":
                return None  # to the end of the group around it
        elif name:
            self.at = name.end()
        elif text.startswith("(?", start):
            raise self.fail("unknown kind of group")
        else:
            self.at += 1
        self.excluded ^= look == "(?!"
        inner = self.alternatives()
        self.excluded ^= look == "(?!"
        self.flags = outer
        if self.peek() != ")":
            raise self.fail("group without an end", start)
        self.at += 1
        return Look(inner, look == "(?!") if look else inner

    def escape(self) -> Tree:
        start = self.at
        letter = self.text[start + 1 : start + 2]
        if letter in ("b", "B"):
            self.at += 2
            return Anchor("word" if letter == "b" else "notword", self.dialect.words)
        if letter and letter in "AZz":
            self.at += 2
            return Anchor("start" if letter == "A" else "end")
        if letter and letter in "123456789":
            raise self.fail("back-reference")
        if letter == "k":
            raise self.fail("back-reference")
        found = self.escaped()
        return Chars(self.cased(cs.single(found) if isinstance(found, int) else found))

    def escaped(self) -> CharSet | int:
        """A set, or one code point, behind a backslash."""
        start = self.at
        letter = self.text[start + 1 : start + 2]
        self.at += 2
        if not letter:
            raise self.fail("nothing behind the last backslash", start)
        if letter in "dDsSwW":
            return self.dialect.named_class(letter, excluded=self.excluded)
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in "xuU":
            return self.code_point(letter, start)
        if letter in "pP":
            return self.property(letter, start)
        if letter == "0":
            found = re.compile("[0-7]{0,2}").match(self.text, self.at) if self.dialect.python else None
            self.at = found.end() if found else self.at
            return int(found[0] or "0", 8) if found else 0
        if letter == "a" and self.dialect.python:
            return 7
        if letter == "c" and not self.dialect.python:
            control = self.peek()
            if not (control.isascii() and control.isalpha()):
                raise self.fail("unknown escape `\\c`", start)
            self.at += 1
            return ord(control) % 32
        if letter.isascii() and letter.isalnum():
            raise self.fail(f"unknown escape `\\{letter}`", start)
        return ord(letter)

    def code_point(self, letter: str, start: int) -> int:
        if letter == "u" and self.peek() == "{" and not self.dialect.python:
            end = self.text.find("}", self.at)
            digits, self.at = self.text[self.at + 1 : max(end, 0)], max(end + 1, self.at)
        else:
            size = {"x": 2, "u": 4, "U": 8}[letter]
            digits = self.text[self.at : self.at + size]
            self.at += size
            if len(digits) != size:
                digits = ""
        if not re.fullmatch("[0-9A-Fa-f]+", digits) or int(digits, 16) > 0x10FFFF:
            raise self.fail(f"incomplete escape `\\{letter}`", start)
        code = int(digits, 16)
        if letter == "u" and 0xD800 <= code <= 0xDBFF and not self.dialect.python:
            low = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})").match(self.text, self.at)
            if low:
                self.at = low.end()
                return 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return code

    def property(self, letter: str, start: int) -> CharSet:
        end = self.text.find("}", self.at) if self.peek() == "{" else -1
        if end < 0:
            raise self.fail(f"incomplete escape `\\{letter}`", start)
        name = self.text[self.at + 1 : end]
        chars = property_set(name.removeprefix("^"))
        if chars is None:
            raise self.fail(f"Unicode property {name!r}", start, "general categories such as Lu or Letter are known")
        self.at = end + 1
        return cs.complement(chars) if (letter == "P") != name.startswith("^") else chars

    def bracket(self) -> CharSet:
        """A class in brackets."""
        start = self.at
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        self.excluded ^= negated
        first = self.at
        found: list[tuple[int, int]] = []
        while self.peek() != "]" or (self.dialect.python and self.at == first):
            low = self.member(start)
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                dash = self.at
                self.at += 1
                high = self.member(start)
                if isinstance(low, int) and isinstance(high, int):
                    if high < low:
                        raise self.fail("bounds of a range are out of order", dash)
                    found.append((low, high))
                    continue
                found.append((0x2D, 0x2D))  # a class beside the dash: the dash stands for itself
                found += [(high, high)] if isinstance(high, int) else high
            found += [(low, low)] if isinstance(low, int) else low
        self.at += 1
        self.excluded ^= negated
        chars = self.cased(cs.charset(found))
        return cs.complement(chars) if negated else chars

    def member(self, start: int) -> CharSet | int:
        char = self.peek()
        if not char:
            raise self.fail("class without an end", start)
        if char != "\\":
            self.at += 1
            return ord(char)
        letter = self.text[self.at + 1 : self.at + 2]
        if letter == "b":
            self.at += 2
            return 8
        if letter and letter in "1234567":
            octal = re.compile("[0-7]{1,3}").match(self.text, self.at + 1)
            assert octal is not None
            self.at = octal.end()
            return int(octal[0], 8)
        return self.escaped()
