"""Memory that waits for streams is bounded: copies alone wait while there is more."""

from __future__ import annotations

from collections.abc import Callable

import arrowdl
import pytest


def test_a_copy_waits_without_the_interpreter_lock(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda("""
import threading
import pyarrow as pa

stream = cuda.make_stream()
source = arrowdl.from_arrow(pa.array(range(100)))
columns = [source.to("cuda:0") for _ in range(3)]
for column in columns:
    column.synchronize()
    column.record_stream(stream)
del column
settle()
arrowdl.config.release_limit = 1600
copies = []
with cuda.gate(stream):
    columns.pop()
    columns.pop()
    assert debug.pending_releases() == 2
    copies.append(source.to("cuda:0"))  # 1,600 bytes fit
    columns.pop()
    assert not columns, "who drops memory does not wait"
    copier = threading.Thread(target=lambda: copies.append(source.to("cuda:0")))
    copier.start()
    time.sleep(0.05)
    assert copier.is_alive() and len(copies) == 1
copier.join()
copies.clear()
settle()
del source
assert debug.live_objects() == 0
""")


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match=r"config\.release_limit=-1"):
        arrowdl.config.release_limit = -1
