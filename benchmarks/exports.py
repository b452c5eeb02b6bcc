"""Exported grammars of tools that are in use, run by other engines and compared with our masks.

    python -m benchmarks.exports --data FOLDER [--sample 20] [--sets NAME ...] [--walks 2] [--most 40]

For a sample of the requests of each set, in both formats on their real vocabularies: the constraint of `required`, keys
in the declared order, is exported, the other engine compiles the text, and along random walks the masks of both are
compared at every step. *Equal* counts the steps whose masks hold the same tokens. Requests that cannot be exported, or
that the engine does not compile, are counted and the reasons listed. The status is 1 if a mask differs.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import twingram as tg
from tests.engines import ENGINES, differences, walk_tokens

from .inputs import SUFFIX, add_folder, folder, need_vocabularies
from .tools import FORMATS, SETS, rows_of

__all__ = ["main"]


def _stops(made: tg.Constraint) -> tuple[int, ...]:
    return made.binding.ids(made.binding.alphabet.end)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exports", description=(__doc__ or "").splitlines()[0])
    add_folder(parser)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS, metavar="NAME", help=f"of {', '.join(SETS)}")
    parser.add_argument("--sample", type=int, default=20, help="requests of each set (20)")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=list(ENGINES), metavar="NAME")
    parser.add_argument("--formats", nargs="*", default=list(FORMATS), choices=list(FORMATS), metavar="NAME")
    parser.add_argument("--walks", type=int, default=2, help="of each request (2)")
    parser.add_argument("--most", type=int, default=40, help="tokens of a walk (40)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    options.data = folder(parser, options.data, options.sets)
    need_vocabularies(parser, options.formats)
    failed = False
    for fmt in options.formats:
        for name in options.engines:
            failed |= _compare(fmt, name, options)
    return int(failed)


def _compare(fmt: str, name: str, options: argparse.Namespace) -> bool:
    """One format in one engine; whether a mask differed."""
    vocabulary = FORMATS[fmt]()
    plain = tg.load_format(fmt).constraint([], "none", vocabulary=vocabulary)
    engine = ENGINES[name](vocabulary, _stops(plain))
    failed = False
    for each in options.sets:
        rows = list(rows_of(options.data / f"{each}{SUFFIX}"))
        rng = Random(f"{options.seed} {each}")
        counts: Counter[str] = Counter()
        for row in rng.sample(rows, min(options.sample, len(rows))):
            counts["requests"] += 1
            for line in _request(fmt, engine, row, rng, options, counts):
                print(f"  {fmt} {name} {each} {row.id}: {line}", flush=True)
        print(f"{fmt} {name} {each}: " + ", ".join(f"{count} {what}" for what, count in counts.items()), flush=True)
        failed |= bool(counts["steps"] - counts["equal"])
    return failed


def _request(
    fmt: str, engine: Any, row: Any, rng: Random, options: argparse.Namespace, counts: Counter[str]
) -> list[str]:
    lines: list[str] = []
    try:
        made = tg.load_format(fmt).constraint(
            row.tools, "required", vocabulary=FORMATS[fmt](), key_order="declared"
        )
    except tg.TwingramError as error:
        counts["refused by us"] += 1
        return [str(error).splitlines()[0][:150]]
    begin = time.perf_counter()
    try:
        grammar = made.export(engine.notation)
    except tg.ExportError as error:
        counts["not exported"] += 1
        return [str(error)[:150]]
    counts["ms to export"] += round(1000 * (time.perf_counter() - begin))
    counts["kB of text"] += len(grammar) // 1000
    for _ in range(options.walks):
        tokens = walk_tokens(made.session(), rng, options.most)
        try:
            found = differences(engine, made, grammar, tokens)
        except (RuntimeError, ValueError) as error:  # theirs: it does not compile, or grows past one of its limits
            counts["not run"] += 1
            return [*lines, f"{engine.notation} gave up: {str(error).splitlines()[0][:150]}"]
        counts["steps"] += len(tokens) + 1
        counts["equal"] += len(tokens) + 1 - len(found)
        for at, more, less in found[:2]:
            some = [[made.vocabulary.token_bytes(token) for token in ids[:4]] for ids in (more, less)]
            before = made.vocabulary.decode(tokens[:at])[-40:]
            lines.append(f"after {before!r}: {len(more)} more {some[0]}, {len(less)} less {some[1]}")
    return lines



if __name__ == "__main__":
    raise SystemExit(main())
