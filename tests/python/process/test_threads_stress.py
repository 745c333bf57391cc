"""Sixteen threads use the same objects at once, with and without a GIL."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import arrowdl
import numpy as np
import pyarrow as pa

THREADS = 16
ROWS = 64
NUMBERS = np.arange(ROWS, dtype=np.float64)
TABLE = pa.table({"x": np.arange(ROWS), "y": NUMBERS})
OPERATIONS = 150


class Shared:
    """What the threads race for. An array that one of them has released is replaced by another."""

    def __init__(self) -> None:
        self.array = arrowdl.to_arrow_device(NUMBERS)
        self.batch = arrowdl.from_arrow(TABLE.combine_chunks().to_batches()[0])
        self.stream = arrowdl.from_arrow_stream(TABLE).rebatch(1)
        self.rows: list[int] = []
        self.released = 0

    def release(self) -> None:
        array, self.array = self.array, arrowdl.to_arrow_device(NUMBERS)
        array.release()
        self.released += array.is_released

    def read(self) -> None:
        row = next(self.stream, None)
        if row is not None:
            self.rows.append(arrowdl.to_numpy(row)["x"][0])

    def consume(self) -> None:
        """One tensor, one consumer: the other thread's call raises."""
        capsule = self.array.__dlpack__(max_version=(1, 0))
        assert len(arrowdl.to_arrow_device(capsule)) == ROWS

    def describe(self) -> bool:
        text = repr(self.array)  # once: another thread replaces the array
        return "float64" in text or "(released)" in text

    def operations(self) -> list[Callable[[], object]]:
        return [
            self.release,
            self.read,
            self.consume,
            self.describe,
            lambda: np.array_equal(np.from_dlpack(self.array), NUMBERS),
            lambda: np.array_equal(arrowdl.to_numpy(self.array), NUMBERS),
            lambda: pa.array(self.array).equals(pa.array(NUMBERS)),
            lambda: len(self.array[3:9]) == 6,
            lambda: arrowdl.to_arrow_device(NUMBERS[::2]).null_count == 0,
            lambda: pa.record_batch(self.batch).num_rows == ROWS,
            lambda: len(self.batch["y"]) == ROWS,
        ]


def work(shared: Shared, seed: int, start: threading.Barrier) -> int:
    operations = shared.operations()
    order = random.Random(seed).choices(range(len(operations)), k=OPERATIONS)
    start.wait(timeout=60)
    refused = 0
    for index in order:
        try:
            assert operations[index]() in (None, True), index
        except ValueError as error:  # another thread was first
            if "released" not in str(error):
                raise
            refused += 1
    return refused


def test_sixteen_threads_share_arrays_and_a_stream() -> None:
    shared = Shared()
    start = threading.Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(work, shared, seed, start) for seed in range(THREADS)]
        refused = sum(future.result(timeout=120) for future in futures)
    shared.rows += [arrowdl.to_numpy(row)["x"][0] for row in shared.stream]
    assert sorted(shared.rows) == list(range(ROWS))
    assert shared.released > THREADS
    assert refused < THREADS * OPERATIONS / 2
