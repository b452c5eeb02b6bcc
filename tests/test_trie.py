"""The token trie, sweeps of automata over it, and packed rows, each against the plainest way to say the same."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.vocabularies import NEEDS_GEMMA, gemma
from twingram.automaton import dfa as automata
from twingram.tokens.bitmask import pack, unpack, words_for
from twingram.tokens.sweep import difference, sweep
from twingram.tokens.trie import TokenTrie
from twingram.tokens.vocabulary import Vocabulary


@dataclass
class Table:
    """An automaton given by its table."""

    table: NDArray[np.uint16]
    accept: bytes
    boundary: bytes

    def __post_init__(self) -> None:
        self.rows = self.table.tolist()

    def read(self, state: int, data: bytes) -> tuple[int, int]:
        """(state after `data`, characters read)."""
        chars = 0
        for byte in data:
            state = self.rows[state][byte]
            chars += self.boundary[state]
        return state, chars


def random_table(seed: int, states: int, density: float) -> Table:
    rng = np.random.default_rng(seed)
    table = rng.integers(1, states, size=(states, 256)).astype(np.uint16)
    table[rng.random((states, 256)) > density] = 0
    table[0] = 0
    flags = rng.integers(0, 2, size=(2, states)).astype(np.uint8)
    flags[:, 0] = 0
    return Table(table, flags[0].tobytes(), flags[1].tobytes())


def text_table(marker: bytes = b"</end>") -> Table:
    """ASCII and two-byte characters, without `"`, and without `marker`."""
    table = np.zeros((2 + len(marker), 256), dtype=np.uint16)
    for state in range(1, len(marker) + 1):
        table[state, 0x20:0x7F] = 1
        table[state, 0xC2:0xE0] = len(marker) + 1
        table[state, marker[0]] = 2
        table[state, marker[state - 1]] = (state + 1) % (len(marker) + 1)
        table[state, ord('"')] = 0
    table[-1, 0x80:0xC0] = 1
    flags = bytes([0, *[1] * len(marker), 0])
    return Table(table, flags, flags)


def random_tokens(seed: int, count: int, alphabet: bytes = b'abc<>/end"\xc3\xa9') -> list[bytes]:
    rng = random.Random(seed)
    return [bytes(rng.choice(alphabet) for _ in range(rng.randint(0, 7))) for _ in range(count)]


tokens_lists = st.lists(st.binary(max_size=5), max_size=40) | st.lists(
    st.text(alphabet="ab", max_size=6).map(str.encode), max_size=40
)


# ---- the trie -----------------------------------------------------------------------------------------------------


@given(tokens_lists)
def test_trie_holds_exactly_the_tokens(tokens: list[bytes]) -> None:
    trie = TokenTrie.of(enumerate(tokens))
    prefixes = {token[:end] for token in tokens for end in range(len(token) + 1)} | {b""}
    assert len(trie) == len(prefixes)
    for prefix in prefixes:
        node = trie.walk(prefix)
        assert node >= 0
        assert trie.tokens(node) == [i for i, token in enumerate(tokens) if token == prefix and token]
        below = [i for i, token in enumerate(tokens) if token.startswith(prefix) and token]
        assert sorted(trie.subtree_tokens(node).tolist()) == below
        assert trie.weight[node] == len(below)
        assert trie.np_depth[node] == len(prefix)
        children = range(trie.first_child[node], trie.first_child[node + 1])
        assert [trie.node_byte[child] for child in children] == sorted(
            {p[-1] for p in prefixes if p and p[:-1] == prefix}
        )
        assert all(trie.parent[child] == node for child in children)
    assert trie.walk(b"\x01\x02\x03\x04\x05\x06\x07\x08") == -1
    for token_id, token in enumerate(tokens):
        if token:
            assert trie.node_of_token[token_id] == trie.walk(token)


@given(tokens_lists)
def test_trie_is_the_same_from_its_arrays(tokens: list[bytes]) -> None:
    vocabulary = Vocabulary.from_tokens([*tokens, b"a"], {"<s>": len(tokens) + 1}, allow_partial=True)
    trie = vocabulary.trie
    again = TokenTrie.of_table(vocabulary._table, trie.arrays())
    assert again.node_byte == trie.node_byte
    for name, array in trie.arrays().items():
        assert np.array_equal(again.arrays()[name], array)
    assert b"<s>" not in {vocabulary.token_bytes(i) for i in trie.subtree_tokens(0).tolist()}


def test_an_empty_trie_has_a_root() -> None:
    trie = TokenTrie.of([])
    assert (len(trie), trie.depth, trie.child(0, 65), trie.tokens(0)) == (1, 0, -1, [])
    assert trie.subtree_tokens(0).tolist() == []
    table = text_table()
    assert sweep(trie, table, 1).token_ids.tolist() == []
    assert [ids.tolist() for ids in difference(trie, table, 1, 2)] == [[], []]


def test_memory_usage_counts_the_arrays() -> None:
    trie = TokenTrie.of(enumerate(random_tokens(0, 2000)))
    before = trie.memory_usage()
    assert before >= trie.np_first.nbytes + trie.np_weight.nbytes
    assert len(trie.parent) == len(trie)
    assert trie.memory_usage() == before + trie.parent.nbytes + trie.child_count.nbytes


# ---- sweeps -------------------------------------------------------------------------------------------------------


def check_sweep(tokens: list[bytes], table: Table, state: int, prefix: bytes = b"") -> None:
    trie = TokenTrie.of(enumerate(tokens))
    node = trie.walk(prefix)
    below = {i: t[len(prefix) :] for i, t in enumerate(tokens) if t.startswith(prefix) and t != prefix}
    swept = sweep(trie, table, state, node)
    found = zip(swept.end_states.tolist(), swept.char_counts.tolist(), strict=True)
    ends = {i: table.read(state, rest) for i, rest in below.items()} if state else {}
    alive = {i: end for i, end in ends.items() if end[0]}
    assert dict(zip(swept.token_ids.tolist(), found, strict=True)) == alive
    assert swept.token_ids.tolist() == sorted(alive)
    dead = {
        (rest[:at], table.read(state, rest[: at - 1])[0])
        for rest in below.values()
        for at in range(1, len(rest) + 1)
        if table.read(state, rest[: at - 1])[0] and not table.read(state, rest[:at])[0]
    }
    nodes, before = swept.dead_edges
    assert set(zip(nodes.tolist(), before.tolist(), strict=True)) == (
        {(trie.walk(prefix + data), at) for data, at in dead} if state else set()
    )
    for byte in {byte for rest in below.values() for byte in rest}:
        exits = swept.exits(byte)
        assert exits.entry_chars is not None
        spans = zip(exits.entry_ids.tolist(), exits.entry_start.tolist(), exits.entry_length.tolist(), strict=True)
        rests = [(i, exits.blob[start : start + length]) for i, start, length in spans]
        assert sorted(zip(rests, exits.entry_chars.tolist(), strict=True)) == sorted(
            ((i, rest[at:]), table.read(state, rest[:at])[1])
            for i, rest in below.items()
            if i not in alive
            for at, value in enumerate(rest)
            if value == byte and table.accept[table.read(state, rest[:at])[0]]
        )
        for entry, (_, rest) in enumerate(rests):
            assert entry in exits.entries(exits.walk(rest)).tolist()


@given(
    tokens_lists,
    st.integers(0, 1000),
    st.integers(2, 5),
    st.sampled_from([0.3, 0.9, 1.0]),
    st.integers(0, 4),
    st.data(),
)
def test_sweep_is_reading_token_by_token(
    tokens: list[bytes], seed: int, states: int, density: float, state: int, data: st.DataObject
) -> None:
    prefix = data.draw(st.sampled_from(sorted({token[:end] for token in tokens for end in (0, 1, 2)} | {b""})))
    check_sweep(tokens, random_table(seed, states, density), min(state, states - 1), prefix)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("state", [1, 2, 4, 7])
def test_wide_sweep_is_reading_token_by_token(seed: int, state: int) -> None:
    tokens = [bytes([value]) for value in range(256)] + random_tokens(seed, 3000)
    check_sweep(tokens, text_table(), state)
    check_sweep(tokens, text_table(), state, b"<")


def check_difference(tokens: list[bytes], table: Table, state: int, base: int) -> None:
    trie = TokenTrie.of(enumerate(tokens))
    one, other = (
        {i for i, token in enumerate(tokens) if token and start and table.read(start, token)[0]}
        for start in (state, base)
    )
    only, lost = difference(trie, table, state, base)
    assert only.tolist() == sorted(one - other)
    assert lost.tolist() == sorted(other - one)


@given(tokens_lists, st.integers(0, 1000), st.integers(2, 5), st.integers(0, 4), st.integers(0, 4))
def test_difference_of_two_states(tokens: list[bytes], seed: int, states: int, state: int, base: int) -> None:
    check_difference(tokens, random_table(seed, states, 0.7), min(state, states - 1), min(base, states - 1))


@pytest.mark.parametrize("state", [0, 1, 2, 4, 6, 7])
@pytest.mark.parametrize("count", [1000, 20_000])  # the second trie is large enough for every way of computing it
def test_difference_of_wide_states(state: int, count: int) -> None:
    tokens = [bytes([value]) for value in range(256)] + random_tokens(count, count)
    check_difference(tokens, text_table(), state, 1)
    check_difference(tokens, text_table(), 1, state)


def test_exits_of_exits_count_all_characters() -> None:
    trie = TokenTrie.of([(0, b'ab"cd"ef')])
    first = sweep(trie, text_table(), 1).exits(ord('"'))
    assert first.entry_chars is not None
    assert first.entry_chars.tolist() == [2]
    second = sweep(first, text_table(), 1, first.walk(b'"')).exits(ord('"'))
    assert second.entry_chars is not None
    assert (second.subtree_tokens(0).tolist(), second.entry_chars.tolist()) == ([0], [4])
    assert second.tokens(second.walk(b'"ef')) == [0]


def test_sweep_of_a_real_automaton() -> None:
    words = automata.literals([b"true", b"false", b"null", b"tru\xc3\xa9"])
    vocabulary = Vocabulary.embedded()
    swept = sweep(vocabulary.trie, words, words.start)
    alive = {vocabulary.token_bytes(i) for i in swept.token_ids.tolist()}
    assert alive >= {b"t", b"true", b"f", b"false", b"n", b"null"}
    assert all(any(word.startswith(token) for word in (b"true", b"false", b"null", b"tru\xc3\xa9")) for token in alive)


@NEEDS_GEMMA
def test_a_real_vocabulary_under_a_text_automaton() -> None:
    vocabulary, table = gemma(), text_table(b"</parameter>")
    trie = vocabulary.trie
    swept = sweep(trie, table, 1)
    alive = set(swept.token_ids.tolist())
    sample = range(0, len(vocabulary), 97)
    for token_id in sample:
        ordinary = not vocabulary.is_special(token_id)
        read = ordinary and table.read(1, vocabulary.token_bytes(token_id))[0] != 0
        assert (token_id in alive) == read
    states = dict(zip(swept.token_ids.tolist(), swept.end_states.tolist(), strict=True))
    chars = dict(zip(swept.token_ids.tolist(), swept.char_counts.tolist(), strict=True))
    for token_id in alive.intersection(sample):
        assert (states[token_id], chars[token_id]) == table.read(1, vocabulary.token_bytes(token_id))
    for state in (2, 3, 8, 13):
        only, lost = difference(trie, table, state, 1)
        assert (alive | set(only.tolist())) - set(lost.tolist()) == set(sweep(trie, table, state).token_ids.tolist())


# ---- rows ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.data())
def test_rows_go_there_and_back(size: int, data: st.DataObject) -> None:
    ids = data.draw(st.sets(st.integers(0, size - 1)))
    row = pack(np.array(list(ids), dtype=np.int32), size)
    assert (row.dtype, row.shape) == (np.int32, (words_for(size),))
    assert unpack(row, size).tolist() == sorted(ids)
    flags = np.zeros(size, dtype=np.bool_)
    flags[list(ids)] = True
    assert np.array_equal(pack(flags, size), row)
    for token_id in range(size):
        assert bool(int(row[token_id // 32]) >> token_id % 32 & 1) == (token_id in ids)


def test_flags_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="40 flags"):
        pack(np.zeros(40, dtype=np.bool_), 41)
