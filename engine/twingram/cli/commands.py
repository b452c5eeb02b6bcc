"""The commands, one function each.

In: parsed arguments. Out: lines on standard output. All work is done by the library.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import twingram as tg
from twingram import explain, sampling
from twingram.errors import RequestError
from twingram.grammar.check import check_ambiguity, check_rules

from . import inputs
from .outputs import STATUSES, decoded, delta_text, finding_words, json_text, message_text, note_letters

__all__ = ["check", "export", "formats", "mask", "parse", "sample", "schema"]


def formats(_: argparse.Namespace) -> None:
    for name in tg.list_formats():
        print(name)


def parse(arguments: argparse.Namespace) -> None:
    if arguments.file == "-" and arguments.tools == "-":
        raise RequestError("FILE and --tools cannot both be standard input")
    parser = inputs.load(arguments.format).parser(
        tools=inputs.tools_of(arguments.tools),
        strict=arguments.strict,
        salvage=arguments.salvage,
        prompt_tail=arguments.prompt_tail,
    )
    for piece in inputs.text_of(arguments.file):
        _show(parser.feed(piece), arguments.stream)
    _show(parser.finish(), arguments.stream)
    if not arguments.stream:
        print(json_text(parser.message.to_openai()) if arguments.openai else message_text(parser.message))


def _show(deltas: Sequence[tg.Delta], stream: bool) -> None:
    if stream and deltas:
        for delta in deltas:
            print(delta_text(delta))
        sys.stdout.flush()


def sample(arguments: argparse.Namespace) -> None:
    constraint = _constraint(arguments)
    sampler = sampling.Sampler(constraint.vocabulary, arguments.seed, inputs.spellings(arguments.format))
    for _ in range(arguments.count):
        walk = sampler.walk(constraint.session())
        text = json_text(decoded(constraint.vocabulary, walk.tokens))
        print(f'{{"text": {text}, "tokens": {len(walk.tokens)}, "message": {message_text(walk.message)}}}', flush=True)


def mask(arguments: argparse.Namespace) -> None:
    if arguments.prefix == "-" and arguments.tools == "-":
        raise RequestError("--prefix and --tools cannot both be standard input")
    session = _constraint(arguments).session()
    explain.read_prefix(session, "".join(inputs.text_of("-")) if arguments.prefix == "-" else arguments.prefix)
    for line in explain.mask_lines(explain.explain(session, arguments.count)):
        print(line)


def export(arguments: argparse.Namespace) -> None:
    print(_constraint(arguments, key_order=arguments.key_order).export(arguments.to), end="")


def _constraint(arguments: argparse.Namespace, **options: Any) -> tg.Constraint:
    fmt = inputs.load(arguments.format)
    vocabulary = _vocabulary(arguments, fmt)
    note_letters(fmt, vocabulary)
    return fmt.constraint(
        inputs.tools_of(arguments.tools),
        tool_choice=inputs.tool_choice_of(arguments.tool_choice),
        vocabulary=vocabulary,
        parallel_tool_calls=not arguments.single,
        reasoning=arguments.reasoning,
        prompt_tail=arguments.prompt_tail,
        **options,
    )


def _vocabulary(arguments: argparse.Namespace, fmt: tg.Format) -> tg.Vocabulary:
    named = dict(map(inputs.special_token, arguments.special_token))
    if arguments.vocabulary is None:
        if named:
            raise RequestError("--special-token goes with --vocabulary: the built-in one has the markers")
        return tg.Vocabulary.embedded(fmt.grammar.markers)
    return tg.Vocabulary.from_file(arguments.vocabulary, special_tokens=named or None)


def check(arguments: argparse.Namespace) -> None:
    grammar = inputs.grammar(arguments.file)
    check_rules(grammar)
    for line in explain.report_lines(explain.report_on(grammar)):
        print(line)
    if arguments.svg is not None:
        drawn = explain.diagram(grammar)
        try:
            Path(arguments.svg).write_text(drawn, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"cannot write {arguments.svg}: {error.strerror}") from error
    sys.stdout.flush()
    check_ambiguity(grammar)


def schema(arguments: argparse.Namespace) -> None:
    request = inputs.schemas_of(arguments.file)
    for name in [arguments.format] if arguments.format else tg.list_formats():
        found = _findings(name, request, arguments.additional_properties)
        for finding in found:
            if finding.status != "enforced" or not arguments.problems:
                print(name, *finding_words(finding))
        counts = Counter(finding.status for finding in found)
        print(name, ", ".join(f"{counts[status]} {status}" for status in STATUSES))


def _findings(name: str, request: Mapping[str, Any], additional_properties: str) -> list[tg.Finding]:
    """What becomes of the schemas in a format; an answer that cannot be given is one refusal."""
    try:
        fmt = inputs.load(name)
        vocabulary = tg.Vocabulary.embedded(fmt.grammar.markers)
        constraint = fmt.constraint(
            **request, vocabulary=vocabulary, additional_properties=additional_properties
        )
    except tg.SchemaError as error:
        return [tg.Finding(error.tool, error.path, error.keyword, "refused", error.message)]
    return constraint.report()
