"""Why a worker process failed or ended, as an error for the training."""

from __future__ import annotations

import pickle
import signal
from contextlib import suppress
from traceback import walk_tb

# The usual reason of each signal.
_SIGNALS = {
    "SIGKILL": "often the system, for lack of memory",
    "SIGBUS": "a mapped page could not be read: a file was truncated, or its disk is full",
    "SIGTERM": "somebody ended it, such as a scheduler or an operator",
    "SIGXCPU": "its limit of CPU time (ulimit -t)",
    "SIGXFSZ": "its limit of file sizes (ulimit -f)",
    "SIGALRM": "an alarm that the transform or the source set",
} | dict.fromkeys(
    ("SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"),
    "native code of the transform, of the source or of a library crashed. With the environment "
    "variable PYTHONFAULTHANDLER=1 a worker prints where; num_workers=0 runs the same code in "
    "this process",
)


def describe_exit(
    index: int,  # of the worker
    code: int | None,  # its exit code; negative for a signal
    has_answered: bool,  # whether it had sent anything
) -> str:
    """Say why a worker process ended without having been asked to."""
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:  # a real-time signal
            name = f"signal {-code}"
        meaning = _SIGNALS.get(name, "sent by another process, or by the worker itself")
        return f"worker {index} of the Loader was killed by {name}: {meaning}"
    text = f"worker {index} of the Loader ended with exit code {code}; "
    if has_answered or code != 1:
        return text + "the transform, the source or a library called os._exit() or exit()"
    return text + (
        "its error stream says why. Worker processes import the main module: a script has to start "
        'its work under if __name__ == "__main__"'
    )


def is_of_signal_handler(error: Exception) -> bool:
    """Whether a handler of a signal raised an exception: it runs wherever the main thread is."""
    handlers = map(signal.getsignal, signal.valid_signals())
    functions = [getattr(handler, "func", handler) for handler in handlers]  # of a partial
    codes = {
        getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
        for function in functions
        if callable(function)
    }
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return any(frame.f_code in codes for frame in frames)


def load_error(
    index: int,  # of the worker
    # the pickled exception. Without it, or if it cannot be loaded, this is a RuntimeError
    data: bytes | None,
    summary: str,  # what the worker did, and its traceback
    text: str,
) -> Exception:
    """Return the exception of a worker, with its traceback as a note."""
    error = None
    if data is not None:
        with suppress(Exception):
            error = pickle.loads(data)
    if not isinstance(error, Exception):
        error = RuntimeError(f"worker {index} of the Loader {summary}")
    error.add_note(f"In worker {index} of the Loader:\n{text}")
    return error
