"""The deviations of real models, one row each: an output, and what comes of it.

In: nothing. Out: `ROWS`. `gives` is what Twingram gives, checked in `test_deviations.py`; the other columns say what
other programs gave for the same kind of output in the versions that were looked at, and docs/reading.md shows both.
`-` means that nothing is known. Call-like columns: "call" is the same call as ours, "text" the markup as content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["PEERS", "ROWS", "TOOLS", "Row", "tool"]

PEERS = ("vLLM", "SGLang", "ExecuTorch", "Ollama", "transformers")


@dataclass(frozen=True)
class Row:
    """`gives`: content, reasoning, calls and errors in words, as `test_deviations.told` writes them."""

    format: str
    number: str
    what: str
    text: str
    gives: str
    peers: tuple[str, str, str, str, str]
    options: dict[str, Any] = field(default_factory=dict)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


_TEXT, _INTEGER = {"type": "string"}, {"type": "integer"}
TOOLS = [
    tool("f", a=_TEXT, b=_INTEGER, c={"type": ["string", "null"]}, o={"type": "object"}, l={"type": "array"}),
    tool("read", filePath=_TEXT, limit=_INTEGER),
]

_O, _C, _Q = "<|tool_call>", "<tool_call|>", '<|"|>'
_S, _M, _E = "<|start|>assistant", "<|message|>", "<|eom|>"
_B, _Z = "<atem:function_calls>\n", "</atem:function_calls>"


def _invoke(name: str, inside: str = '<atem:parameter name="b">1</atem:parameter>\n') -> str:
    return f'<atem:invoke name="{name}">\n{inside}</atem:invoke>\n'


_F = _B + _invoke("f") + _Z
_ONE = 'call f {"b": 1}'
_X = 'call f {"a": "x"}'
_SALVAGE = {"salvage": True}


def _g(number: str, what: str, text: str, gives: str, *peers: str, **options: Any) -> Row:
    return Row("gemma4", number, what, text, gives, peers, options)  # type: ignore[arg-type]


def _a(number: str, what: str, text: str, gives: str, *peers: str, **options: Any) -> Row:
    return Row("atem", number, what, text, gives, peers, options)  # type: ignore[arg-type]


_GEMMA = (
    _g("1", "closed by the end of the turn", f"{_O}call:f{{a:{_Q}x{_Q}}}<turn|>", _X,
       "call", "text; stream: call", "no call", "call", "error"),
    _g("1", "not closed at all", f"{_O}call:f{{a:{_Q}x{_Q}}}", _X,
       "call", "text; stream: call", "no call", "call", "call"),
    _g("1", "containers open at the closer", f"{_O}call:f{{l:[1,2{_C}", 'call f {"l": [1, 2]}',
       "-", "-", "-", "-", "-"),
    _g("1", "containers open at the end", f"{_O}call:f{{l:[1,2", 'cut f {"l": [1',
       "call", "name only", "no call", "call",
       "error"),
    _g("2", "bare call that holds a delimiter", f"call:f{{a:{_Q}x{_Q}}}", _X, "text", "text", "text", "text", "text"),
    _g("2", "the same after a thought", f"<|channel>thought\nhm<channel|>call:f{{a:{_Q}x{_Q}}}",
       f'reasoning "hm"; {_X}', "text", "text", "text", "text", "text"),
    _g("2", "the same, name not declared", f"call:g{{a:{_Q}x{_Q}}}", f'content "call:g{{a:{_Q}x{_Q}}}"',
       "text", "text", "text", "text", "text"),
    _g("2", "bare call without a marker", "call:f{b:1}", 'content "call:f{b:1}"',
       "text", "text", "text", "text", "text"),
    _g("2", "the same, with brackets", "call:f{o:{k:1},l:[]} is how", 'content "call:f{o:{k:1},l:[]} is how"',
       "-", "-", "-", "-", "-"),
    _g("2", "bare call that holds a delimiter further in", f"call:f{{b:1,o:{{k:[{{}},{_Q}x{_Q},{{}}]}},l:[{{}}]}}",
       'call f {"b": 1, "o": {"k": [{}, "x", {}]}, "l": [{}]}', "-", "-", "-", "-", "-"),
    _g("2", "bare call without a marker, salvage", "So: call:f{b:1}", f'content "So:"; {_ONE}',
       "-", "-", "-", "-", "-", **_SALVAGE),
    _g("3", "opener split up, salvage", "<call>f{b:1}", _ONE, "text", "text", "text", "text", "text", **_SALVAGE),
    _g("4", "no `call` before the colon", f"{_O}:f{{b:1}}{_C}", _ONE, "call", "text", "no call", "-", "text"),
    _g("4", "a colon too many", f"{_O}:call:f{{b:1}}{_C}", _ONE,
       "call named call:f", "stream: call", "no call", "-", "text"),
    _g("5", "no marker word", f"{_O}f{{b:1}}{_C}", _ONE, "no call", "-", "-", "-", "-"),
    _g("5", "a dash", f"{_O}-f{{b:1}}{_C}", _ONE, "no call", "-", "-", "-", "-"),
    _g("5", "no marker word, name not declared", f"{_O}g{{b:1}}{_C}", f'content "{_O}g{{b:1}}"',
       "-", "-", "-", "-", "-"),
    _g("6", "round brackets", f"{_O}call:f(b:1){_C}", _ONE, "call", "no call", "no call", "no call", "no call"),
    _g("6", "round brackets, equals", f"{_O}call:f(b=1){_C}", _ONE,
       "call with {}", "no call", "no call", "no call", "no call"),
    _g("7", "prose in place of arguments", f"{_O}call:f some prose{_C}ok",
       f'content "ok"; error "{_O}call:f some prose{_C}"', "a call named f some prose", "-", "-", "-", "-"),
    _g("8", "a namespace", f"{_O}call:google:f{{b:1}}{_C}", _ONE,
       "raw name", "raw name", "raw name", "raw name", "error"),
    _g("8", "a namespace with a dot", f"{_O}call:google.f{{b:1}}{_C}", _ONE,
       "raw name", "raw name", "raw name", "-", "error"),
    _g("9", "names with - or .", f"{_O}call:a-b.c{{b:1}}{_C}", 'call a-b.c {"b": 1}',
       "call", "call", "call", "-", "error"),
    _g("10", "single quotes", f"{_O}call:f{{a:'x, y',b:1}}{_C}", 'call f {"a": "x, y", "b": 1}',
       "quotes kept, cut", "quotes kept, cut", "quotes kept, cut", "call", "error"),
    _g("10", "back quotes", f"{_O}call:f{{a:`x`}}{_C}", _X, "-", "-", "-", "-", "-"),
    _g("11", "JSON quotes", f'{_O}call:f{{"a":"x, \\"y\\""}}{_C}', 'call f {"a": "x, \\"y\\""}',
       "quotes kept, cut", "quotes kept, cut", "no call", "call", "call"),
    _g("12", "equals", f"{_O}call:f{{b=1}}{_C}", _ONE, "call with {}", "call with {}", "no call", "dropped", "error"),
    _g("13", "keys with spaces", f"{_O}call:f{{o:{{x y:1}}}}{_C}", 'call f {"o": {"x y": 1}}',
       "call", "call", "no call", "dropped", "error"),
    _g("14", "string without its end", f"{_O}call:f{{a:{_Q}x}}{_C}", _X,
       "call", "x}; stream: open", "no call", "call", "error"),
    _g("14", "the same, cut", f"{_O}call:f{{a:{_Q}x}}", 'cut f {"a": "x}', "call", "x}", "no call", "call", "error"),
    _g("15", "raw text", f"{_O}call:f{{a:hello, {{w}}: x\ny,b:1}}{_C}", 'call f {"a": "hello, {w}: x\\ny", "b": 1}',
       "cut at the comma", "cut at the comma", "-", "call", "error"),
    _g("15", "opening delimiter missing", f"{_O}call:f{{a:rain, y{_Q},b:1}}{_C}", 'call f {"a": "rain, y", "b": 1}',
       "-", "-", "-", "-", "-"),
    _g("15", "raw text that is empty", f"{_O}call:f{{a:,c: ,b:1}}{_C}", 'call f {"a": "", "c": "", "b": 1}',
       "-", "-", "-", "-", "-"),
    _g("15", "raw text that is empty, at the end", f"{_O}call:f{{b:1,a:}}{_C}", 'call f {"b": 1, "a": ""}',
       "-", "-", "-", "-", "-"),
    _g("16", "a closer too many", f"{_O}call:f{{b:1}}{_C}{_C}", _ONE, "call", "stream: text", "call", "call", "text"),
    _g("17", "invented response", f"{_O}call:f{{b:1}}{_C}<|tool_response>response:f{{x:1}}<tool_response|>", _ONE,
       "call, marker dropped", "stream: leaks", "call", "call, marker dropped", "content closed"),
    _g("18", "call in a thought", f"<|channel>thought\nhm{_O}call:f{{b:1}}{_C}", f'reasoning "hm"; {_ONE}',
       "call", "lost", "-", "lost", "lost"),
    _g("19", "label, closer, no opener", "thought\nhm<channel|>Hi", 'content "Hi"; reasoning "hm"',
       "call it reasoning", "-", "-", "-", "-"),
    _g("19", "label alone", "thought\nhm", 'content "thought\\nhm"',
       "label off; stream: text", "text", "text", "text", "text"),
    _g("19", "label alone, salvage", "thought\nhm", 'content "hm"', "-", "-", "-", "-", "-", **_SALVAGE),
    _g("20", "stray closer of a thought", "Hi<channel|> you", 'content "Hi you"', "dropped", "-", "dropped", "-", "-"),
    _g("21", "an opener too many", "<|channel><|channel>thought\nhm<channel|>Hi", 'content "Hi"; reasoning "hm"',
       "an empty block", "an empty block", "an empty block", "an empty block", "an empty block"),
    _g("21", "thought without a label", "<|channel>hm<channel|>Hi", 'content "Hi"; reasoning "hm"',
       "-", "-", "-", "-", "-"),
    _g("21", "label without a new line", "<|channel>thought<channel|>Hi", 'content "Hi"', "-", "-", "-", "-", "-"),
    _g("22", "`<eos>` for `<|tool_response>`", f"{_O}call:f{{b:1}}{_C}<eos>", _ONE,
       "call", "call", "call", "call", "call"),
    _g("23", "white space", f"{_O}call:f{{\n b : 1 ,\n a : {_Q}x{_Q}\n}}{_C}", 'call f {"b": 1, "a": "x"}',
       "call", "call", "call", "call", "call"),
    _g("23", "white space around the head", f"{_O}\ncall:f{{b:1}}\n{_C}", _ONE, "-", "-", "-", "-", "-"),
    _g("23", "white space behind the name", f"{_O}call:f {{b:1}}{_C}", _ONE, "-", "-", "-", "-", "-"),
    _g("24", "keys in delimiters", f"{_O}call:f{{o:{{{_Q}k{_Q}:1}}}}{_C}", 'call f {"o": {"k": 1}}',
       "call", "delimiters kept", "call", "-", "call"),
    _g("-", "no comma", f"{_O}call:f{{a:{_Q}x{_Q} b:1}}{_C}", 'call f {"a": "x", "b": 1}', "-", "-", "-", "-", "-"),
    _g("-", "a comma too many", f"{_O}call:f{{b:1,}}{_C}", _ONE, "call", "call", "no call", "no call", "error"),
    _g("-", "two calls in one envelope", f"{_O}call:f{{b:1}}call:f{{b:1}}{_C}", f"{_ONE}; {_ONE}",
       "-", "-", "-", "-", "-"),
    _g("-", "an opener that is text", f"Use {_O} now", f'content "Use {_O} now"', "-", "-", "-", "-", "-"),
    _g("-", "an opener quoted in a thought", f"<|channel>thought\nUse {_O} now<channel|>Hi",
       f'content "Hi"; reasoning "Use {_O} now"', "-", "-", "-", "-", "-"),
    _g("-", "a good call after a broken one", f"{_O}call:f{{]{_C}{_O}call:f{{b:1}}{_C}",
       f'{_ONE}; cut f {{; error "{_O}call:f{{]{_C}"', "-", "-", "-", "-", "-"),
)  # fmt: skip

_LIMIT = '<atem:parameter name="limit">1</atem:parameter>\n'
_HELLO = " to=self<|message|>hm"
_ATEM = (
    _a("1", "doubled name", f" to=f.f{_M}{_B}{_invoke('f.f')}{_Z}", _ONE,
       "call", "call", "raw text back", "-", "raw name"),
    _a("2", "another namespace", f" to=other.f{_M}{_B}{_invoke('other.f')}{_Z}", 'call other.f {"b": 1}',
       "raw name", "call f", "raw text back", "-", "raw name"),
    _a("3", "name and parameter glued, tag swallowed",
       f' to=read{_M}{_B}<atem:invoke name="read.filePath">n.txt</atem:parameter>\n</atem:invoke>\n{_Z}',
       'call read {"filePath": "n.txt"}', "-", "-", "-", "-", "-"),
    _a("3", "name and parameter glued, tag there",
       f" to=read{_M}{_B}{_invoke('read.limit', _LIMIT)}{_Z}",
       'call read {"limit": 1}', "-", "-", "-", "-", "-"),
    _a("4", "thought left without its end", f"{_HELLO} to=f{_M}{_F}", f'reasoning "hm"; {_ONE}',
       "call", "lost", "call", "-", "lost"),
    _a("4", "the same, name not declared", f"{_HELLO} to=g{_M}x", 'content "x"; reasoning "hm to=g"',
       "-", "-", "-", "-", "-"),
    _a("5", "a token pasted into the name", f" to=f{_M}{_B}{_invoke('f' + _M)}{_Z}", _ONE,
       "no call", "dropped", "raw text back", "-", "name with it"),
    _a("5", "a token in the place of its end", f' to=f{_M}{_B}<atem:invoke name="f{_M}<atem:parameter name="b">1'
       f"</atem:parameter>\n</atem:invoke>\n{_Z}", _ONE, "-", "-", "-", "-", "-"),
    _a("6", "prose glued before a header", f"Now. to=f{_M}{_F}", f'content "Now."; {_ONE}',
       "call, prose lost", "text", "call", "-", "call, prose lost"),
    _a("7", "block without a header", _F, _ONE, "call and text", "text", "call", "-", "call"),
    _a("7", "two of them, text between", f"{_F}and{_F}", f'content "and"; {_ONE}; {_ONE}', "-", "-", "-", "-", "-"),
    _a("8", "block quoted in a thought and an answer", f" to=self{_M}{_F}{_E}{_S} to=user{_M}{_F}",
       f'content "{_F}"; reasoning "{_F}"'.replace("\n", "\\n").replace('name="', 'name=\\"').replace('">', '\\">'),
       "Spark: a call", "text", "two calls", "-", "text"),
    _a("9", "`constrain=` in the header", f" to=f constrain=json{_M}{_F}", _ONE,
       "no call", "call", "call", "-", "call"),
    _a("10", "block without its end", f" to=f{_M}{_B}{_invoke('f')}<|eot|>", _ONE,
       "call", "call", "hidden", "-", "call"),
    _a("11", "cut in a call", f" to=f{_M}{_B}{_invoke('f')[:60]}", 'cut f {"b": 1; error ""',
       "no call", "no call", "no call", "-",
       "call with {}"),
    _a("12", "second call cut", f" to=f{_M}{_F}{_E}{_S} to=f{_M}{_B}{_invoke('f')[:60]}",
       f'{_ONE}; cut f {{"b": 1; error ""',
       "first call", "first call", "first call", "-", "call with {} too"),
    _a("13", "a partial tag at the end", f" to=f{_M}<atem:function_calls", f'error " to=f{_M}<atem:function_calls"',
       "may leak", "-", "-", "-", "-"),
    _a("14", "no new lines", f" to=f{_M}{_F}".replace("\n", ""), _ONE, "call", "call", "call", "-", "call"),
    _a("14", "attributes and spaces", f" to=f{_M}{_F}".replace('"f">', '"f" id="7">').replace('"b">', '"b" >')
       .replace("</atem:parameter>", "</atem:parameter >"), _ONE, "call", "call", "hidden", "-", "error"),
    _a("14", "single quotes", f" to=f{_M}{_B}<atem:invoke name='f'>\n</atem:invoke>\n{_Z}",
       f"error \" to=f{_M}{_B}<atem:invoke name='f'>\n</atem:invoke>\n{_Z}\"".replace("\n", "\\n"),
       "none", "none", "none", "-", "none"),
    _a("15", "a damaged closer",
       f' to=f{_M}{_B}<atem:invoke name="f">\n<atem:parameter name="a">x</atem:p></atem:parameter>\n'
       f"</atem:invoke>\n{_Z}", 'call f {"a": "x</atem:p>"}', "in the value", "in the value", "in the value", "-",
       "in the value"),
    _a("16", "several thoughts", f" to=self{_M}A{_E}{_S} to=self{_M}B{_E}{_S} to=user{_M}Hi",
       'content "Hi"; reasoning "A\\nB"', "AB or A, B", "A, B", "A, B", "-", "B"),
    _a("-", "commentary", f" to=commentary{_M}Hi", 'content "Hi"', "content", "content", "content", "-", "-"),
    _a("-", "developer", f" to=developer{_M}Hm{_E}{_S} to=user{_M}Hi", 'content "Hi"', "dropped", "-", "-", "-", "-"),
    _a("-", "no recipient", f"{_M}Hi", 'content "Hi"', "reasoning or content", "text", "content", "-", "-"),
    _a("-", "header that is cut", " to=f", 'error " to=f"', "-", "text", "-", "-", "-"),
    _a("-", "header that is cut, later", f"{_HELLO}{_E}{_S} to=f", f'reasoning "hm"; error "{_E}{_S} to=f"',
       "-", "-", "-", "-",
       "-"),
    _a("-", "no block behind a header",
       f" to=f{_M}junk{_E}{_S} to=user{_M}Hi", f'content "Hi"; error " to=f{_M}junk{_E}"',
       "-", "-", "-", "-", "-"),
)  # fmt: skip

ROWS: tuple[Row, ...] = _GEMMA + _ATEM
