"""Modules and objects that get in the way of a check, for another process to import."""

from __future__ import annotations

import atexit
import os
import sys
import threading
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
