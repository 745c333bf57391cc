"""Makes each allocation of the extension fail in turn.

`LD_PRELOAD=SHIM python allocations.py KIND NAME...`, with the library of fail_allocations.cpp.

For every use named: the n-th allocation fails, for n = 1, 2, ... up to the first run that none has
failed in. A failure is a MemoryError, or a use that did without; nothing is left alive after it,
and the same use succeeds then. Prints what does not hold. A process that dies says which point it
has died at, on its error stream.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl import _core, debug

OTHERS = ("torch_", "jax_", "cuda_")  # uses that are asked for by name
MOST_POINTS = 3_000
Use = Callable[[], Any]
USES: dict[str, Callable[[], Use]] = {}


class Shim:
    """The preloaded library: see fail_allocations.cpp."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.library.shim_stop.restype = ctypes.c_long
        ranges = [find_range("_core."), find_range("libstdc++.so")]
        self.library.shim_watch(*(ctypes.c_size_t(end) for pair in ranges for end in pair))

    @contextmanager
    def failing(self, failures: int, first: int) -> Iterator[Callable[[], bool]]:
        """From the allocation `first` of the extension on `failures` of them fail.

        Yields what says, afterwards, whether one has.
        """
        self.library.shim_fail(ctypes.c_long(first), ctypes.c_long(failures))
        try:
            yield lambda: int(self.library.shim_stop()) >= first
        finally:
            self.library.shim_stop()


Failing = AbstractContextManager[Callable[[], bool]]
KINDS: dict[str, Callable[[], list[Callable[[int], Failing]]]] = {
    "extension": lambda: [partial(Shim().failing, failures) for failures in (1, 1_000_000)],
}


def find_range(name: str) -> tuple[int, int]:
    """Where a library lies in this process."""
    lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if name in line]
    lines = [line for line in lines if Path(line.split()[-1]).name.startswith(name)]
    return int(lines[0].partition("-")[0], 16), int(lines[-1].split()[0].partition("-")[2], 16)


def use(make: Callable[[], Use]) -> Callable[[], Use]:
    """A use, made once with all that it needs; its name is that of the function."""
    USES[make.__name__] = make
    return make


# ---- what there is to use

IDS = pa.array([1, 2, None, 4], pa.int64())
LISTS = pa.array([[1, 2], [], [3]], pa.list_(pa.int32()))
VECTORS = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(12, dtype="f4")), 3)
TABLE = pa.table(
    {
        "a": pa.chunked_array([[1, 2], [3]], pa.int64()),
        "b": pa.chunked_array([[1.5, 2.5], [3.5]], pa.float64()),
        "v": pa.chunked_array([VECTORS.slice(0, 2), VECTORS.slice(2, 1)]),
    }
)


class Stream:
    """A stream in Python that is not pyarrow's."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class Frame:
    """`__dataframe__` alone."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __dataframe__(self, **_: Any) -> Any:
        return self.frame


class Producer:
    """`__dlpack__` alone, of a vintage."""

    def __init__(self, values: Any, *, is_versioned: bool) -> None:
        self.values, self.is_versioned = values, is_versioned

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.is_versioned:
            return self.values.__dlpack__(max_version=(1, 0))
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def consume(array: Any) -> Any:
    """The array with the capsules of its protocols taken by pyarrow and numpy."""
    return array, pa.array(array)


to_arrow = arrowdl.to_arrow_device
GRID = np.arange(24.0).reshape(4, 6)


@use
def numpy_to_arrow() -> Use:
    return lambda: to_arrow(GRID[0])


@use
def grid_to_arrow() -> Use:
    return lambda: to_arrow(GRID)


@use
def grid_to_lists() -> Use:
    return lambda: to_arrow(GRID, layout="list")


@use
def permuted_to_arrow() -> Use:
    return lambda: to_arrow(GRID.reshape(2, 3, 4).transpose(0, 2, 1))


