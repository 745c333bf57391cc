"""What cannot be sent to another process: said with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

from arrowdl.loader._options.options import Options
from arrowdl.loader._sources.base import Source
from arrowdl.loader._workers.errors import is_of_signal_handler


@contextmanager
def advising_sending() -> Iterator[None]:
    """Raise TypeError that says what to do where pickle refuses in the block."""
    try:
        yield
    except Exception as error:
        if is_of_signal_handler(error):
            raise
        raise TypeError(
            "the source and the transform are sent to other processes, and pickle refuses: "
            f"{error}. Give paths, a table or a function that opens the source, and functions that "
            "are defined at the top level of a module; or num_workers=0"
        ) from error


def check_sending(source: Source, options: Options) -> None:
    """Raise TypeError if pickle refuses what the user gave, and a process is being spawned."""
    if get_spawning_popen() is None:
        return
    parts: list[Any] = [step.function for step in options.functions.steps]
    parts += [options.functions.transform_arrow, options.report]
    parts += source.list_user_objects()
    for part in parts:
        with advising_sending():
            ForkingPickler.dumps(part)
