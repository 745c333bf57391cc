"""Memory that waits for streams is bounded: whoever drops more waits, and holds up nobody else."""

from __future__ import annotations

from collections.abc import Callable

import arrowdl
import pytest


def test_whoever_drops_more_waits_without_the_interpreter_lock(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda("""
import threading
import pyarrow as pa

stream = cuda.make_stream()
columns = [arrowdl.from_arrow(pa.array(range(100))).to("cuda:0") for _ in range(3)]
for column in columns:
    column.synchronize()
    column.record_stream(stream)
del column
settle()
arrowdl.config.release_limit = 1600
with cuda.gate(stream):
    columns.pop()
    columns.pop()
    assert debug.pending_releases() == 2, "1,600 bytes fit"
    dropper = threading.Thread(target=columns.pop)
    dropper.start()
    time.sleep(0.05)
    assert dropper.is_alive() and not columns
    assert debug.pending_releases() == 2
dropper.join()
settle()
assert debug.live_objects() == 0
""")


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match=r"config\.release_limit=-1"):
        arrowdl.config.release_limit = -1
