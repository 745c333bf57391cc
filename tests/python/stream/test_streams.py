"""DeviceStream: Arrow streams of real libraries, through the adaptors and out again."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import duckdb
import nanoarrow as na
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from helpers.random_cases import choose_examples
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = 100
WHOLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "text": [None if i % 7 == 3 else "x" * (i % 5) for i in range(ROWS)],
        "list": [None if i % 11 == 3 else list(range(i % 4)) for i in range(ROWS)],
        "flag": [i % 3 == 0 for i in range(ROWS)],
        "category": pa.array([f"c{i % 3}" for i in range(ROWS)]).dictionary_encode(),
    }
)
TABLE = pa.concat_tables(
    [WHOLE.slice(0, 33), WHOLE.slice(33, 0), WHOLE.slice(33, 33), WHOLE.slice(66)]
)
IDS = list(range(ROWS))


def read_table(stream: Any) -> pa.Table:
    return pa.RecordBatchReader.from_stream(stream).read_all()


def read_ids(stream: Any) -> list[int]:
    return [int(i) for array in stream for i in np.from_dlpack(array["id"])]


SOURCES: dict[str, Callable[[], Any]] = {
    "pyarrow table": lambda: TABLE,
    "pyarrow reader": TABLE.to_reader,
    "pyarrow batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "polars": lambda: pl.from_arrow(TABLE.select(["id", "text"])),
    "duckdb": lambda: duckdb.from_arrow(TABLE.select(["id", "text"])),
    "nanoarrow": lambda: na.ArrayStream(TABLE),
    "capsule": TABLE.__arrow_c_stream__,
    "list of batches": lambda: TABLE.to_batches(),
    "generator": lambda: iter(TABLE.to_batches()),
    "DeviceArray": lambda: arrowdl.from_arrow(TABLE),
    "DeviceStream": lambda: arrowdl.from_arrow_stream(TABLE),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_its_rows(source: str) -> None:
    assert read_ids(arrowdl.from_arrow_stream(SOURCES[source]())) == IDS


@pytest.mark.parametrize("rows", [1, 7, 33, 50, 100, 1000])
def test_consumers_read_what_comes_out(rows: int) -> None:
    assert read_table(arrowdl.from_arrow_stream(TABLE).rebatch(rows)).equals(
        TABLE.unify_dictionaries()
    )
    frame = pl.DataFrame(
        arrowdl.from_arrow_stream(TABLE.select(["id", "text", "list"])).rebatch(rows)
    )
    assert frame.to_arrow()["id"].to_pylist() == IDS
    reader = pa.RecordBatchReader.from_stream(
        arrowdl.from_arrow_stream(TABLE.select(["id"])).rebatch(rows)
    )
    assert duckdb.query("select sum(id) from reader").fetchall() == [(sum(IDS),)]
    assert arrowdl.to_torch(arrowdl.from_arrow_stream(TABLE.select(["id"])))["id"].tolist() == IDS
    del reader


def test_a_slice_of_rows_is_a_record_batch() -> None:
    """pyarrow 26 refuses a struct with an offset as a record batch."""
    array = arrowdl.from_arrow(TABLE.combine_chunks().to_batches()[0])
    assert pa.record_batch(array[10:20]).to_pylist() == TABLE.slice(10, 10).to_pylist()
    nulls = arrowdl.from_arrow(pa.record_batch({"n": pa.nulls(9), "x": [1, None] * 4 + [3]}))
    batch = pa.record_batch(nulls[2:5])
    batch.validate(full=True)
    assert batch.to_pylist() == [{"n": None, "x": x} for x in (1, None, 1)]


def test_adaptors_are_a_chain() -> None:
    stream = (
        arrowdl.from_arrow_stream(TABLE)
        .select(["list", "id"])
        .shuffle(40, 7)
        .rebatch(30)
        .prefetch(2)
    )
    batches = list(stream)
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert batches[0].field_names == ["list", "id"]
    rows = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    assert [row["id"] for row in rows] != IDS
    expected = TABLE.select(["list", "id"]).to_pylist()
    assert sorted(rows, key=lambda row: row["id"]) == expected


def test_shuffle_is_for_all_time() -> None:
    ids = read_ids(arrowdl.from_arrow_stream(TABLE).shuffle(10, seed=7))
    assert ids[:10] == [8, 5, 6, 0, 7, 3, 1, 9, 4, 2]
    assert [sorted(ids[i : i + 10]) for i in range(0, ROWS, 10)] == [
        IDS[i : i + 10] for i in range(0, ROWS, 10)
    ]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 30), st.integers(0, 2**64 - 1))
def test_rows_are_neither_lost_nor_made(chunks: list[int], rows: int, seed: int) -> None:
    arrays = [
        pa.record_batch({"id": pa.array([10 * i + j for j in range(n)], pa.int64())})
        for i, n in enumerate(chunks)
    ]
    table = pa.Table.from_batches(arrays, pa.schema({"id": pa.int64()}))
    ids = table["id"].to_pylist()
    assert read_ids(arrowdl.from_arrow_stream(table).rebatch(rows)) == ids
    assert sorted(read_ids(arrowdl.from_arrow_stream(table).shuffle(rows, seed))) == ids
    shards = [
        read_ids(arrowdl.from_arrow_stream(table).rebatch(rows).shard(3, i)) for i in range(3)
    ]
    assert sorted(i for shard in shards for i in shard) == ids
    assert read_ids(arrowdl.from_arrow_stream(table).slice(rows, 5)) == ids[rows : rows + 5]
    assert read_ids(arrowdl.from_arrow_stream(table).slice(rows)) == ids[rows:]


def test_a_stream_is_read_once() -> None:
    stream = arrowdl.from_arrow_stream(TABLE)
    later = stream.rebatch(10)
    for use in (lambda: next(stream), lambda: stream.rebatch(3), stream.__arrow_c_stream__):
        with pytest.raises(ValueError, match="consumer has taken it"):
            use()
    next(later)
    later.close()
    with pytest.raises(ValueError, match="closed"):
        next(later)


def test_wrong_arguments_lose_nothing() -> None:
    stream = arrowdl.from_arrow_stream(TABLE)
    with pytest.raises(ValueError, match='no column "nope": the columns are "id"'):
        stream.select(["nope"])
    with pytest.raises(ValueError, match="batch_size=0"):
        stream.rebatch(0)
    with pytest.raises(ValueError, match="buffer_size=0"):
        stream.shuffle(0, 1)
    with pytest.raises(ValueError, match="num_shards=3, index=3"):
        stream.shard(3, 3)
    with pytest.raises(ValueError, match="depth=0"):
        stream.prefetch(0)
    with pytest.raises(TypeError):
        stream.shuffle(10, -1)
    assert read_ids(stream) == IDS


@pytest.mark.parametrize(
    ("obj", "message"),
    [(3, "from_arrow_stream.. cannot read an object of type int"), ([], "empty"), ([1], "int")],
)
def test_what_is_no_stream_is_refused(obj: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        arrowdl.from_arrow_stream(obj)


def test_the_type_may_not_change_on_the_way() -> None:
    arrays = [pa.array([1, 2]), pa.array([3, 4]), pa.array(["x"])]
    stream = arrowdl.from_arrow_stream(arrays)
    assert [len(next(stream)), len(next(stream))] == [2, 2]
    with pytest.raises(
        ValueError, match="array 2 is of string, the stream of int64: a stream has one schema"
    ):
        next(stream)


def fail_after(batches: int) -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches()[:batches]
    raise KeyError("disk on fire")


def test_a_thread_that_reads_ahead_keeps_its_thread_local_values() -> None:
    """It is one thread of Python for all arrays, and drops them when it ends."""
    local = threading.local()
    ended = threading.Event()
    threads = []

    class Connection:
        def __del__(self) -> None:
            ended.set()

    def source() -> Iterator[pa.Array]:
        for i in range(10):
            if not hasattr(local, "connection"):
                local.connection = Connection()
                threads.append(threading.get_ident())
            yield pa.array([i])

    batches = arrowdl.from_arrow_stream(source()).prefetch(2)
    assert [len(array) for array in batches] == [1] * 10
    assert len(threads) == len(set(threads)) == 2  # from_arrow_stream() has read the first here
    del batches
    assert ended.wait(10)


@pytest.mark.parametrize("prefetch", [False, True])
def test_errors_of_the_source_come_as_they_are(prefetch: bool) -> None:
    stream = arrowdl.from_arrow_stream(fail_after(1))
    stream = stream.prefetch() if prefetch else stream
    assert len(next(stream)) == 33
    with pytest.raises(KeyError, match="disk on fire"):
        next(stream)


@pytest.mark.parametrize("prefetch", [False, True])
def test_errors_of_a_c_stream_keep_their_message(prefetch: bool) -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, fail_after(1))
    stream = arrowdl.from_arrow_stream(reader)
    stream = stream.prefetch() if prefetch else stream
    assert len(next(stream)) == 33
    for _ in range(2):
        with pytest.raises(RuntimeError, match="disk on fire"):
            next(stream)


def test_a_consumer_sees_the_error_too() -> None:
    with pytest.raises(Exception, match="disk on fire"):  # pyarrow chooses its class
        read_table(arrowdl.from_arrow_stream(fail_after(1)).rebatch(5))


def test_closing_leaves_an_endless_source_behind() -> None:
    closed = threading.Event()

    def count() -> Iterator[pa.Array]:
        try:
            while True:
                yield pa.array([1])
        finally:
            closed.set()

    threads = threading.active_count()
    stream = arrowdl.from_arrow_stream(count()).prefetch(3)
    for _ in range(10):
        next(stream)
    stream.close()
    gc.collect()
    assert closed.wait(10)
    assert threading.active_count() == threads


@pytest.mark.parametrize("use", [next, lambda stream: stream.rebatch(2), lambda s: s.close()])
def test_a_source_cannot_use_its_own_stream(use: Callable[[Any], Any]) -> None:
    made: list[Any] = []

    def source() -> Iterator[pa.Array]:
        yield pa.array([1])
        use(made[0])
        yield pa.array([2])

    made.append(arrowdl.from_arrow_stream(source()))
    next(made[0])
    with pytest.raises(RuntimeError, match="being read by this thread"):
        next(made[0])


def test_two_threads_share_the_arrays_of_a_stream() -> None:
    stream = arrowdl.from_arrow_stream(pa.table({"id": np.arange(20_000)})).rebatch(10).prefetch(4)
    seen: list[list[int]] = [[], []]

    def read(into: list[int]) -> None:
        for array in stream:
            into += np.from_dlpack(array["id"]).tolist()

    threads = [threading.Thread(target=read, args=(into,)) for into in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen[0] + seen[1]) == list(range(20_000))


def test_other_threads_run_while_a_source_is_read() -> None:
    """A source in Python needs the interpreter lock, which a waiting reader must not hold."""
    release = threading.Event()

    def wait_once() -> Iterator[pa.Array]:
        yield pa.array([1])
        assert release.wait(10)
        yield pa.array([2])

    stream = arrowdl.from_arrow_stream(wait_once()).prefetch(1)
    next(stream)
    threading.Timer(0.05, release.set).start()
    assert len(next(stream)) == 1


def test_ctrl_c_ends_a_wait_at_once() -> None:
    script = """
