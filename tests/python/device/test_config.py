"""`arrowdl.config`: settings that can be read, set and mistyped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import arrowdl
import numpy as np
import pytest

NAMES = ("allocator", "blocking_release", "num_threads", "release_limit", "staging_limit")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = {name: getattr(arrowdl.config, name) for name in NAMES}
    yield
    for name, value in before.items():
        setattr(arrowdl.config, name, value)


def test_defaults() -> None:
    assert arrowdl.config.staging_limit == 256 << 20
    assert arrowdl.config.release_limit == 1 << 30
    assert arrowdl.config.blocking_release is False
    assert arrowdl.config.num_threads >= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("staging_limit", 1 << 16),
        ("release_limit", 0),
        ("num_threads", 3),
        ("blocking_release", True),
        ("num_threads", np.int64(2)),
    ],
)
def test_what_is_set_is_read(name: str, value: Any) -> None:
    setattr(arrowdl.config, name, value)
    assert getattr(arrowdl.config, name) == value
    assert f"{name}={value}" in repr(arrowdl.config)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("staging_limit", -1, ValueError),
        ("release_limit", -1, ValueError),
        ("release_limit", 2**63, ValueError),
        ("num_threads", 0, ValueError),
        ("num_threads", 1.5, TypeError),
        ("num_threads", True, TypeError),
        ("staging_limit", "1 GiB", TypeError),
        ("blocking_release", 1, TypeError),
    ],
)
def test_a_wrong_value_changes_nothing(name: str, value: Any, kind: type[Exception]) -> None:
    before = getattr(arrowdl.config, name)
    with pytest.raises(kind, match=f"config.{name}"):
        setattr(arrowdl.config, name, value)
    assert getattr(arrowdl.config, name) == before


def test_an_unknown_name_says_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r"no 'threads': it has .*num_threads"):
        arrowdl.config.threads = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no 'threads': it has .*num_threads"):
        arrowdl.config.threads  # type: ignore[attr-defined]  # noqa: B018
    assert set(NAMES) <= set(dir(arrowdl.config))
