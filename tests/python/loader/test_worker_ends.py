"""What a worker of the Loader dies of is said: signals, exits, exceptions of every kind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from typing import Any

import arrowdl
import pyarrow as pa
import pytest

TABLE = pa.table({"id": range(4)})


class SendSignal:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, batch: Any) -> Any:
        if self.number != signal.SIGKILL:
            signal.signal(self.number, signal.SIG_DFL)
        os.kill(os.getpid(), self.number)
        signal.pause()


def exit_by_sys(batch: Any) -> Any:
    sys.exit("no more")


def exit_at_once(batch: Any) -> Any:
    os._exit(0)


class NoWayBackError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one}\nand {two}")


class OtherError(Exception):
    def __reduce__(self) -> Any:
        return str, ("something else",)


class NoTextError(Exception):
    def __init__(self, *, text: str) -> None: ...

    def __str__(self) -> str:
        raise ValueError("no text")


class NoException(BaseException):
    pass


class Raise:
    """Makes the exception where it is raised: that may be one that pickle cannot carry."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __call__(self, batch: Any) -> Any:
        raise self.make()


def make_no_way_back() -> Exception:
    return NoWayBackError(1, 2)


def make_no_text() -> Exception:
    return NoTextError(text="")


def make_group() -> Exception:
    return ExceptionGroup("several", [NoWayBackError(1, 2)])


def load(transform: Any) -> arrowdl.Loader:
    return arrowdl.Loader(TABLE, 2, num_workers=1, framework="numpy", transform=transform)


@pytest.mark.skipif(not hasattr(signal, "pause"), reason="POSIX signals")
@pytest.mark.parametrize(
    ("number", "message"),
    [
        (signal.SIGKILL, "SIGKILL: often the system, for lack of memory"),
        (signal.SIGSEGV, "SIGSEGV: native code .* PYTHONFAULTHANDLER=1"),
        (signal.SIGTERM, "SIGTERM: somebody ended it"),
        (signal.SIGUSR1, "SIGUSR1: sent by another process"),
        (35, "signal 35: sent by another process"),
    ],
)
def test_a_signal_is_named(number: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"worker 0 of the Loader was killed by {message}"):
        list(load(SendSignal(number)))


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (exit_by_sys, r"ended with exit code no more: the transform, .* called sys.exit\(\)"),
        (exit_at_once, r"ended with exit code 0; .* called os._exit\(\)"),
        (Raise(make_no_way_back), "raised NoWayBackError: 1\nand 2"),
        (Raise(make_no_text), "raised NoTextError: its text raises ValueError"),
        (Raise(make_group), "raised ExceptionGroup: several"),
        (Raise(OtherError), "raised OtherError: "),
        (Raise(NoException), "raised NoException: "),
        (Raise(KeyboardInterrupt), "raised KeyboardInterrupt: "),
    ],
    ids=lambda value: getattr(getattr(value, "make", None), "__name__", None),
)
def test_an_end_is_said(transform: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"^worker 0 of the Loader {message}") as error:
        list(load(transform))
    if "raised" in message or "sys.exit" in message:
        assert "Traceback (most recent call last)" in error.value.__notes__[0]


def kill_at_four(batch: Any) -> Any:
    if batch["id"][0] == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
def test_what_a_killed_worker_has_sent_arrives() -> None:
    """Batches, and the descriptors of their memory, of which no other process has a copy."""
    table = pa.table({"id": range(8)})
    batches = iter(
        arrowdl.Loader(
            table, 1, num_workers=1, prefetch=3, framework="numpy", transform=kill_at_four
        )
    )
    kept = [next(batches)]
    (worker,) = multiprocessing.active_children()
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    kept += [next(batches) for _ in range(3)]
    with pytest.raises(RuntimeError, match="killed by SIGKILL"):
        next(batches)
    assert [batch["id"].tolist() for batch in kept] == [[0], [1], [2], [3]]


def make_eof() -> Exception:
    return EOFError("of the transform")


def make_broken_pipe() -> Exception:
    return BrokenPipeError("of the transform")


@pytest.mark.parametrize("make", [make_eof, make_broken_pipe])
def test_an_error_of_a_closed_connection_may_be_the_transforms(make: Any) -> None:
    with pytest.raises(type(make()), match="of the transform"):
        list(load(Raise(make)))