import signal, threading, time, os
import arrowdl, pyarrow as pa
never = threading.Event()
def source():
    yield pa.array([1])
    never.wait(60)
stream = arrowdl.from_arrow_stream(source()).prefetch()
next(stream)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    next(stream)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50
    )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_not_the_thread() -> None:
    script = """
import os
import arrowdl, pyarrow as pa
stream = arrowdl.from_arrow_stream(pa.table({"x": range(1000)})).rebatch(1).prefetch(2)
next(stream)
child = os.fork()
if child == 0:
    try:
        next(stream)
    except RuntimeError as error:
        assert "forked" in str(error), error
    del stream
    fresh = arrowdl.from_arrow_stream(pa.table({"x": range(1000)})).rebatch(1).prefetch(2)
    assert len(list(fresh)) == 1000
    raise SystemExit(7)
assert len(list(stream)) == 999
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50
    )
    assert (done.stdout, done.returncode) == ("7\n", 0), done.stderr


def test_random_ends_of_a_process_with_streams_under_way() -> None:
    script = """
import arrowdl, pyarrow as pa
def source():
    while True:
        yield pa.array([1])
kept = [arrowdl.from_arrow_stream(source()).prefetch(2) for _ in range(4)]
for stream in kept:
    next(stream)
"""
    for _ in range(choose_examples(2, 20)):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=50
        )
        assert (done.stderr, done.returncode) == ("", 0)


def test_metadata_and_repr() -> None:
    stream = arrowdl.from_arrow_stream(pa.table({"x": pa.array([1], pa.int8())}))
    assert repr(stream) == "<arrowdl.DeviceStream of struct<x: int8>, cpu>"
    assert stream.device_type == arrowdl.DeviceType.cpu
    assert pa.schema(stream) == pa.schema({"x": pa.int8()})
    assert pa.schema(stream.schema) == pa.schema({"x": pa.int8()})
    with pytest.raises(NotImplementedError, match="speed"):
        stream.__arrow_c_device_stream__(speed=3)
    again = arrowdl.from_arrow_stream(stream.__arrow_c_device_stream__())
    assert len(next(again)) == 1


def test_zero_copy_within_a_chunk() -> None:
    column = np.arange(1000)
    for array in arrowdl.from_arrow_stream(pa.table({"x": column})).rebatch(100).prefetch():
        assert np.shares_memory(np.from_dlpack(array["x"]), column)


def test_to_the_device_it_is_on() -> None:
    assert read_ids(arrowdl.from_arrow_stream(TABLE).to("cpu")) == IDS
    with pytest.raises(BufferError, match="cuda"):
        next(arrowdl.from_arrow_stream(TABLE).to("cuda:0"))


def test_a_slow_source_is_waited_for() -> None:
    def slow() -> Iterator[pa.Array]:
        for i in range(3):
            time.sleep(0.03)
            yield pa.array([i])

    assert [len(array) for array in arrowdl.from_arrow_stream(slow()).prefetch(1)] == [1, 1, 1]


def test_nested_rows_go_through_the_adaptors() -> None:
    """Types whose rows are gathered each in their own way, behind an offset and with nulls."""
    table = pa.table(
        {
            "id": range(100),
            "struct": [None if i % 7 == 0 else {"a": i, "l": [i] * (i % 3)} for i in range(100)],
            "map": pa.array([[(i, "x" * (i % 3))] for i in range(100)], pa.map_("int64", "string")),
            "view": pa.array(["s" * i for i in range(100)], pa.string_view()),
            "list view": pa.array([[i] * (i % 4) for i in range(100)], pa.list_view(pa.int32())),
            "runs": pa.RunEndEncodedArray.from_arrays([30, 60, 100], [1, None, 3]),
            "null": pa.nulls(100),
            "bytes": pa.array([bytes([i] * 3) for i in range(100)], pa.binary(3)),
        }
    ).slice(3, 90)
    for adapted in (
        arrowdl.from_arrow_stream(table).rebatch(7),
        arrowdl.from_arrow_stream(table).shuffle(13, 5),
        arrowdl.from_arrow_stream(table).rebatch(4).shuffle(50, 1).rebatch(9).prefetch(),
    ):
        read = read_table(adapted)
        read.validate(full=True)
        assert sorted(read.to_pylist(), key=lambda row: row["id"]) == table.to_pylist()


def test_dictionaries_that_are_too_many_together_are_refused() -> None:
    def make(first: int) -> pa.RecordBatch:
        words = pa.array([f"w{i}" for i in range(first, first + 100)])
        codes = pa.array(range(100), pa.int8())
        return pa.record_batch({"k": pa.DictionaryArray.from_arrays(codes, words)})

    stream = arrowdl.from_arrow_stream([make(0), make(100)]).rebatch(200)
    with pytest.raises(Exception, match="200 distinct values together, more than the indices"):
        next(stream)
