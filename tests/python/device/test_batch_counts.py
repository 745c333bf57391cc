"""What a batch of `Loader(device=)` asks of the driver: no wait, no memory, no pinned memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("where", ["host", "device", "parts"])
def test_a_batch_waits_for_nothing_and_allocates_nothing(
    on_fake_cuda: Callable[[str], None], framework: str, where: str
) -> None:
    """After the second batch. `python -m helpers.batch_counts` prints all counts."""
    on_fake_cuda(f"""
from helpers.batch_counts import BATCH, CASES, OF_PARTS, ON_DEVICE, ROWS, Counter, open_loader
counter = Counter(cuda, "{framework}")
for shuffle in (False, True):
    for name in CASES:
        loader = open_loader(name, "{where}", "{framework}", shuffle=shuffle, prefetch=0)
        made = counter.run(loader)
        assert len(made) == ROWS // BATCH
        crosses = "{where}" == "parts" and not shuffle
        for counts in made[2:]:
            case = name, shuffle, counts
            assert counts.host_waits <= (OF_PARTS.get(name, 0) if crosses else 0), case
            assert counts.page_locks == 0, case
            assert "{framework}" != "torch" or counts.pool_allocations == 0, "not torch's memory"
            copies, launches = (1, 2) if "{where}" == "host" else ON_DEVICE.get(name, (0, 0))
            assert crosses or counts.copies <= copies + (name == "very wide"), case
            assert crosses or counts.launches <= launches, case
        if any(counts.device_allocations for counts in made[2:]):  # more was in use at once
            again = counter.run(loader)[2:]
            assert not any(counts.device_allocations for counts in again), (name, shuffle, again)
""")


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_the_threads_of_a_loader_wait_for_nothing(
    on_fake_cuda: Callable[[str], None], framework: str
) -> None:
    """With batches ahead, which may need memory until as many are there as there will be."""
    on_fake_cuda(f"""
from helpers.batch_counts import CASES, Counter, open_loader
counter = Counter(cuda, "{framework}")
for where in ("host", "device"):
    for name in CASES:
        for _ in range(8):  # on a busy machine more batches are on their way now and then
            made = counter.run(open_loader(name, where, "{framework}", prefetch=2))
            assert sum(counts.host_waits for counts in made[2:]) == 0, (where, name, made)
            if sum(counts.page_locks for counts in made[6:]) == 0:
                break
        else:
            raise AssertionError((where, name, made))
""")


def test_many_windows_of_lists_are_measured_at_once(on_fake_cuda: Callable[[str], None]) -> None:
    """The host reads the offsets of 512 KiB, and waits again beyond them."""
    on_fake_cuda("""
import pyarrow as pa
from arrowdl import _core
rows = 1 << 18
lists = pa.LargeListArray.from_arrays(pa.array(range(rows + 1), pa.int64()), pa.array([7] * rows))
there = arrowdl.from_arrow(lists).to("cuda:0")
there.synchronize()
waits = cuda.library.arrowdl_fake_host_waits
before = waits()
for start in range(0, rows, 1024):
    window = there[start:start + 1024]
    assert len(window.values) == 1024
assert 4 <= (waits() - before) / 2 <= 6, "a copy to pageable memory waits, and so does the caller"
window = there[5:1029]
del there
settle()
assert len(window.values) == 1024
""")


def test_windows_of_lists_have_the_values_of_the_host(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import random
import numpy as np
import pyarrow as pa
chance = random.Random(48)
def make(kind):
    rows = [None if chance.random() < 0.2 else [i] * chance.randrange(5) for i in range(900)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        rows = [None if row is None else "x" * len(row) for row in rows]
    return pa.array(rows, kind)

arrays = [make(kind) for kind in (pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.string(),
                                  pa.large_string())]
full = [[i] * (i % 4) for i in range(900)]  # null rows with values
arrays.append(pa.ListArray.from_arrays(
    pa.array([0, *np.cumsum([len(row) for row in full])], pa.int32()),
    pa.array([i for row in full for i in row]), mask=pa.array([i % 3 == 0 for i in range(900)])))
for array in arrays:
    here = arrowdl.from_arrow(array)
    there = here.to("cuda:0")
    for _ in range(60):
        first = chance.randrange(900)
        last = chance.randrange(first, 901)
        windows = here[first:last], there[first:last]
        for name in ("values", "offsets"):
            one, two = (pa.array(getattr(window, name).to("cpu")) for window in windows)
            assert one.equals(two), (array.type, first, last, name)
""")


