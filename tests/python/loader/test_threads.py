"""`Loader(num_threads=)`: batches that threads make, in order."""

from __future__ import annotations

import ctypes
import gc
import itertools
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.options import group
from helpers.processes import run_python

TABLE = pa.table({"id": pa.array(range(100), pa.int32())})


def make(table: pa.Table = TABLE, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(table, 8, framework="numpy", **group(**{"num_threads": 3, **options}))


def live_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("arrowdl-transform")]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True, "prefetch": 0},
        {"pad_last": True},
        {"drop_last": True, "stack": True},
        {"global_batch_size": 8, "batch_size": None},
        {"transform_arrow": lambda batch: batch},
        {"framework": "torch"},
        {"framework": "jax"},
    ],
)
def test_batches_are_those_of_one_thread(options: dict[str, Any]) -> None:
    defaults: dict[str, Any] = {"batch_size": 8, "framework": "numpy"} | options

    def read(num_threads: int) -> list[Any]:
        loader = arrowdl.Loader(TABLE, num_threads=num_threads, **group(**defaults))
        read = []
        for _ in range(2):
            for batch in loader:
                columns = batch if isinstance(batch, dict) else {"all": batch}
                read.append({name: np.asarray(rows).tolist() for name, rows in columns.items()})
                read.append(loader.valid_rows)
        return read

    assert read(3) == read(0)
    assert live_threads() == []


def test_transforms_work_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def meet(batch: Any) -> Any:
        if batch["id"][0] < 72:  # of whole turns
            meeting.wait()
        return batch["id"][0]

    assert list(make(transform=meet)) == list(range(0, 100, 8))


def test_no_more_batches_are_made_than_asked_for() -> None:
    made: list[int] = []
    loader = make(transform=lambda batch: made.append(int(batch["id"][0])), prefetch=2)
    iterator = iter(loader)
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert len(made) <= 3 + 2 + 1
    assert live_threads() == []


@pytest.mark.parametrize("where", [0, 5, 12])
def test_an_error_comes_with_its_batch(where: int) -> None:
    def fail(batch: Any) -> Any:
        if batch["id"][0] == where * 8:
            raise KeyError("here")
        return batch

    loader = make(transform=fail)
    seen = []
    with pytest.raises(KeyError, match="here"):
        seen.extend(batch["id"][0] for batch in loader)
    assert live_threads() == []
    state = loader.state_dict()
    rest = make()
    rest.load_state_dict(state)
    assert next(iter(rest))["id"][0] == where * 8, "the next batch is the one that failed"


def test_errors_of_the_source_come_after_the_batches_before_them() -> None:
    def read() -> Any:
        yield from TABLE.to_batches(max_chunksize=8)[:3]
        raise OSError("disk on fire")

    seen = []
    with pytest.raises(OSError, match="disk on fire"):
        seen.extend(
            batch["id"][0]
            for batch in arrowdl.Loader(
                lambda: read(), 8, framework="numpy", num_threads=1, prefetch=0
            )
        )
    assert seen in ([], [0], [0, 8], [0, 8, 16])
    assert live_threads() == []


def test_states_count_what_was_returned() -> None:
    loader = make(shuffle=True)
    batches = [batch["id"].tolist() for _, batch in zip(range(4), loader, strict=False)]
    state = loader.state_dict()
    rest = make(shuffle=True)
    rest.load_state_dict(state)
    batches += [batch["id"].tolist() for batch in rest]
    assert sorted(itertools.chain(*batches)) == list(range(100))


def test_a_batch_is_released_when_the_training_drops_it() -> None:
    class Kept(dict[str, Any]):
        pass

    alive: dict[int, weakref.ref[Kept]] = {}  # in the order in which the threads are done

    def keep(batch: Any) -> Kept:
        kept = Kept(batch)
        alive[int(batch["id"][0])] = weakref.ref(kept)
        return kept

    before: list[int] = []
    for batch in make(transform=keep):
        first = int(batch["id"][0])
        del batch
        gc.collect()
        assert all(alive[one]() is None for one in before)
        before.append(first)


def test_the_wait_for_a_transform_is_told() -> None:
    gate = threading.Event()

    def wait(batch: Any) -> Any:
        gate.wait(60)
        return batch

    loader = make(transform=wait)
    iterator = iter(loader)
    threading.Timer(0.05, gate.set).start()
    list(iterator)
    assert loader.stats().transform_seconds > 0
    assert loader.stats().batches == 13


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": 2}, "in threads or in worker processes, not in both"),
        ({"device": "cuda:0"}, "a thread does not have the GPU stream of the training"),
        ({"num_threads": -1}, "num_threads=-1"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_the_device_may_be_the_cpu() -> None:
    def read(**options: Any) -> list[int]:
        loader = arrowdl.Loader(TABLE, 8, transform=dict, **group(**options))
        return [i for batch in loader for i in batch["id"].tolist()]

    assert read(num_threads=2, device="cpu") == read()


@pytest.mark.parametrize("name", ["transform", "transform_arrow"])
def test_torch_has_as_many_threads_as_it_was_told(name: str) -> None:
    """OpenMP's number is of a thread, and torch's matrix products in a new one ignored it."""
    import torch

    maps = Path("/proc/self/maps")
    found = re.search(r"/\S*/libgomp\S*", maps.read_text()) if maps.exists() else None
    if found is None:
        pytest.skip("torch does not use libgomp here")
    library = ctypes.CDLL(found[0])
    seen = set()

    def look(batch: Any) -> Any:
        seen.add(library.omp_get_max_threads())
        return batch

    before = torch.get_num_threads()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            seen.clear()
            list(make(**{name: look}))
            assert seen == {number}
    finally:
        torch.set_num_threads(before)


PROGRAM = """
import threading, pyarrow as pa, arrowdl

table = pa.table({"id": range(100)})
begun = threading.Event()

def train():
    loader = arrowdl.Loader(table, 8, framework="numpy", transform=dict.copy, num_threads=2)
    batches = iter(loader)
    next(batches)
    begun.set()
    threading.main_thread().join()  # it waits for this thread, and has ended otherwise
    print(1 + sum(1 for _ in batches), sum(1 for _ in loader))

threading.Thread(target=train).start()
begun.wait()
"""


AT_THE_END = """
import atexit, threading, time
def report():
    print([one.name for one in threading.enumerate() if one.name == "arrowdl-transform"])
    if not {hangs}:
        print(len(list(batches)))
atexit.register(report)  # before the Loader's hook, and so called after it
import arrowdl, pyarrow as pa
from arrowdl.loader._batches import transform
transform._MOST_SECONDS = {most}
def make(batch):
    if {hangs} and 50 in batch["id"].tolist():
        threading.Event().wait()
    return batch
loader = arrowdl.Loader(
    pa.table({{"id": range(100)}}), 8, framework="numpy", transform=make, num_threads={threads}
)
batches = iter(loader)
for _ in range(5):
    next(batches)
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_the_threads_end_before_the_program(threads: int) -> None:
    """A free-threaded Python would stop one that owns a lock, and wait for the lock for ever."""
    assert run_python(AT_THE_END.format(threads=threads, most=60, hangs=False)) == "[]\n8\n"


def test_a_program_ends_although_a_transform_hangs() -> None:
    out = run_python(AT_THE_END.format(threads=1, most=0.1, hangs=True))
    assert out == "['arrowdl-transform']\n"


def test_a_training_that_outlives_the_main_thread() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert (run.stdout, run.stderr) == ("13 13\n", "")
