"""The xgrammar-shaped adapter, beside the real one."""

from __future__ import annotations

import inspect
import warnings
from random import Random
from typing import Any

import numpy as np
import pytest

import twingram as tg

pytest.importorskip("torch", reason="torch is not installed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # theirs to mend
    real = pytest.importorskip("xgrammar", reason="xgrammar is not installed")

import torch

from twingram_bindings import xgrammar as ours

from .engines import XGrammar, walk_tokens

SCHEMA = {
    "type": "object",
    "required": ["city", "days"],
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "é"]}},
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
REQUEST = {"format": "gemma4", "tools": TOOLS, "tool_choice": "required", "key_order": "declared"}
CALL = '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>'


@pytest.fixture(scope="module")
def vocabulary() -> tg.Vocabulary:
    return tg.Vocabulary.embedded()


@pytest.fixture(scope="module")
def compiled(vocabulary: tg.Vocabulary) -> ours.CompiledGrammar:
    return ours.GrammarCompiler(vocabulary).compile_grammar(REQUEST)


@pytest.fixture(scope="module")
def theirs(compiled: ours.CompiledGrammar, vocabulary: tg.Vocabulary) -> Any:
    """The real compiled grammar, from our own text."""
    made = compiled.constraint
    engine = XGrammar(vocabulary, made.binding.ids(made.binding.alphabet.end))
    return engine.compiler.compile_grammar(real.Grammar.from_ebnf(compiled.grammar))


def parameters(callable_: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(callable_).parameters.values()]


@pytest.mark.parametrize("name", ["GrammarMatcher", "BatchGrammarMatcher"])
def test_methods_and_their_arguments_are_the_same(name: str) -> None:
    own, other = getattr(ours, name), getattr(real, name)
    public = [member for member in vars(other) if not member.startswith("_")]
    assert len(public) >= 5
    for member in [*public, "__init__"]:
        found, wanted = inspect.getattr_static(own, member), inspect.getattr_static(other, member)
        assert type(found) is type(wanted), member
        if not isinstance(wanted, property):
            assert parameters(getattr(own, member)) == parameters(getattr(other, member)), member


@pytest.mark.parametrize(
    "name", ["allocate_token_bitmask", "apply_token_bitmask_inplace", "get_bitmask_shape", "reset_token_bitmask"]
)
def test_functions_are_the_same(name: str) -> None:
    other = getattr(real, name, None) or getattr(real.matcher, name)
    assert parameters(getattr(ours, name)) == parameters(other)


def test_walks_forward_and_back_give_the_same(
    compiled: ours.CompiledGrammar, theirs: Any, vocabulary: tg.Vocabulary
) -> None:
    size = len(vocabulary)
    pair = [ours.GrammarMatcher(compiled), real.GrammarMatcher(theirs)]
    rows = [ours.allocate_token_bitmask(2, size), real.allocate_token_bitmask(2, size)]
    assert rows[0].shape == rows[1].shape
    assert rows[0].dtype == rows[1].dtype
    rng = Random(5)

    def same() -> None:
        for matcher, row in zip(pair, rows, strict=True):
            row.fill_(-1)
            assert matcher.fill_next_token_bitmask(row, 1)
        bits = [np.unpackbits(row.numpy().view(np.uint8), axis=1, bitorder="little")[:, :size] for row in rows]
        assert (bits[0] == bits[1]).all()
        assert pair[0].is_completed() == pair[1].is_completed()
        assert pair[0].is_terminated() == pair[1].is_terminated()
        assert pair[0].find_jump_forward_string() == pair[1].find_jump_forward_string()

    for _ in range(4):
        tokens = walk_tokens(compiled.constraint.session(), rng, 30)
        for token in tokens:
            same()
            assert [matcher.accept_token(token) for matcher in pair] == [True, True]
            if rng.random() < 0.2:
                other = rng.randrange(size)
                assert len({matcher.fork().accept_token(other) for matcher in pair}) == 1
                pair[:] = [matcher.fork() for matcher in pair]  # what the first forks did is theirs alone
        back = rng.randrange(1, len(tokens))
        for matcher in pair:
            matcher.rollback(back)
        same()
        for matcher in pair:
            matcher.reset()
        same()
        assert [matcher.accept_string('nothing of the kind') for matcher in pair] == [False, False]