@use
def strided_to_arrow() -> Use:
    return lambda: to_arrow(GRID[::2, ::3])


@use
def bools_to_bits() -> Use:
    flags = GRID[0] > 3
    return lambda: (to_arrow(flags), to_arrow(flags, bool_as="bits"))


@use
def masked_to_arrow() -> Use:
    return lambda: to_arrow(GRID[0], mask=GRID[0] > 3)


@use
def complex_to_arrow() -> Use:
    values = GRID[0].astype("complex64")
    return lambda: to_arrow(values)


@use
def dict_to_arrow() -> Use:
    return lambda: to_arrow({"a": GRID[:, 0], "b": GRID, "c": {"d": GRID[:, 1] > 0}})


@use
def scalar_to_arrow() -> Use:
    return lambda: to_arrow(np.array(3.5))


@use
def bytes_to_arrow() -> Use:
    return lambda: to_arrow(b"abcdefgh")


@use
def producers_to_arrow() -> Use:
    old, new = (Producer(GRID, is_versioned=is_versioned) for is_versioned in (False, True))
    return lambda: (to_arrow(old), to_arrow(new))


@use
def capsule_to_arrow() -> Use:
    return lambda: to_arrow(GRID.__dlpack__())


@use
def arrow_array() -> Use:
    return lambda: arrowdl.from_arrow(IDS)


@use
def arrow_lists() -> Use:
    return lambda: arrowdl.from_arrow(LISTS)


@use
def arrow_table() -> Use:
    return lambda: arrowdl.from_arrow(TABLE)


@use
def arrow_chunks() -> Use:
    column = pa.chunked_array([["a", "bc"], [None, "d"]])
    nested = pa.chunked_array([[[1], [2, 3]], [None, [4]]])
    words = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode()] * 2)
    return lambda: [arrowdl.from_arrow(chunks) for chunks in (column, nested, words)]


@use
def arrow_structs() -> Use:
    structs = pa.chunked_array([[{"x": 1, "y": [True]}], [None, {"x": 2, "y": []}]])
    return lambda: arrowdl.from_arrow(structs)


@use
def arrow_stream() -> Use:
    return lambda: arrowdl.from_arrow(Stream())


@use
def arrow_capsules() -> Use:
    return lambda: arrowdl.from_arrow(IDS.__arrow_c_array__())


@use
def arrow_addresses() -> Use:
    array = arrowdl.from_arrow(VECTORS)

    def run() -> Any:
        addresses = [bytearray(200) for _ in range(2)]
        schema, struct = (ctypes.addressof(ctypes.c_char.from_buffer(a)) for a in addresses)
        arrowdl.c_data.export_array(array, struct, schema)
        return arrowdl.c_data.import_array(struct, schema)

    return run


def export(call: Callable[[Any], Any]) -> Use:
    arrays = [
        arrowdl.from_arrow(VECTORS),
        to_arrow(GRID[0]),
        arrowdl.from_arrow(LISTS),
        arrowdl.from_arrow(TABLE.to_batches()[0]),
    ]
    return lambda: [call(array) for array in arrays]


@use
def schema_capsules() -> Use:
    return export(lambda array: array.__arrow_c_schema__())


@use
def array_capsules() -> Use:
    return export(lambda array: array.__arrow_c_array__())


@use
def device_array_capsules() -> Use:
    return export(lambda array: array.__arrow_c_device_array__())


@use
def array_by_pyarrow() -> Use:
    return export(pa.array)


@use
def dlpack_capsules() -> Use:
    array = arrowdl.from_arrow(VECTORS)
    bits = arrowdl.from_arrow(pa.array([True, False]))
    return lambda: (
        array.__dlpack__(),
        array.__dlpack__(max_version=(1, 0)),
        array.__dlpack__(max_version=(1, 0), copy=True),
        bits.__dlpack__(),
    )


