"""Structs made by hand stay for a while after their release, in case that they are used again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _structs_are_not_collected() -> None:
    """Each check collects garbage many times: the structs of earlier tests would take seconds."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _structs_are_collected_in_the_end(_quick_collections: None) -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()
