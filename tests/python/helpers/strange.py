"""Modules and objects that get in the way of a check, for another process to import."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from types import ModuleType
from typing import Any

match os.environ.get("ARROWDL_STRANGE"):
    case "exit":
        sys.exit(0)
    case "leave":
        os._exit(0)
    case "hang":
        threading.Event().wait()
    case "hang at exit":
        atexit.register(threading.Event().wait)


class _Raises:
    @property
    def __dlpack__(self) -> Any:
        raise OSError("no tensor today")


raises = _Raises()


def exits(x: Any) -> Any:
    """A consumer that ends the process."""
    sys.exit(0)


def never(x: Any) -> Any:
    """A consumer that never returns."""
    threading.Event().wait()


def fails() -> Any:
    """A factory that makes nothing."""
    raise OSError("no array today")


def numbers() -> Any:
    """A factory of arrays of numpy."""
    import numpy as np

    return np.arange(3)


SIGHTS: list[bool] = []  # whether a collection would look at what a library has


def imports_a_library() -> Any:
    """A factory that imports a large library when it is first called."""
    if "large_library" not in sys.modules:
        library = ModuleType("large_library")
        library.__dict__["objects"] = [[]]
        sys.modules["large_library"] = library
    (own,) = sys.modules["large_library"].__dict__["objects"]
    SIGHTS.append(any(found is own for found in gc.get_objects()))
    if len(SIGHTS) > 30 and SIGHTS[-1]:
        raise OSError("each collection looks at the objects of a library")
    return numbers()
