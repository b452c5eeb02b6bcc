"""Engines with one surface: they load a vocabulary, compile a request and step through a call.

In: the cases of request.py. Out: `ENGINES`; a peer that is not installed raises `MissingPeer`. `steps` gives bound
methods, so that none pays for the adapter.
`python -m benchmarks.peers` runs a call through each engine and says where their masks differ from ours.
"""

from __future__ import annotations

import argparse
import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

import twingram as tg
from tests.engines import Tokens

from .inputs import need_vocabularies
from .request import EBNF, FORMATS, LARK, STOPS, Case, grammar_text, vocabulary_of

__all__ = ["ENGINES", "Accept", "Engine", "Fill", "Measure", "MissingPeer", "Twingram", "XGrammarOneThread", "loaded"]

SLICES = ("[^<]{1,10}", "[^<]{1,30}", "[^<]+")  # parts of the vocabulary that fit into our strings; its own do not
Accept = Callable[[int], bool]
Fill = Callable[[], object]
Measure = Callable[..., None]  # see conftest.py


class MissingPeer(Exception):
    """Another engine is not installed. The message says which, and how to install it."""


# -- engines -----------------------------------------------------------------------------------------------------------


class Engine:
    """An engine, its vocabulary loaded. Subclasses say what each step is."""

    name = ""

    def __init__(self, fmt: str) -> None:
        self.fmt = fmt
        self.load(vocabulary_of(fmt))

    def load(self, vocabulary: tg.Vocabulary) -> None:
        """What a process does once."""

    def request(self, case: Case) -> Any:
        """What `compile` is given; not timed."""
        raise NotImplementedError

    def compile(self, request: Any) -> Any:
        raise NotImplementedError

    def matcher(self, compiled: Any) -> Any:
        raise NotImplementedError

    def steps(self, matcher: Any) -> tuple[Accept, Fill]:
        """Bound methods: accept a token; write the mask into a row that is kept."""
        raise NotImplementedError

    def row(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The row that `steps` writes into."""
        raise NotImplementedError


class Twingram(Engine):
    name = "twingram"

    def load(self, vocabulary: tg.Vocabulary) -> None:
        self.vocabulary, self.format = vocabulary, tg.load_format(self.fmt)
        self.rows = np.zeros((1, -(-len(vocabulary) // 32)), dtype=np.int32)

    def request(self, case: Case) -> Any:
        return case.definitions

    def compile(self, request: Any) -> tg.Constraint:
        return self.format.constraint(
            request, "required", vocabulary=self.vocabulary, key_order="declared", parallel_tool_calls=False,
            reasoning="forbid",
        )  # fmt: skip

    def matcher(self, compiled: tg.Constraint) -> tg.Session:
        return compiled.session()

    def steps(self, matcher: tg.Session) -> tuple[Accept, Fill]:
        return matcher.accept_token, partial(matcher.fill_bitmask, self.rows)

    def row(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        return self.rows[0]


def _peer(module: str, install: str) -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs to mend
            return __import__(module, fromlist=["_"])
    except ImportError as missing:
        raise MissingPeer(f"{module} cannot be imported ({missing}); {install}") from missing


class XGrammar(Engine):
    name = "xgrammar"
    threads = 8  # its default

    def load(self, vocabulary: tg.Vocabulary) -> None:
        self.module = _peer("xgrammar", "pip install xgrammar (benchmarks/README.md says how without a GPU)")
        stops = [vocabulary.special_tokens[stop] for stop in STOPS[self.fmt]]
        tokens = [vocabulary.token_bytes(token) for token in range(len(vocabulary))]
        raw = self.module.VocabType.RAW
        self.info = self.module.TokenizerInfo(tokens, raw, vocab_size=len(vocabulary), stop_token_ids=stops)
        self.compiler = self.module.GrammarCompiler(self.info, max_threads=self.threads, cache_enabled=False)
        self.rows = self.module.allocate_token_bitmask(1, len(vocabulary))

    def request(self, case: Case) -> str:
        return grammar_text(case, EBNF)

    def compile(self, request: str) -> Any:
        return self.compiler.compile_grammar(self.module.Grammar.from_ebnf(request))

    def matcher(self, compiled: Any) -> Any:
        return self.module.GrammarMatcher(compiled)

    def steps(self, matcher: Any) -> tuple[Accept, Fill]:
        return matcher.accept_token, partial(matcher.fill_next_token_bitmask, self.rows)

    def row(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        row: np.ndarray[Any, np.dtype[np.int32]] = self.rows[0].numpy()
        return row


class XGrammarOneThread(XGrammar):
    name = "xgrammar, 1 thread"
    threads = 1


class LLGuidance(Engine):
    name = "llguidance"

    def load(self, vocabulary: tg.Vocabulary) -> None:
        self.module = _peer("llguidance", "pip install llguidance")
        self.fill = _peer("llguidance.numpy", "pip install llguidance").fill_next_token_bitmask
        stops = [vocabulary.special_tokens[stop] for stop in STOPS[self.fmt]]
        wrapped = self.module.TokenizerWrapper(Tokens(vocabulary, stops))
        size = len(vocabulary)
        self.tokenizer = self.module.LLTokenizer(wrapped, n_vocab=size, eos_token=stops, slices=list(SLICES))
        self.rows = np.zeros((1, -(-len(vocabulary) // 32)), dtype=np.int32)

    def request(self, case: Case) -> str:
        return grammar_text(case, LARK)

    def compile(self, request: str) -> Any:
        matcher = self.module.LLMatcher(self.tokenizer, self.module.LLMatcher.grammar_from_lark(request))
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def matcher(self, compiled: Any) -> Any:
        compiled.reset()  # a copy would lose what its lexer has met
        return compiled

    def steps(self, matcher: Any) -> tuple[Accept, Fill]:
        return matcher.consume_token, partial(self.fill, matcher, self.rows)

    def row(self) -> np.ndarray[Any, np.dtype[np.int32]]:
        return self.rows[0]


ENGINES: tuple[type[Engine], ...] = (Twingram, XGrammar, LLGuidance)


@cache
def loaded(kind: type[Engine], fmt: str) -> Engine:
    """An engine that has seen a request of each size, so that what belongs to the vocabulary is there."""
    engine = kind(fmt)
    for tools in (1, 20):
        case = Case(fmt, tools)
        accept, fill = engine.steps(engine.matcher(engine.compile(engine.request(case))))
        for token in case.tokens:
            fill()
            if not accept(token):
                raise ValueError(f"{engine.name} does not accept {case.text!r}")
    gc.collect()
    gc.freeze()
    return engine


# -- differences -------------------------------------------------------------------------------------------------------


def masks(engine: Engine, case: Case) -> Iterator[np.ndarray[Any, np.dtype[np.bool_]]]:
    """The mask before each token of the call, and after the last."""
    accept, fill = engine.steps(engine.matcher(engine.compile(engine.request(case))))
    for token in [*case.tokens, None]:
        fill()
        bits = np.unpackbits(engine.row().view(np.uint8), bitorder="little")[: len(case.vocabulary)]
        yield bits.astype(np.bool_)
        if token is not None and not accept(token):
            raise ValueError(f"{engine.name} does not accept token {token} of {case.text!r}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Where masks differ from ours.")
    parser.parse_args(argv)
    need_vocabularies(parser)
    for fmt in FORMATS:
        case = Case(fmt)
        ours = list(masks(Twingram(fmt), case))
        for kind in ENGINES[1:]:
            try:
                theirs = list(masks(kind(fmt), case))
            except MissingPeer as missing:
                print(f"{fmt}: {missing}")
                continue
            _tell(case, kind.name, ours, theirs)
    return 0


def _tell(case: Case, name: str, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    differ = [at for at in range(len(ours)) if (ours[at] != theirs[at]).any()]
    print(f"{case.format}, {name}: {len(ours)} masks, {len(differ)} differ from ours")
    seen: set[tuple[int, int]] = set()
    for at in differ:
        more, less = np.flatnonzero(theirs[at] & ~ours[at]), np.flatnonzero(ours[at] & ~theirs[at])
        if (len(more), len(less)) in seen:
            continue
        seen.add((len(more), len(less)))
        before = case.vocabulary.decode(case.tokens[:at])[-30:]
        some = [[case.vocabulary.token_bytes(int(token)) for token in ids[:4]] for ids in (more, less)]
        print(f"  after {before!r}: it allows {len(more)} more {some[0]} and {len(less)} less {some[1]}")


if __name__ == "__main__":
    raise SystemExit(main())