@use
def numpy_from_dlpack() -> Use:
    array = arrowdl.from_arrow(VECTORS)
    return lambda: np.from_dlpack(array)


@use
def numpy_asarray() -> Use:
    array = arrowdl.from_arrow(VECTORS)
    return lambda: (np.asarray(array), np.array(array, copy=True))


@use
def slices_and_fields() -> Use:
    array = arrowdl.from_arrow(TABLE.combine_chunks())
    return lambda: (array[1:], array["v"][:1], array.field("a")[1:2], array.schema, array.nbytes)


@use
def text_of_arrays() -> Use:
    array = arrowdl.from_arrow(TABLE.combine_chunks())
    return lambda: (repr(array), repr(array.schema), str(array.device), repr(array.type))


@use
def copies() -> Use:
    array = arrowdl.from_arrow(TABLE.combine_chunks())
    return lambda: array.to("cpu")


def to_numpy(*given: Any, **options: Any) -> Use:
    arrays = [arrowdl.from_arrow(item) for item in given]
    return lambda: [arrowdl.to_numpy(array, **options) for array in arrays]


@use
def numpy_of_arrays() -> Use:
    return to_numpy(VECTORS, pa.array([1, 2]), pa.array([True, False]))


@use
def numpy_of_table() -> Use:
    return lambda: arrowdl.to_numpy(TABLE)


@use
def numpy_of_stream() -> Use:
    return lambda: arrowdl.to_numpy(TABLE.to_reader())


@use
def numpy_stacked() -> Use:
    table = TABLE.select(["b"]).append_column("c", TABLE["b"])
    return lambda: arrowdl.to_numpy(table, stack=True)


@use
def numpy_padded() -> Use:
    return to_numpy(LISTS, ragged="padded")


@use
def numpy_of_offsets() -> Use:
    return to_numpy(LISTS, pa.array(["a", "bc"]), ragged="offsets")


@use
def numpy_of_nulls() -> Use:
    arrays = [arrowdl.from_arrow(array) for array in (IDS, IDS.cast(pa.float32()))]
    return lambda: [
        arrowdl.to_numpy(array, nulls=nulls)
        for array in arrays
        for nulls in ("fill", "mask", -1, "nan")[: 3 + (array is arrays[1])]
    ]


@use
def numpy_of_casts() -> Use:
    prices = arrowdl.from_arrow(IDS.cast(pa.decimal128(38, 2)))
    times = arrowdl.from_arrow(IDS.cast(pa.timestamp("s")))
    return lambda: (
        [arrowdl.to_numpy(prices, nulls="fill", dtype=dtype) for dtype in ("int8", "float32")],
        arrowdl.to_numpy(times, nulls="fill", dtype="timestamp[ms]"),
    )


@use
def numpy_of_dictionaries() -> Use:
    return to_numpy(pa.array(["a", "b", "a"]).dictionary_encode())


@use
def numpy_of_runs() -> Use:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([1.0, 2.0]))
    return to_numpy(runs)


def read(adapt: Callable[[Any], Any]) -> Use:
    batches = TABLE.to_batches()
    return lambda: list(adapt(arrowdl.from_arrow_stream(pa.Table.from_batches(batches))))


@use
def streams() -> Use:
    return read(lambda stream: stream)


@use
def streams_selected() -> Use:
    return read(lambda stream: stream.select(["a", "v"]))


@use
def streams_rebatched() -> Use:
    return read(lambda stream: stream.rebatch(2))


@use
def streams_shuffled() -> Use:
    return read(lambda stream: stream.shuffle(2, 7))


@use
def streams_packed() -> Use:
    return read(lambda stream: stream.select(["a", "v"]).pack("v", 5, "best_fit", buffer_size=1))


@use
def streams_shuffled_and_packed() -> Use:
    return read(lambda stream: stream.select(["a", "v"]).shuffle(3, 7).slice(1).pack("v", 5))


