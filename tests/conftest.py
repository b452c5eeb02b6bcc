"""Settings that all tests share.

Hypothesis runs the same small number of examples each time; `TWINGRAM_EXAMPLES=2000` asks for more, and the profile
`fuzz` (`python -m pytest --hypothesis-profile=fuzz`) draws new ones on every run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_EXAMPLES = int(os.environ.get("TWINGRAM_EXAMPLES", "50"))
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=_EXAMPLES, deadline=None, derandomize=True, suppress_health_check=_SLOW
)
settings.register_profile("fuzz", max_examples=10 * _EXAMPLES, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("default")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return Path(__file__).resolve().parents[1]
