"""Messages and descriptors over the socket of a worker: whole, in order, or an error."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from arrowdl.loader._workers.wire import Channel

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    channels = make_pair()
    yield channels
    for channel in channels:
        channel.close()


def make_pair() -> Pair:
    one, other = multiprocessing.Pipe()
    return Channel(one), Channel(other)


def make_file(text: bytes) -> int:
    """A descriptor whose file has the text."""
    read, write = os.pipe()
    os.write(write, text)
    os.close(write)
    return read


def read_file(file: int | None) -> bytes | None:
    if file is None:
        return None
    with open(file, "rb") as opened:
        return opened.read()


def count_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def _no_file_is_left() -> Iterator[None]:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("reads /proc")
    before = count_files()
    yield
    assert count_files() == before


@pytest.mark.usefixtures("_no_file_is_left")
def test_each_message_has_its_own_descriptor() -> None:
    """Although several are on their way, with and without one."""
    sender, receiver = make_pair()
    texts = [b"a", None, b"b", b"c", None, None, b"d"]
    for i, text in enumerate(texts):
        file = None if text is None else make_file(text)
        sender.send("message", i, b"x" * i, descriptor=file)
        if file is not None:
            os.close(file)
    for i, text in enumerate(texts):
        assert receiver.is_ready()
        message, file = receiver.receive()
        assert message == ("message", i, b"x" * i)
        if file is not None:
            assert not os.get_inheritable(file)
        assert read_file(file) == text
    assert not receiver.is_ready()
    sender.close()
    receiver.close()


def test_a_message_larger_than_the_socket_holds(pair: Pair) -> None:
    sender, receiver = pair
    large = os.urandom(5_000_000)
    file = make_file(b"file")
    thread = threading.Thread(target=sender.send, args=(large, 1), kwargs={"descriptor": file})
    thread.start()
    message, arrived = receiver.receive()
    thread.join()
    os.close(file)
    assert message == (large, 1)
    assert read_file(arrived) == b"file"
    sender.send_bytes(b"")
    assert receiver.receive_bytes() == (b"", None)


def test_a_default_timeout_of_sockets_is_not_ours() -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.001)
    try:
        one, other = multiprocessing.Pipe()
        sender, receiver = Channel(one), Channel(other)
    finally:
        socket.setdefaulttimeout(before)
    received: list[object] = []
    thread = threading.Thread(target=lambda: received.append(receiver.receive()))
    thread.start()
    thread.join(0.05)  # longer than the timeout
    sender.send("late")
    thread.join()
    assert received == [(("late",), None)]
    sender.close()
    receiver.close()


@pytest.mark.usefixtures("_no_file_is_left")
@pytest.mark.parametrize("sent", [b"", b"\x08\x00", b"\x08" + bytes(7), b"\x08" + bytes(10)])
def test_an_end_at_any_place_is_an_end(sent: bytes) -> None:
    """A process was killed while it sent, also with a descriptor on its way."""
    ours, theirs = socket.socketpair()
    one, other = multiprocessing.Pipe()
    with ours, theirs, one:
        os.dup2(theirs.fileno(), other.fileno())
        receiver = Channel(other)
        theirs.close()
        if sent:
            socket.send_fds(ours, [sent], [0])
        ours.close()
        assert receiver.is_ready()
        with pytest.raises(EOFError):
            receiver.receive()
        receiver.close()


def test_a_closed_receiver_is_an_error_and_no_signal(pair: Pair) -> None:
    sender, receiver = pair
    receiver.close()
    with pytest.raises(BrokenPipeError):
        sender.send("message")
    assert receiver.is_ready()  # receive() says why


@pytest.mark.usefixtures("_no_file_is_left")
def test_a_message_arrives_without_the_descriptor_that_there_is_no_room_for(
    pair: Pair,
) -> None:
    sender, receiver = pair
    sender.send("message", 1, descriptor=0)
    sender.send("message", 2, descriptor=0)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    last = os.dup(0)
    os.close(last)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (last, limits[1]))
        arrived = receiver.receive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert arrived == (("message", 1), None)
    message, file = receiver.receive()
    assert message == ("message", 2)
    assert file is not None
    os.close(file)


def test_descriptors_are_sent_up_to_the_hard_limit(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, receiver = pair
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = []
    full = soft - 1  # descriptors that the user has on their way
    send = socket.socket.sendmsg

    def refuse(channel: socket.socket, *arguments: Any) -> int:
        """As Linux does."""
        limits.append(resource.getrlimit(resource.RLIMIT_NOFILE))
        if limits[-1][0] <= full:
            raise OSError(errno.ETOOMANYREFS, os.strerror(errno.ETOOMANYREFS))
        return send(channel, *arguments)

    monkeypatch.setattr(socket.socket, "sendmsg", refuse)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        sender.send("message", descriptor=0)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft - 1, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert limits == [(soft - 1, hard), (hard, hard)]
    message, file = receiver.receive()
    assert message == ("message",)
    assert file is not None
    os.close(file)
    full = hard
    with pytest.raises(OSError, match="oo many references") as error:
        sender.send("message", descriptor=0)
    assert error.value.errno == errno.ETOOMANYREFS
    assert not receiver.is_ready()