@pytest.mark.parametrize("target", ["cuda_host", "cpu"])
def test_what_goes_back_needs_no_new_memory(
    on_fake_cuda: Callable[[str], None], target: str
) -> None:
    """And waits where the host has to know the sizes of texts and lists, once for each level."""
    on_fake_cuda(f"""
from helpers.batch_counts import BATCH, make_table
names = ("host_waits", "page_locks", "device_allocations")
def count():
    return [getattr(cuda.library, f"arrowdl_fake_{{name}}")() for name in names]

for columns, levels in ((["i", "x", "ok", "pair"], 0), (["text", "ids", "word"], 1)):
    batches = make_table().select(columns).to_batches(BATCH)
    grown = []  # of each pass: a copy that ends late takes memory of its own, once
    for _ in range(8):
        grown.append([0, 0])
        for rows in batches:
            there = arrowdl.from_arrow(rows).to("cuda:0")
            there.synchronize()
            before = count()
            back = there.to("{target}")
            waits, *new = (b - a for a, b in zip(before, count(), strict=True))
            assert waits == levels + ("{target}" == "cpu"), waits
            grown[-1] = [a + b for a, b in zip(grown[-1], new, strict=True)]
            back.synchronize()
            del back, there
            settle()
    assert [0, 0] in grown, grown
""")


def test_large_pinned_arrays_use_their_memory_again(on_fake_cuda: Callable[[str], None]) -> None:
    """Also where copies have filled the pool meanwhile; `config.staging_limit` bounds both."""
    on_fake_cuda("""
import pyarrow as pa
megabyte = 1 << 20
arrowdl.config.staging_limit = 8 * megabyte
page_locks = cuda.library.arrowdl_fake_page_locks
def make(size):
    return arrowdl.from_arrow(pa.array(bytes(range(256)) * (size // 256), pa.uint8()))

large, small = make(24 * megabyte), make(8 * megabyte)
def use(array):
    made = array.to("cuda_host")
    made.synchronize()
    del made
    settle()

use(large)
small.to("cuda:0").synchronize()
settle()
before = page_locks()
for _ in range(3):
    use(large)
    small.to("cuda:0").synchronize()
    settle()
assert page_locks() == before, "memory was pinned again"
assert debug.staging_bytes() <= 5 * 8 * megabyte
use(make(16 * megabyte))
assert debug.staging_bytes() <= 5 * 8 * megabyte, "the one that was idle for longest is freed"
before = page_locks()
use(make(64 * megabyte))
assert page_locks() == before + 2, "what is larger than the bound is freed, and displaces nothing"
arrowdl.config.staging_limit = 0
assert debug.staging_bytes() == 0
""")


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("columns", [20, 200, 1000])
def test_all_columns_of_a_table_are_gathered_by_one_launch(
    on_fake_cuda: Callable[[str], None], columns: int, parts: int
) -> None:
    """Their elements, bits and nulls: a table of them is copied, and the order of the rows."""
    on_fake_cuda(f"""
import numpy as np
import pyarrow as pa
from arrowdl import _core
rows = 900
def make(i):
    numbers = np.arange(rows) * (i + 1)
    return [
        pa.array(numbers, pa.int64()), pa.array(numbers % 128, pa.int8()),
        pa.array(numbers % 3 == 0), pa.array(numbers, pa.float32(), mask=numbers % 5 == 0),
        pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 3), pa.int32()), 3),
    ][i % 5]

here = pa.record_batch([make(i) for i in range({columns})], [f"c{{i}}" for i in range({columns})])
size = rows // {parts}
windows = [here[i * size:(i + 1) * size] for i in range({parts})]
there = [arrowdl.from_arrow(window).to("cuda:0") for window in windows]
for array in there:
    array.synchronize()
settle()
library = cuda.library
names = ("host_waits", "copies", "launches")
def count():
    return [getattr(library, f"arrowdl_fake_{{name}}")() for name in names]

def check(make, copies, expected):
    before = count()
    made = make()
    after = count()
    most = 1 + {columns} // 200  # tables
    waits, copied, launched = (b - a for a, b in zip(before, after))
    assert (waits, copied - copies) == (0, launched - 1) and launched <= most, (before, after)
    assert pa.record_batch(made.to("cpu")).equals(pa.record_batch(expected))
    settle()

shuffled = next(iter(_core.chain([arrowdl.from_arrow(w) for w in windows]).shuffle(rows, 7)))
check(lambda: next(iter(_core.chain(there).shuffle(rows, 7))), 2, shuffled)
if {parts} > 1:
    check(lambda: _core.concatenate(there), 1, here)
""")


