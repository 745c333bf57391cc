"""Rows that several threads copy: enough of them, of every kind of buffer."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from helpers.random_cases import choose_examples
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = 24_000
BYTES = bytes(range(251)) * 8


def make_table() -> pa.Table:
    """Each buffer of more than a few shares of 256 KiB, whatever the length of a row."""
    ids = pa.array(np.arange(ROWS))
    numbers = np.arange(ROWS * 25)
    ends = np.cumsum(np.arange(ROWS) % 50)
    lists = pa.LargeListArray.from_arrays(np.concatenate([[0], ends]), np.arange(ends[-1]))
    valid = pa.array(np.arange(ROWS) % 7 != 3)
    text = pa.array([BYTES[i % 251 : i % 251 + i % 90] for i in range(ROWS)])
    return pa.table(
        {
            "id": ids,
            "vector": pa.FixedSizeListArray.from_arrays(numbers.astype(np.float32), 25),
            "odd": pa.array([BYTES[i % 251 : i % 251 + 37] for i in range(ROWS)], pa.binary(37)),
            "list": lists,
            "text": pa.compute.if_else(valid, text, None),
            "number": pa.compute.if_else(valid, ids, None),
        }
    )


TABLE = make_table()


def read_table(stream: Any) -> pa.Table:
    return pa.RecordBatchReader.from_stream(stream).read_all().combine_chunks()


@settings(max_examples=choose_examples(6, 60))
@given(
    st.lists(st.integers(0, ROWS), max_size=6),
    st.integers(1, ROWS),
    st.integers(0, 2**32),
)
def test_random_rows_come_out_as_they_went_in(cuts: list[int], rows: int, seed: int) -> None:
    ends = [0, *sorted(cuts), ROWS]
    parts = [TABLE.slice(a, b - a) for a, b in itertools.pairwise(ends)]
    chunked = pa.concat_tables(parts)
    assert read_table(arrowdl.from_arrow_stream(chunked).rebatch(max(rows, 1_000))) == TABLE
    shuffled = read_table(arrowdl.from_arrow_stream(chunked).shuffle(rows, seed))
    order = shuffled["id"].to_numpy()
    assert shuffled == TABLE.take(order)
    assert np.array_equal(np.sort(order), np.arange(ROWS))


def run(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, **environment},
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


SHUFFLE = """
import os
import arrowdl, numpy as np, pyarrow as pa
table = pa.table({"x": pa.FixedSizeListArray.from_arrays(np.arange(1 << 20), 64)})
def shuffle():
    return sum(len(rows) for rows in arrowdl.from_arrow_stream(table).shuffle(1 << 14, seed=1))
assert shuffle() == 1 << 14
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_its_own_threads() -> None:
    script = """
arrowdl.config.num_threads = 4
assert shuffle() == 1 << 14
child = os.fork()
if child == 0:
    os._exit(7 if shuffle() == 1 << 14 else 1)
assert shuffle() == 1 << 14
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(SHUFFLE + script) == "7\n"


def test_random_ends_of_a_process_with_idle_threads() -> None:
    for _ in range(choose_examples(2, 20)):
        run(SHUFFLE)


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads of Linux")
@pytest.mark.parametrize(
    ("threads", "limit", "more"), [("1", 0, 0), ("3,1", 0, 2), ("0", 2, 1), ("nonsense", 4, 3)]
)
def test_the_limit_is_that_of_openmp_or_the_callers(threads: str, limit: int, more: int) -> None:
    script = f"""
count = lambda: len(os.listdir("/proc/self/task"))
if {limit}:
    arrowdl.config.num_threads = {limit}
before = count()
print(max(count() for _ in range(10) if shuffle()) - before)  # idle ones may have ended
"""
    assert (
        run(SHUFFLE.removesuffix("assert shuffle() == 1 << 14\n") + script, OMP_NUM_THREADS=threads)
        == f"{more}\n"
    )


def test_a_limit_is_one_thread_or_more() -> None:
    with pytest.raises(ValueError, match=r"config\.num_threads=0: it is 1 or more"):
        arrowdl.config.num_threads = 0
