"""Processes that receive arrays on the fake GPU, and what they have open."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
from arrowdl import debug


def values(array: arrowdl.DeviceArray) -> pa.Array:
    """The rows, on the CPU."""
    return pa.array(array.to("cpu"))


def held() -> list[str]:
    """The mappings and descriptors of the fake's shared memory that this process has."""
    mappings = re.findall(r"fake-\w+-memory-\d", Path("/proc/self/maps").read_text())
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the folder
            continue
        descriptors += re.findall(r"fake-\w+-memory-\d", target)
    return mappings + descriptors


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def eventually(find: Callable[[], Any], expected: Any) -> bool:
    """Whether `find` returns `expected` within 20 s: the sender's thread and the release thread
    close what they have when its receiver goes on already."""
    deadline = time.monotonic() + 20
    while (found := find()) != expected and time.monotonic() < deadline:
        time.sleep(0.001)
    if found != expected:
        print(f"expected {expected}, found {found}", file=sys.stderr)
    return bool(found == expected)


def is_sharer_waiting() -> bool:
    """Whether the thread that sends descriptors waits for a connection.

    accept() takes the number of a descriptor before it waits, and fails if there is none.
    """
    (thread,) = (one for one in threading.enumerate() if "_serve" in one.name)
    for _ in range(2):  # with the interpreter lock in between, should it wait for that
        frame = sys._current_frames()[thread.ident or 0]
        stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
        if frame.f_code.co_name != "accept" or stat.rpartition(")")[2].split()[0] != "S":
            return False
        time.sleep(0.001)
    return True


def _answer(request: str, kept: list[arrowdl.DeviceArray], array: Any) -> Any:
    if request == "read":
        device = array.device
        return values(array), (arrowdl.DeviceType(device.type).name, device.id), array.is_ready()
    if request == "keep":
        kept.append(array)
        return None
    if request == "read kept":
        return values(kept[-1])
    if request == "drop":
        kept.clear()
        return eventually(lambda: (held(), debug.live_objects()), ([], 0))
    if request == "count":
        return count_descriptors()
    if request == "send on":
        return array[1:]
    assert request == "die"
    os.kill(os.getpid(), signal.SIGKILL)


def serve(connection: Any) -> None:
    """Answer requests, each with an array or None, until None comes."""
    kept: list[arrowdl.DeviceArray] = []
    while True:
        try:
            message = connection.recv()
        except (RuntimeError, BufferError) as error:
            connection.send(error)
            continue
        if message is None:
            return
        request, array = message
        connection.send(_answer(request, kept, array))
        del message, array


def read_argument(array: arrowdl.DeviceArray, connection: Any) -> None:
    connection.send(values(array))


def send_and_die(connection: Any, rows: int) -> None:
    """Send two arrays, wait until the first is received, and end without a chance to clean up."""
    arrays = [arrowdl.from_arrow(pa.array(range(rows))).to("cuda:0") for _ in range(2)]
    connection.send(arrays[0])
    connection.recv()
    connection.send(arrays[1])
    os.kill(os.getpid(), signal.SIGKILL)


def send_by_queue(queue: Any, event: Any) -> None:
    """Send an array that has no other reference here, and live until it is received."""
    queue.put({"rows": arrowdl.from_arrow(pa.array([1, None, 3])).to("cuda:0")})
    event.wait()


class Receiver:
    """A process of `serve`."""

    def __init__(self, context: Any, target: Callable[..., None] = serve) -> None:
        self.connection, other = context.Pipe()
        self.process = context.Process(target=target, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def ask(self, request: str, array: Any = None) -> Any:
        self.connection.send((request, array))
        del array
        answer = self.connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> None:
        self.connection.send(None)
        self.process.join()
        assert self.process.exitcode == 0