@use
def streams_filled() -> Use:
    """Rows whose nulls cannot be replaced are the next ones again."""
    table = pa.table({"some": [1.5, None, 2.5], "all": pa.nulls(3, pa.float64())})
    arrays = [arrowdl.from_arrow(batch) for batch in table.to_batches(max_chunksize=1)]
    options = _core.ColumnOptions({"some": "fill", "all": "nan"})

    def run() -> Any:
        stream, filled, failures = _core.fill_nulls(_core.chain(arrays), options), [], 0
        while True:
            try:
                array = next(stream, None)
            except MemoryError:
                failures += 1
                if failures > 1:
                    raise
                continue
            if array is None:
                break
            filled.append(array)
        assert len(filled) == len(arrays)
        return filled

    return run


@use
def streams_joined() -> Use:
    batches = TABLE.to_batches(max_chunksize=1)

    def run() -> Any:
        first, second, third, fourth = (
            arrowdl.from_arrow_stream(pa.Table.from_batches(batches)) for _ in range(4)
        )
        both = _core.interleave([first, second], 1)
        return list(both), list(_core.mix([third, fourth], [[0, 0, 1, 0, 1, 2, 0]]))

    return run


@use
def rows_by_number() -> Use:
    """Take rows of more and of fewer arrays than rows."""
    arrays = [arrowdl.from_arrow(batch) for batch in TABLE.to_batches(max_chunksize=1)]
    rows = len(arrays)
    ids = np.array([1, 0, -1], "int16")

    def run() -> Any:
        starts = _core.read_row_numbers(range(rows), rows)
        numbered = _core.number_rows(arrays, starts)
        few = _core.read_row_numbers(ids[:2], rows)
        many = _core.read_row_numbers([1, 0, 1, 0, *range(rows)], rows)
        groups = _core.group_rows(many, starts)
        return [_core.take_rows(numbered, numbers) for numbers in (few, many)], groups

    return run


@use
def streams_sharded() -> Use:
    return read(lambda stream: stream.shard(2, 0, pad=True))


@use
def streams_sliced() -> Use:
    return read(lambda stream: stream.slice(1, 2))


@use
def streams_copied() -> Use:
    return read(lambda stream: stream.to("cpu"))


@use
def streams_prefetched() -> Use:
    return read(lambda stream: stream.prefetch(2))


@use
def streams_mapped() -> Use:
    def apply(stream: Any) -> Any:
        return stream.map(lambda a: a, columns="a", framework="numpy", prefetch=0)

    return read(apply)


@use
def streams_of_python() -> Use:
    arrays = [arrowdl.from_arrow(batch) for batch in TABLE.to_batches()]
    return lambda: list(_core.from_arrow_stream(iter(arrays)))


@use
def streams_exported() -> Use:
    def run() -> Any:
        stream = arrowdl.from_arrow_stream(TABLE)
        return pa.RecordBatchReader.from_stream(stream).read_all()

    return run


@use
def device_streams_exported() -> Use:
    return lambda: arrowdl.from_arrow_stream(TABLE).__arrow_c_device_stream__()


@use
def interchange() -> Use:
    table = TABLE.select(["a", "b"]).append_column("words", pa.array(["x", None, "yz"]))
    frame = Frame(table.combine_chunks().__dataframe__())
    return lambda: arrowdl.from_arrow(frame)


@use
def blocks() -> Use:
    leaves = [GRID, GRID[::2, ::3], "text", GRID[0] > 3]
    frameworks = ["numpy", "numpy", None, "numpy"]

    def run() -> Any:
        block = _core.TensorBlock(leaves, frameworks)
        memory = bytearray(block.nbytes)
        block.write(memory)
        return block.left_out, _core.read_tensors(to_arrow(memory), block.table, frameworks)

    return run


@use
def structs() -> Use:
    columns = [arrowdl.from_arrow(pa.array([1, 2])), to_arrow(GRID[:2])]
    return lambda: _core.make_struct(["a", "b"], columns)