def test_a_string_is_one_step(compiled: ours.CompiledGrammar, vocabulary: tg.Vocabulary) -> None:
    matcher = ours.GrammarMatcher(compiled)
    for token in vocabulary.encode(CALL)[:1]:
        assert matcher.accept_token(token)
    assert matcher.find_jump_forward_string() == "call:get_weather{city:"
    assert matcher.accept_string(b"call:get_weather")
    assert not matcher.accept_string("{day")
    assert not matcher.accept_string(b"\xff")
    matcher.rollback(1)
    assert matcher.accept_string(CALL.removeprefix("<|tool_call>"))
    assert matcher.is_completed()
    assert not matcher.is_terminated()
    assert ours.GrammarMatcher(compiled, terminate_without_stop_token=True).is_terminated() is False
    assert matcher.accept_token(matcher.stop_token_ids[0])
    assert matcher.is_terminated()
    assert matcher.session.message.calls[0].value == {"city": "Paris", "days": 3}
    with pytest.raises(ValueError, match="cannot roll back"):
        matcher.rollback(4)


def test_trees_of_drafts_give_the_same(
    compiled: ours.CompiledGrammar, theirs: Any, vocabulary: tg.Vocabulary
) -> None:
    """A chain with a branch at each node: one that goes on and one that does not."""
    tokens, wrong = vocabulary.encode(CALL), vocabulary.encode("z")[0]
    size = 2 * 6 + 1
    child, sibling, draft = ([-1] * size for _ in range(3))
    draft[0] = tokens[0]
    for at in range(6):
        good, bad = 2 * at + 1, 2 * at + 2
        child[0 if not at else 2 * at - 1], sibling[good] = good, bad
        draft[good], draft[bad] = tokens[at + 1], wrong
    found = []
    for matcher in (ours.GrammarMatcher(compiled), real.GrammarMatcher(theirs)):
        assert matcher.accept_token(tokens[0])
        rows = real.allocate_token_bitmask(size, len(vocabulary))
        rows.zero_()
        assert matcher.traverse_draft_tree(*(torch.tensor(each) for each in (child, sibling, draft)), rows)
        found.append(rows)
    bits = [np.unpackbits(rows.numpy().view(np.uint8), axis=1, bitorder="little") for rows in found]
    assert (bits[0][:, : len(vocabulary)] == bits[1][:, : len(vocabulary)]).all()
    assert bits[0][2 * 5 + 1].any()


def test_masks_are_applied_alike(compiled: ours.CompiledGrammar, vocabulary: tg.Vocabulary) -> None:
    size = len(vocabulary)
    rows = ours.allocate_token_bitmask(3, size)
    ours.GrammarMatcher(compiled).fill_next_token_bitmask(rows, 2)
    for options in ({}, {"indices": [0, 2]}, {"vocab_size": 40}):
        logits = torch.randn(3, size)
        other = logits.clone()
        ours.apply_token_bitmask_inplace(logits, rows, **options)
        real.apply_token_bitmask_inplace(other, rows, **options)
        assert torch.equal(logits, other), options


def test_batches(compiled: ours.CompiledGrammar, vocabulary: tg.Vocabulary) -> None:
    matchers = [ours.GrammarMatcher(compiled, default_temperature=heat) for heat in (None, 0.5)]
    batch = ours.BatchGrammarMatcher()
    rows = ours.allocate_token_bitmask(3, len(vocabulary))
    batch.batch_fill_next_token_bitmask(matchers, rows, [2, 0])
    assert torch.equal(rows[0], rows[2])
    first = vocabulary.encode(CALL)[0]
    assert batch.batch_accept_token(matchers, [first, 5]) == [True, False]
    assert batch.batch_accept_string(matchers, ["call", "no"]) == [True, False]
    batch.batch_rollback(matchers, [2, 0])
    assert matchers[0].session.text == b""
    heats = torch.zeros(2)
    batch.batch_fill_temperature(matchers, heats)
    assert heats.tolist() == [-1.0, 0.5]


def test_requests_are_checked(vocabulary: tg.Vocabulary, compiled: ours.CompiledGrammar) -> None:
    compiler = ours.GrammarCompiler(vocabulary)
    with pytest.raises(tg.RequestError, match='"format"'):
        compiler.compile_grammar("[]")
    with pytest.raises(tg.RequestError, match="stop_tokens="):
        ours.GrammarMatcher(compiled, override_stop_tokens=3)
    assert compiler.compile_grammar('{"format": "gemma4"}').memory_size_bytes > 0
