"""The pictures of the documents show what the engine does now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_pictures_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "pictures.py"), "--check"]
    assert subprocess.run(command, timeout=60).returncode == 0, "run python scripts/pictures.py"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_text_stays_inside(path: Path) -> None:
    """About: a letter is 8.5 units wide in this size."""
    root = ET.parse(path).getroot()
    width = float(root.attrib["width"])
    for node in root.iter("{http://www.w3.org/2000/svg}text"):
        half = node.attrib.get("text-anchor") == "middle"
        length = len(node.text or "") * 8.5
        assert float(node.attrib["x"]) + (length / 2 if half else length) <= width, node.text