def test_the_order_of_a_shuffle_takes_four_bytes_a_row(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda("""
import pyarrow as pa
from arrowdl import _core
rows = 100_000
here = _core.make_struct(["x"], [arrowdl.from_arrow(pa.array(range(rows), pa.int32()))])
there = here.to("cuda:0")
there.synchronize()
before = _core.staged_bytes()
made = next(iter(_core.chain([there]).shuffle(rows, 5)))
assert _core.staged_bytes() - before == 4 * rows
expected = next(iter(_core.chain([here]).shuffle(rows, 5)))
assert pa.array(made.to("cpu")).equals(pa.array(expected)), "the order is that of the host"
""")


def test_the_next_batch_is_copied_while_the_last_one_is_unpacked(
    on_fake_cuda: Callable[[str], None],
) -> None:
    """Copies have streams of their own. The consumer's, which unpacks, waits for their events."""
    on_fake_cuda("""
import numpy as np
import pyarrow as pa
from helpers.fake_cuda import read_as_host

class OnStream:
    def __init__(self, array, stream):
        self._array, self._stream = array, stream

    def __dlpack__(self, **options):
        on_host = self.__dlpack_device__()[0] == 1
        return self._array.__dlpack__(**{**options, "stream": None if on_host else self._stream})

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

bools = np.arange(4096) % 3 == 0
batches = [arrowdl.from_arrow(pa.array(np.roll(bools, i))) for i in range(4)]
stream = arrowdl.from_arrow_stream(batches).to("cuda:0")
consumer = cuda.make_stream()
waits = cuda.library.arrowdl_fake_host_waits
before = waits()
with cuda.gate(consumer):
    made = []
    for array in stream:
        made.append(read_as_host(OnStream(array, consumer)))
        while not array.is_ready():  # the copies end although no batch has been unpacked
            time.sleep(0.001)
        del array
    assert waits() == before
    assert not cuda.is_idle(consumer)
    assert not any(np.array_equal(made[i], np.roll(bools, i)) for i in range(4))
cuda.synchronize(consumer)
assert all(np.array_equal(made[i], np.roll(bools, i)) for i in range(4))
""")


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 256, 257, 4097, 70_000])
def test_scans_of_all_lengths_add_up(on_fake_cuda: Callable[[str], None], count: int) -> None:
    on_fake_cuda(f"""
import pyarrow as pa
from arrowdl import _core
lists = pa.array([[i] * (i % 3) for i in range({count})], pa.list_(pa.int32()))
there = arrowdl.from_arrow(lists).to("cuda:0")
made = _core.concatenate([there[{count} // 2:], there[:{count} // 2]])
assert pa.array(made.to("cpu")).equals(
    pa.concat_arrays([lists[{count} // 2:], lists[:{count} // 2]]))
""")
