"""What other engines make of the same schemas, in plain JSON, by their own matchers.

In: a schema and instances with labels on which all judges agree. Out: for each peer whether the schema compiles and how
it judges the instances. The vocabulary is the 256 bytes, so that nothing depends on a tokenizer; times are not taken.

Each schema is judged in a process of its own that is given `PATIENCE` seconds: native code cannot be interrupted.
xgrammar: `strict_mode=False`, `any_order=True`, any white space; llguidance: as it comes, members in declared order (an
instance counts as accepted in either its own order or the order of `properties`).
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

__all__ = ["PEERS", "judge_peer"]

PATIENCE = 10
Matcher = Callable[[str], bool]


@cache
def _xgrammar() -> Any:
    import xgrammar  # noqa: PLC0415  each is optional

    info = xgrammar.TokenizerInfo(
        [bytes((byte,)) for byte in range(256)] + [b"</s>"], xgrammar.VocabType.RAW, stop_token_ids=[256]
    )
    return xgrammar, xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def _by_xgrammar(schema: Any) -> Matcher:
    module, compiler = _xgrammar()
    compiled = compiler.compile_json_schema(json.dumps(schema), strict_mode=False, any_order=True)

    def accepts(text: str) -> bool:
        matcher = module.GrammarMatcher(compiled, terminate_without_stop_token=True)
        return bool(matcher.accept_string(text) and matcher.is_completed())

    return accepts


class _Bytes:
    """A vocabulary of bytes as llguidance asks for it."""

    eos_token_id, bos_token_id = 256, None

    def __init__(self) -> None:
        self.tokens = [*(bytes((byte,)) for byte in range(256)), b"</s>"]
        self.special_token_ids = [256]

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)

    encode = __call__


@cache
def _llguidance() -> Any:
    import llguidance  # noqa: PLC0415

    return llguidance, llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()), n_vocab=257)


def _by_llguidance(schema: Any) -> Matcher:
    module, tokenizer = _llguidance()
    grammar = module.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    first = module.LLMatcher(tokenizer, grammar, log_level=0)
    if first.is_error():
        raise ValueError(first.get_error())

    def accepts(text: str) -> bool:
        matcher = first.deep_copy()
        data = list(text.encode())
        return matcher.try_consume_tokens(data) == len(data) and bool(matcher.is_accepting())

    return accepts


PEERS: Mapping[str, Callable[[Any], Matcher]] = {"xgrammar": _by_xgrammar, "llguidance": _by_llguidance}


def judge_peer(name: str, schema: Any, instances: Sequence[tuple[Any, bool]]) -> Counter[str]:
    """Counts of one schema: `compiled` or `refused` or `no answer`; `valid accepted`, `invalid rejected`, ..."""
    (_xgrammar if name == "xgrammar" else _llguidance)()  # loaded before the fork
    inward, outward = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        try:
            os.write(outward, json.dumps(_judge(name, schema, instances)).encode())
        finally:
            os._exit(0)
    os.close(outward)
    with os.fdopen(inward) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return Counter(json.loads(said) if said else {"no answer": 1})


def _judge(name: str, schema: Any, instances: Sequence[tuple[Any, bool]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    try:
        accepts = PEERS[name](schema)
    except Exception:  # noqa: BLE001  whatever a peer raises: it does not take the schema
        return Counter({"refused": 1})
    counts["compiled"] = 1
    for data, label in instances:
        texts = dict.fromkeys(json.dumps(each, ensure_ascii=False) for each in (data, _ordered(data, schema)))
        accepted = any(map(accepts, texts))
        kind = "valid" if label else "invalid"
        counts[kind] += 1
        counts[f"{kind} {'accepted' if accepted else 'rejected'}"] += 1
    return counts


def _ordered(data: Any, schema: Any) -> Any:
    """Members in the order in which the schema lists them, as far as it does so itself."""
    if isinstance(data, dict):
        listed = schema.get("properties") if isinstance(schema, Mapping) else None
        listed = listed if isinstance(listed, Mapping) else {}
        names = [*(name for name in listed if name in data), *(name for name in data if name not in listed)]
        return {name: _ordered(data[name], listed.get(name)) for name in names}
    if isinstance(data, list):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        return [_ordered(item, items) for item in data]
    return data