@use
def permutations() -> Use:
    return lambda: _core.permute(20, 3)


@use
def refusals() -> Use:
    """Errors have texts, which need memory too."""
    nulls, words = arrowdl.from_arrow(IDS), arrowdl.from_arrow(pa.array(["a"]))

    def run() -> None:
        for array in (nulls, words):
            try:
                array.__dlpack__()
            except BufferError:
                continue
            raise AssertionError("no error")

    return run


@use
def devices() -> Use:
    return lambda: (arrowdl.Device("cpu"), arrowdl.Device("cuda", 1), repr(arrowdl.Device(2, 3)))


@use
def failing_streams_exported() -> Use:
    """An error of the source, on its way through C."""

    def give() -> Any:
        yield arrowdl.from_arrow(TABLE.to_batches()[0])
        raise ValueError("a text that is longer than what a string holds without memory")

    def run() -> None:
        reader = pa.RecordBatchReader.from_stream(arrowdl.from_arrow_stream(give()))
        try:
            reader.read_all()
        except (ValueError, OSError, RuntimeError, pa.ArrowException):
            return
        raise AssertionError("no error")

    return run


@use
def synchronizers() -> Use:
    def make() -> None:
        arrowdl.register_synchronizer(7, lambda event, device: None)
        arrowdl.register_synchronizer(7, None)

    return make


# ---- those that need more than pyarrow and numpy


@use
def torch_tensors() -> Use:
    import torch

    given = [torch.arange(6), torch.ones(2, 3, dtype=torch.bfloat16), torch.ones(3) > 0]
    table = TABLE.append_column("l", pa.array([[1], [], [2, 3]]))

    def run() -> Any:
        arrays = [to_arrow(tensor) for tensor in given]
        tensors = [torch.from_dlpack(array) for array in arrays]
        return tensors, arrowdl.to_torch(table), arrowdl.to_torch(IDS, nulls="mask")

    return run


@use
def torch_jagged() -> Use:
    import torch

    array = arrowdl.from_arrow(LISTS)
    nested = torch.nested.nested_tensor_from_jagged(torch.arange(6), torch.tensor([0, 2, 6]))
    return lambda: (arrowdl.to_torch(array), to_arrow(nested))


@use
def torch_blocks() -> Use:
    import torch

    leaves = [torch.arange(6), torch.ones(2, 3)]
    frameworks = ["torch", "torch"]

    def run() -> Any:
        block = _core.TensorBlock(leaves, frameworks)
        memory = bytearray(block.nbytes)
        block.write(memory)
        return _core.read_tensors(to_arrow(memory), block.table, frameworks)

    return run


@use
def jax_arrays() -> Use:
    import jax.numpy as jnp

    given = jnp.arange(6.0)
    return lambda: (to_arrow(given), arrowdl.to_jax(VECTORS))


@use
def cuda_copies() -> Use:
    array = arrowdl.from_arrow(TABLE.combine_chunks())

    def run() -> Any:
        there = array.to("cuda")
        there.synchronize()
        return there["v"].__dlpack__(max_version=(1, 0), stream=1), there.to("cpu")

    return run


@use
def cuda_streams() -> Use:
    return read(lambda stream: stream.to("cuda").prefetch(1))


@use
def cuda_nulls() -> Use:
    array = arrowdl.from_arrow(pa.array([True, None, False])).to("cuda")
    return lambda: (array.validity, array[1:].to("cpu"))


@use
def cuda_exports() -> Use:
    array = arrowdl.from_arrow(VECTORS).to("cuda")

    def run() -> Any:
        array.record_stream(2)
        array.wait(2)
        again = to_arrow(Interface(array.__cuda_array_interface__))
        return array.__arrow_c_device_array__(), again[1:]

    return run


class Interface:
    def __init__(self, entries: Any) -> None:
        self.__cuda_array_interface__ = entries


