"""Arrays sent to other processes: what the driver promises, and the fake one takes for granted."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from helpers import receivers
from helpers.gpu import ROWS, fill_late, torch
from helpers.receivers import Receiver, eventually, values

pytestmark = pytest.mark.cuda

IDS = pa.array([None if i % 7 == 0 else i for i in range(100_000)], pa.int32())
NESTED = pa.array([{"a": i, "b": [str(i)] * (i % 3)} for i in range(1000)])
LARGE = 256 << 20
CONTEXT = multiprocessing.get_context("spawn")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver(CONTEXT)
    yield made
    made.end()


@pytest.mark.parametrize("allocator", ["auto", "pool"])
@pytest.mark.parametrize("rows", [IDS, NESTED, IDS[:0]], ids=["ids", "nested", "none"])
def test_rows_arrive(receiver: Receiver, rows: pa.Array, allocator: Any) -> None:
    array = arrowdl.from_arrow(rows).to("cuda:0", allocator=allocator)
    received, device, is_ready = receiver.ask("read", array)
    assert received.equals(rows)
    assert (device, is_ready) == (("cuda", 0), True)


def test_late_rows_arrive(receiver: Receiver, tensor: Any, side: Any) -> None:
    fill_late(tensor, 7.0, side)
    with torch.cuda.stream(side):
        array = arrowdl.to_arrow_device(tensor)
    assert receiver.ask("read", array)[0].to_pylist() == [7.0] * ROWS


def test_it_goes_to_its_own_process_and_back(receiver: Receiver) -> None:
    array = arrowdl.from_arrow(IDS).to("cuda:0")
    own = pickle.loads(ForkingPickler.dumps(array))
    assert values(own).equals(IDS)
    assert values(receiver.ask("send on", own)).equals(IDS[1:])


def test_what_was_received_outlives_its_sender() -> None:
    mine, its = CONTEXT.Pipe()
    sender = CONTEXT.Process(target=receivers.send_and_die, args=(its, 1 << 20))
    sender.start()
    its.close()
    received = mine.recv()
    mine.send("go on")
    sender.join()
    with pytest.raises(RuntimeError, match=f"process {sender.pid} sent an array"):
        mine.recv()
    other = torch.full((LARGE,), 0xDD, dtype=torch.uint8, device="cuda")  # where it may have been
    torch.cuda.synchronize()
    assert values(received).equals(pa.array(range(1 << 20)))
    del other


def test_the_memory_is_freed_with_a_receiver_that_is_killed() -> None:
    def free() -> int:
        return int(torch.cuda.mem_get_info()[0])

    size = 4 << 30  # more than a process takes for its context
    receiver = Receiver(CONTEXT)
    array = arrowdl.to_arrow_device(torch.zeros(size, dtype=torch.uint8, device="cuda"))
    receiver.ask("read", arrowdl.from_arrow(IDS).to("cuda:0"))  # it has its context
    before = free()
    receiver.ask("keep", array)
    # Others who end or start meanwhile have less than half of that.
    assert before - free() >= size // 2
    with pytest.raises((EOFError, ConnectionResetError)):
        receiver.ask("die")
    receiver.process.join()
    assert eventually(lambda: free() >= before - size // 2, True)


def test_another_gpu_reads_what_was_received(two_gpus: None) -> None:
    array = pickle.loads(ForkingPickler.dumps(arrowdl.from_arrow(IDS).to("cuda:0")))
    assert values(array.to("cuda:1")).equals(IDS)


def test_the_gpu_has_another_number_there(two_gpus: None, monkeypatch: Any) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES", "0,1")[::-1])
    receiver = Receiver(CONTEXT)
    received, device, _ = receiver.ask("read", arrowdl.from_arrow(IDS).to("cuda:0"))
    assert received.equals(IDS)
    assert device == ("cuda", 1)
    receiver.end()


def test_torchs_queues() -> None:
    import torch.multiprocessing

    context = torch.multiprocessing.get_context("spawn")
    queue, event = context.Queue(), context.Event()
    process = context.Process(target=receivers.send_by_queue, args=(queue, event))
    process.start()
    received = queue.get(timeout=60)["rows"]
    event.set()
    process.join()
    assert values(received).to_pylist() == [1, None, 3]
