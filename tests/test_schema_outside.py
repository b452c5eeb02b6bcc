"""Values from a generator that knows nothing of this package: what it draws from a schema, if valid, is written.

`hypothesis-jsonschema` reads drafts up to 7, so it passes over newer keywords; each value is judged by `jsonschema`
under the newest draft before it counts.
"""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from jsonschema import Draft202012Validator

from tests.test_schema_random import Schemas, accepts, compiled
from twingram.automaton.machine import Machine

outside = pytest.importorskip("hypothesis_jsonschema", reason="pip install hypothesis-jsonschema")

DRAWS = 6


def drawn(schema: Any) -> list[Any]:
    """Values of a schema, as many as the generator finds before its own health checks stop it."""
    found: list[Any] = []

    def keep(value: Any) -> None:
        found.append(value)

    once = settings(max_examples=DRAWS, database=None, deadline=None, phases=[Phase.generate], derandomize=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once(given(outside.from_schema(schema))(keep))()
    except Exception:  # noqa: BLE001  the generator's own limits, whatever it raises: they say nothing of the schema
        return found
    return found


def writable(value: Any) -> bool:
    """Whether the value can be written: non-integers have at most two digits of exponent, texts no marker in them; and
    judged: the validator divides integers as doubles, which beyond 2**53 finds multiples of 1.5 that are none."""
    if isinstance(value, int) and abs(value) > 1 << 53:
        return False
    if isinstance(value, float):
        return value == 0 or 1e-99 < abs(value) < 1e99
    if isinstance(value, dict):
        return all(map(writable, value)) and all(map(writable, value.values()))
    if isinstance(value, list):
        return all(map(writable, value))
    return not isinstance(value, str) or ("<" not in value and value.isprintable())


def whole(value: Any) -> Any:
    """Integers without a fraction."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value


def judge(seed: int, counts: Counter[str]) -> None:
    schema = Schemas(random.Random(seed)).document()
    made = compiled(schema)
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    statuses = set() if made is None else {finding.status for finding in made.findings}
    machine = None if made is None else Machine(made.expr)
    for value in drawn(schema):
        value = whole(value)
        if not writable(value) or not validator.is_valid(value):
            continue
        counts["valid"] += 1
        assert machine is not None, (seed, schema, value)
        if "narrowed" not in statuses:
            assert accepts(machine, json.dumps(value, ensure_ascii=False)), (seed, schema, value)


@pytest.mark.parametrize(
    "seeds", [pytest.param(range(12), id="few"), pytest.param(range(1000), id="many", marks=pytest.mark.heavy)]
)
def test_values_from_outside(seeds: range) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        judge(seed, counts)
    assert counts["valid"] > len(seeds) / 2