# ---- the sweep


def run_one(run: Use) -> BaseException | None:
    """What it raises, without what that keeps alive."""
    try:
        run()
    except BaseException as raised:
        error = raised.with_traceback(None)
        error.__context__ = error.__cause__ = None
        return error
    return None


def settle(objects: int, abandoned: int) -> int:
    """How many more than `objects` are alive, when nothing is on its way any more.

    Threads and streams of devices give theirs back in their own time, or say that they do not.
    """
    if debug.live_objects() > objects:
        gc.collect()
    start = time.monotonic()
    while debug.live_objects() > objects:
        time.sleep(0.0002)
        patience = 0.2 if debug.abandoned_releases() > abandoned else 5
        if time.monotonic() > start + patience:
            break
    return debug.live_objects() - objects


def sweep(name: str, failing: Callable[[int], Failing]) -> tuple[int, list[str]]:
    """The points of a use, and what does not hold at them."""
    run = USES[name]()
    gc.collect()
    objects = debug.live_objects()  # what the use has made for all of its runs
    for _ in range(3):  # what is imported and cached is
        run()
    settle(objects, debug.abandoned_releases())
    faults = []
    for n in range(1, MOST_POINTS):
        os.pwrite(2, f"{name} {n}".ljust(60).encode() + b"\n", 0)
        abandoned = debug.abandoned_releases()
        with failing(n) as failed:
            error = run_one(run)
        if error is not None and not isinstance(error, MemoryError):
            faults.append(f"{name} {n}: {type(error).__name__}: {error}")
        left = settle(objects, abandoned)
        if left < 0 or debug.abandoned_releases() > abandoned:
            # Abandoned by the thread of late releases, which must not wait.
            objects += left
        elif left:
            faults.append(f"{name} {n}: {left} objects are left, after {error!r}")
        if not failed():
            return n - 1, faults
        if again := run_one(run):
            faults.append(f"{name} {n}: then {type(again).__name__}: {again}")
    return MOST_POINTS, [*faults, f"{name}: no end"]


def fail_threads() -> None:
    """No thread of the extension can start."""
    library = ctypes.CDLL(None)
    library.shim_fail_threads(1)
    stream = arrowdl.from_arrow_stream(TABLE).prefetch(2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"that reads ahead cannot start .* prefetch=0"):
            next(stream)
    stream.close()
    longer = pa.table({"x": range(5_000)})  # a small table is shuffled without a thread
    loader = arrowdl.Loader(longer, 1_000, shuffle=True, framework="numpy")
    with pytest.raises(RuntimeError, match=r"ulimit -u.* prefetch=0"):
        list(loader)
    loader = arrowdl.Loader(longer, 1_000, shuffle=True, framework="numpy", prefetch=0)
    assert len(list(loader)) == 5
    loader = arrowdl.Loader(TABLE, 1, shuffle=True, framework="numpy")
    assert len(list(loader)) == TABLE.num_rows
    arrowdl.config.num_threads = 4
    large = np.arange(2**23, dtype="i8").reshape(2**11, 2**12)
    array = arrowdl.to_arrow_device(np.asfortranarray(large)[::2])
    assert np.array_equal(np.asarray(array), large[::2])
    del array, stream, loader, large
    gc.collect()
    assert debug.live_objects() == 0
    library.shim_fail_threads(0)
    assert len(list(arrowdl.from_arrow_stream(TABLE).prefetch(2))) == 2
    print("done")


def main(kind: str, names: list[str]) -> None:
    if kind == "threads":
        Shim()
        return fail_threads()
    gc.disable()
    points = 0
    for name in names or [name for name in USES if not name.startswith(OTHERS)]:
        for failing in KINDS[kind]():
            number, faults = sweep(name, failing)
            points += number
            print(*faults, sep="\n", end="\n" if faults else "")
    print(points, "points", flush=True)
    return None


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1], sys.argv[2:])
