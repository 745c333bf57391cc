"""Messages and file descriptors over the socket between a worker process and the training."""

from __future__ import annotations

import array
import errno
import marshal
import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_HEADER = struct.Struct("q")  # bytes of the message
_DESCRIPTOR = array.array("i", [0]).itemsize
# A closed connection is an error, not a signal, whatever the user has made of SIGPIPE.
_SEND_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)
# No program that another thread starts gets the descriptor.
_RECEIVE_FLAGS = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Channel:
    """One end of the socket of a worker.

    A descriptor is sent with the first byte of its message: a receiver has both or none of them.
    """

    def __init__(
        self,
        # an end of a pipe in both directions, which is a socket. It is closed here
        connection: Connection,
    ) -> None:
        with connection:
            self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        self._socket.setblocking(True)  # whatever socket.setdefaulttimeout() has made of it
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def send(
        self,
        *message: Any,
        descriptor: int | None = None,  # a file that the receiver gets a descriptor of its own for
    ) -> None:
        """Send numbers, strings, bytes, None, and lists and dicts of them.

        marshal takes a quarter of pickle's time, and the interpreter at the other end is the same
        one.

        Raises BrokenPipeError or ConnectionResetError if the other end is closed. Raises OSError if
        the descriptor could not be sent, and nothing was: ETOOMANYREFS if this user has too many on
        their way.
        """
        self.send_bytes(marshal.dumps(message), descriptor)

    def send_bytes(self, data: bytes, descriptor: int | None = None) -> None:
        """Send bytes, and a descriptor; see `send`."""
        header = _HEADER.pack(len(data))
        files = [] if descriptor is None else [array.array("i", [descriptor])]
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, file) for file in files]
        try:
            sent = self._socket.sendmsg([header, data], control, _SEND_FLAGS)
        except OSError as error:
            if error.errno != errno.ETOOMANYREFS:
                raise
            with _most_files():
                sent = self._socket.sendmsg([header, data], control, _SEND_FLAGS)
        if sent < len(header):
            self._socket.sendall(header[sent:], _SEND_FLAGS)
        if sent < len(header) + len(data):
            rest = memoryview(data)[max(0, sent - len(header)) :]
            self._socket.sendall(rest, _SEND_FLAGS)

    def receive(self) -> tuple[tuple[Any, ...], int | None]:
        """Receive the message that `send` sent at the other end, and a descriptor or None.

        The receiver closes the descriptor. It is None if none was sent, or if this process may have
        no more. Raises EOFError or ConnectionResetError if the other end is closed.
        """
        data, descriptor = self.receive_bytes()
        return marshal.loads(data), descriptor

    def receive_bytes(self) -> tuple[bytearray, int | None]:
        """Receive what `send_bytes` sent; see `receive`."""
        header, control, _, _ = self._socket.recvmsg(
            _HEADER.size, socket.CMSG_SPACE(_DESCRIPTOR), _RECEIVE_FLAGS
        )
        descriptor = _find_descriptor(control)
        try:
            if len(header) < _HEADER.size:
                if not header:
                    raise EOFError
                header += self._receive_exactly(_HEADER.size - len(header))
            return self._receive_exactly(*_HEADER.unpack(header)), descriptor
        except BaseException:
            if descriptor is not None:
                os.close(descriptor)
            raise

    def _receive_exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        received = 0
        with memoryview(data) as view:
            while received < size:
                count = self._socket.recv_into(view[received:])
                if not count:
                    raise EOFError
                received += count
        return data

    def is_ready(self) -> bool:
        """Whether `receive` does not wait: there is a message, or the other end is closed."""
        return self._socket.fileno() < 0 or bool(self._poll.poll(0))

    def close(self) -> None:
        """Close this process's end."""
        self._socket.close()


def _find_descriptor(control: list[tuple[int, int, bytes]]) -> int | None:
    files = array.array("i")
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            files.frombytes(data[: len(data) - len(data) % _DESCRIPTOR])
    return files[0] if files else None


@contextmanager
def _most_files() -> Iterator[None]:
    """Raise the soft limit of open files for a moment."""
    import resource

    # Linux lets a user have no more descriptors on their way, of all processes together, than this
    # process may have files open. A worker whose batch the training waits for cannot wait until
    # others are received.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
