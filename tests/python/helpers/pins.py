"""The versions that requirements/constraints.txt pins, against those that tables in docs/ name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

CONSTRAINTS = Path(__file__).resolve().parents[3] / "requirements/constraints.txt"


def skip_another_version(kept: str, found: str) -> None:
    """Skip a comparison with a row that is about another version of the library than this one.

    The row says nothing about this version. That it is about the one that is tested, and is
    renewed with it, `find_outdated` checks.
    """
    if kept != found:
        pytest.skip(f"the table is of {kept}, here is {found}")


def find_outdated(libraries: Iterable[str]) -> list[str]:
    """Return those of `libraries`, such as "numpy 2.4.6", that are pinned at another version."""
    lines = CONSTRAINTS.read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    outdated = []
    for library in libraries:
        name, version = library.split()
        public = version.partition("+")[0]  # without the label of a build, such as +cpu
        if pins.get(name, public) != public:
            outdated.append(f"{library}: {pins[name]} is pinned")
    return sorted(outdated)
