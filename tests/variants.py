"""Outputs beside those of `deviations.py`: for each alternative of the grammars one that nothing else reads the same.

In: nothing. Out: `VARIANTS`. `scripts/alternatives.py` takes the alternatives out one by one and reads these as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["VARIANTS", "Variant"]


@dataclass(frozen=True)
class Variant:
    """`gives`: what comes of it, as `test_deviations.told` writes it. `g` is no declared tool."""

    format: str
    text: str
    gives: str
    options: dict[str, Any] = field(default_factory=dict)


_O, _C, _Q = "<|tool_call>", "<tool_call|>", '<|"|>'
_S, _M, _E = "<|start|>assistant", "<|message|>", "<|eom|>"
_B, _Z = "<atem:function_calls>\n", "</atem:function_calls>"
_TAIL = {"prompt_tail": "<|channel>thought\n"}
_STRICT = {"strict": True}


def _g(text: str, gives: str, **options: Any) -> Variant:
    return Variant("gemma4", text, gives, options)


def _c(inside: str, gives: str, **options: Any) -> Variant:
    """What stands between the markers of one call."""
    return Variant("gemma4", _O + inside + _C, gives, options)


def _a(text: str, gives: str, **options: Any) -> Variant:
    return Variant("atem", text, gives, options)


def _invoke(name: str, key: str = "b", value: str = "1", gap: str = "") -> str:
    return f'<atem:invoke name="{name}">\n{_parameter(key, value)}</atem:invoke{gap}>\n'


def _parameter(key: str, value: str, gap: str = "") -> str:
    return f'<atem:parameter name="{key}">{value}</atem:parameter{gap}>\n'


_F = _B + _invoke("f") + _Z
_TO = f" to=f{_M}"
_READ = f" to=read{_M}{_B}"

_GEMMA = (
    # Thoughts.
    _g(f"hm{_O}call:f{{b:1}}{_C}", 'reasoning "hm"; call f {"b": 1}', **_TAIL),
    _g(f"Use {_O} now<channel|>Hi", 'content "Hi"; reasoning "Use <|tool_call> now"', **_TAIL),
    _g("hm<channel|>Hi", 'content "Hi"; reasoning "hm"', **_TAIL, **_STRICT),
    _g(f"<|channel>thought\nhm<channel|>Hi{_O}call:f{{b:1}}{_C}",
       'content "Hi"; reasoning "hm"; call f {"b": 1}', **_STRICT),
    _g(f"<|channel><|channel>thought\nUse {_O} now<channel|>Hi", 'content "Hi"; reasoning "Use <|tool_call> now"'),
    _g(f"<|channel><|channel>thought\nhm{_O}call:f{{b:1}}{_C}", 'reasoning "hm"; call f {"b": 1}'),
    _g(f"<|channel>Use {_O} now<channel|>Hi", 'content "Hi"; reasoning "Use <|tool_call> now"'),
    _g(f"<|channel>hm{_O}call:f{{b:1}}{_C}", 'reasoning "hm"; call f {"b": 1}'),
    # Calls of tools that are not declared: no reading knows their keys.
    _c("call:g(b:1)", 'call g {"b": 1}'),
    _c("call:g()", "call g {}"),
    _c("call:g(a:1,b:2)", 'call g {"a": 1, "b": 2}'),
    _c("call:g(a:1 b:2)", 'call g {"a": 1, "b": 2}'),
    _c("call:g(a:1,)", 'call g {"a": 1}'),
    _c("call:g(l:[1", 'call g {"l": [1]}'),
    _c("call:g(a:1", 'call g {"a": 1}'),
    _c("call:f{c:'x,b:2',a:hello, w}", 'call f {"c": "x,b:2", "a": "hello, w"}'),
    _c("call:f{a:5,z:1}", 'call f {"a": "5", "z": 1}'),
    _c("call:f{a:true,z:1}", 'call f {"a": "true", "z": 1}'),
    _c("call:f{a:false,z:1}", 'call f {"a": "false", "z": 1}'),
    _c("call:f{a:null,z:1}", 'call f {"a": "null", "z": 1}'),
    _c("call:f{b:x,z:1}", 'call f {"b": "x", "z": 1}'),
    _c("call:g{a:1 b:2}", 'call g {"a": 1, "b": 2}'),
    _c("call:g{a:1,}", 'call g {"a": 1}'),
    _c("call:g{o:{x:1", 'call g {"o": {"x": 1}}'),
    _c("call:g{l:[1,2,]}", 'call g {"l": [1, 2]}'),
    _c("call:g{a:hello}", 'call g {"a": "hello"}'),
    _c(f"call:g{{a:hello{_Q}}}", 'call g {"a": "hello"}'),
    _c("call:g{a:`x`}", 'call g {"a": "x"}'),
    _c("call:g{a:``}", 'call g {"a": ""}'),
    _c(f"call:g{{a:'x'{_Q}}}", 'call g {"a": "x"}'),
    _c("call:g{'b':1}", 'call g {"b": 1}'),
    _c("call:g{'':1}", 'call g {"": 1}'),
    _c('call:g{"b"=1}', 'call g {"b": 1}'),
    _c("call:f{n:1,t:true,f:false,z:null,l:[1]}",
       'call f {"n": 1, "t": true, "f": false, "z": null, "l": [1]}', **_STRICT),
    # Several calls in an envelope, or none of it.
    _g(f"{_O}call:f{{b:1}}{_O}call:f{{b:2}}{_C}", 'call f {"b": 1}; call f {"b": 2}'),
    _c("call:f{b:1} call:f{a:hello, w}", 'call f {"b": 1}; call f {"a": "hello, w"}'),
    _c("call:f{b:1},call:f{b:2}", 'call f {"b": 1}; call f {"b": 2}'),
    _c("call:f{b:1}call:x:f{b:2}", 'call f {"b": 1}; call f {"b": 2}'),
    _c("call:f{b:1}call:g{b:2}", 'call f {"b": 1}; call g {"b": 2}'),
    _c("call:f{b:1}call:g {b:2}", 'call f {"b": 1}; call g {"b": 2}'),
    _c("call:f{b:1}call:g(b:2)", 'call f {"b": 1}; call g {"b": 2}'),
    _c("\n:f{b:1}", 'call f {"b": 1}'),
    # Raw text beside other members.
    _c("call:f(a:hello, w)", 'call f {"a": "hello, w"}'),
    _c("call:f(b:1,a:hello, w)", 'call f {"b": 1, "a": "hello, w"}'),
    _c("call:f(b:1 a:hello, w)", 'call f {"b": 1, "a": "hello, w"}'),
    _c("call:f(a:hello, w,b:1,)", 'call f {"a": "hello, w", "b": 1}'),
    _c("call:f(a:hello, w,l:[1", 'call f {"a": "hello, w", "l": [1]}'),
    _c("call:f(a:hello, w,b:1", 'call f {"a": "hello, w", "b": 1}'),
    _c("call:f{a:hello, w,b:1", 'call f {"a": "hello, w", "b": 1}'),
    _c("call:f{a:hello, w", 'call f {"a": "hello, w"}'),
    _c("call:f{a:hello, w,c:x, y}", 'call f {"a": "hello, w", "c": "x, y"}'),
    _c("call:f{a:hello, w,l:[1]}", 'call f {"a": "hello, w", "l": [1]}'),
    _c("call:f{a:hello, w,b:one}", 'call f {"a": "hello, w", "b": "one"}'),
    _c("call:f{a:hello, w,c:'x, y',b:1}", 'call f {"a": "hello, w", "c": "x, y", "b": 1}'),
    # Calls without their markers.
    _g(f" call:f{{a:{_Q}x{_Q}}}", 'call f {"a": "x"}'),
    _g(f"call:f{{b:1,a:{_Q}x{_Q}}}", 'call f {"b": 1, "a": "x"}'),
    _g(f"call:f{{a:{_Q}x{_Q},b:1}}", 'call f {"a": "x", "b": 1}'),
    _g(f"call:f{{o:{{k:{_Q}x{_Q}}}}}", 'call f {"o": {"k": "x"}}'),
    _g(f"call:f{{o:{{m:1,k:{_Q}x{_Q},n:2}}}}", 'call f {"o": {"m": 1, "k": "x", "n": 2}}'),
    _g("call:f{b:1,o:{},l:[]}", 'content "call:f{b:1,o:{},l:[]}"'),
    _g(f"call:f{{o:{{k:1,m:true}},l:[1,2,[],{{}}],b:'1',c:\"x\",n:`y`,m:z,a:{_Q}x{_Q}}}",
       'call f {"o": {"k": 1, "m": true}, "l": [1, 2, [], {}], "b": 1, "c": "x", "n": "y", "m": "z", "a": "x"}'),
    _g(f"call:f{{l:[{{k:1}},{_Q}x{_Q}]}}", 'call f {"l": [{"k": 1}, "x"]}'),
    _g(f"call:f{{b:false,o:null,a:{_Q}x{_Q}}}", 'call f {"b": false, "o": null, "a": "x"}'),
    _g(f"call:f{{l:[1,{_Q}x{_Q},2]}}", 'call f {"l": [1, "x", 2]}'),
)  # fmt: skip

_ATEM = (
    _a(f"{_S} to=user{_M}Hi", 'content "Hi"'),
    _a(f" to=self{_M}A{_E}{_S} to=self{_M}B{_E}{_S} to=user{_M}Hi", 'content "Hi"; reasoning "A\\nB"', **_STRICT),
    _a(f" to=self{_M}A{_E}{_S}{_TO}{_F}{_E}{_S}{_TO}{_F}",
       'reasoning "A"; call f {"b": 1}; call f {"b": 1}', **_STRICT),
    _a(f" to=self{_M}hm{_E}{_S}", 'reasoning "hm"'),
    _a(f" to=self{_M}hm{_S} to=self{_M}more{_S} to=user{_M}Hi", 'content "Hi"; reasoning "hm\\nmore"'),
    _a(f" to=g constrain=json{_M}{_B}{_invoke('g')}{_Z}", 'call g {"b": 1}'),
    _a(f" to=self{_M}hm to=f constrain=json{_M}{_F}", 'reasoning "hm"; call f {"b": 1}'),
    _a(f"{_TO}\n{_F}", 'call f {"b": 1}'),
    _a(f"{_TO}{_F}\n<|eot|>", 'call f {"b": 1}'),
    _a(f"{_TO}{_B}{_invoke('f', gap=' ')}{_Z}", 'call f {"b": 1}'),
    _a(f"{_TO}{_B}{_invoke('f')}{_invoke('f', 'b', '2', ' ')}{_Z}", 'call f {"b": 1}; call f {"b": 2}'),
    _a(f"hi{_F}and{_F}end", 'content "hiandend"; call f {"b": 1}; call f {"b": 1}'),
    _a(f"{_F}{_E}", 'call f {"b": 1}'),
    _a(f" to=user{_M}Hi{_TO}{_F}{_E}", 'content "Hi"; call f {"b": 1}'),
    _a(f" to=user{_M}Hi{_E}", 'content "Hi"'),
    _a(f"{_TO}{_F}{_E}", 'call f {"b": 1}'),
    _a(f" to=user{_M}Hi to=self{_M}hm", 'content "Hi"; reasoning "hm"'),
    _a(f" to=self{_M}hm to=user{_M}Hi", 'content "Hi"; reasoning "hm"'),
    _a(f" to=user{_M}Hi{_E}{_S} to=self{_M}hm", 'content "Hi"; reasoning "hm"'),
    _a(f" to=user{_M}Hi{_E}{_S} to=commentary{_M} more", 'content "Hi more"'),
    _a(f"{_TO}junk{_E}{_S} to=user{_M}Hi{_E}{_S}{_TO}{_F}",
       'content "Hi"; call f {"b": 1}; error " to=f<|message|>junk<|eom|>"'),
    _a(" to=f<|mess", 'error " to=f<|mess"'),
    _a(f"{_TO}{_B}{_invoke(f're{_M}ad')}{_Z}", 'call read {"b": 1}'),
    _a(f"{_TO}{_B}{_invoke(f're{_S[:9]}ad')}{_Z}", 'call read {"b": 1}'),
    _a(f"{_TO}{_B}{_invoke(f'f{_S[:9]}')}{_Z}", 'call f {"b": 1}'),
    _a(_READ + '<atem:invoke name="read.limit">\n' + _parameter("limit", "1", " ").replace('">', '" x="y">')
       + _parameter("filePath", "p") + "</atem:invoke>\n" + _Z, 'call read {"limit": 1, "filePath": "p"}'),
    _a(_READ + '<atem:invoke name="read.filePath">p</atem:parameter >\n' + _parameter("limit", "1") + "</atem:invoke>\n"
       + _Z, 'call read {"filePath": "p", "limit": 1}'),
)  # fmt: skip

VARIANTS: tuple[Variant, ...] = _GEMMA + _ATEM
