"""Paths that leave the folder that they should be in."""

from __future__ import annotations

import re


def has_step_up(path: str) -> bool:
    """Whether a path of names goes up from a folder on its way.

    >>> has_step_up("a/../../b"), has_step_up("a..b/c")
    (True, False)
    """
    return ".." in re.split(r"[/\\]", path)
