"""Loader(num_workers=): the same batches from processes, and a clean end in every case."""

from __future__ import annotations

import gc
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from helpers import transforms
from helpers.options import group
from helpers.worker_memory import HAS_PROC, count_mapped, count_open, list_names

ROWS = 100
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array(range(ROWS), pa.float32()),
    }
)
Loader = partial(arrowdl.Loader, framework="numpy")  # a process that imports no torch starts sooner


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    gc.collect()  # of tests before this
    assert multiprocessing.active_children() == []
    threads = threading.active_count()
    before = count_memory()
    yield
    assert multiprocessing.active_children() == []
    assert threading.active_count() <= threads  # of tests before, some may have ended
    gc.collect()
    assert count_memory() <= before


def count_memory() -> int:
    """Slots that this process has mapped or open."""
    return count_mapped() + count_open() if HAS_PROC else 0


def read_ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def read_table() -> pa.RecordBatchReader:
    return TABLE.to_reader(max_chunksize=30)


# ---- the same batches


def write_parquet(root: Path) -> Path:
    pq.write_table(TABLE, root / "rows.parquet", row_group_size=20)
    return root


def write_ipc(root: Path) -> Path:
    with pa.ipc.new_file(root / "rows.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=30)
    return root / "rows.arrow"


SOURCES = {
    "parquet": write_parquet,
    "mapped": write_ipc,
    "dataset": lambda root: ds.dataset(write_parquet(root)),
    "table": lambda root: TABLE,
    "function": lambda root: read_table,
    "batches": lambda root: TABLE.to_batches(max_chunksize=30),
}


@pytest.mark.parametrize("name", SOURCES)
def test_workers_give_the_batches_of_the_loader(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    options: dict[str, Any] = {"shuffle": True, "buffer_size": 64, "columns": ["id"]}
    shared = Loader(source, 7, num_workers=2, transform=transforms.add_process, **group(**options))
    alone = Loader(source, 7, **group(**options))
    processes = set()
    for _ in range(2):  # epochs
        batches = list(shared)
        assert sorted(read_ids(batches)) == sorted(read_ids(alone))
        processes |= {batch["process"] for batch in batches}
    assert len(processes) == 2, "the second epoch is read by the processes of the first"
    assert os.getpid() not in processes
    assert shared.epoch == 2
    assert shared.stats().rows == 2 * ROWS


def test_ranks_and_states() -> None:
    def make(rank: int) -> arrowdl.Loader:
        return Loader(
            TABLE, 7, num_workers=3, shuffle=True, ranks=arrowdl.Ranks(rank, 2), drop_last=True
        )

    whole = [read_ids(make(rank)) for rank in range(2)]
    assert [len(batches) for batches in whole] == [7, 7]
    first = make(1)
    batches: Any = iter(first)
    assert read_ids(itertools.islice(batches, 4)) == whole[1][:4]
    state = json.loads(json.dumps(first.state_dict()))
    batches.close()
    second = make(1)
    second.load_state_dict(state)
    assert read_ids(second) == whole[1][4:]
    alone = [Loader(TABLE, 5, shuffle=True, ranks=arrowdl.Ranks(rank, 3)) for rank in range(3)]
    seen = [i for batches in whole for batch in batches[:4] for i in batch]
    for loader in alone:
        loader.load_state_dict(state)
        seen += [i for batch in read_ids(loader) for i in batch]
    assert sorted(set(seen)) == list(range(ROWS))
    assert len(seen) < ROWS + 3


def test_trees_come_back_as_they_were() -> None:
    (batch,) = arrowdl.Loader(TABLE, ROWS, num_workers=1, transform=transforms.make_tree)
    expected = transforms.make_tree({"id": torch.arange(ROWS)})
    assert list(batch) == list(expected)
    assert type(batch["pair"]) is transforms.Pair
    assert type(batch["pair"].y) is list
    flat = [batch["pair"].x, *batch["pair"].y, *(batch[k] for k in ("matrix", "columns", "one"))]
    wanted = [
        expected["pair"].x,
        *expected["pair"].y,
        *(expected[k] for k in ("matrix", "columns", "one")),
    ]
    for tensor, other in zip(flat, wanted, strict=True):
        assert tensor.dtype == other.dtype
        assert torch.equal(tensor, other)
    assert batch["jagged"].layout == torch.jagged
    assert [row.tolist() for row in batch["jagged"].unbind()] == [
        row.tolist() for row in expected["jagged"].unbind()
    ]
    assert isinstance(batch["numpy"], np.ndarray)
    assert np.array_equal(batch["numpy"], expected["numpy"])
    assert batch["scalar"].shape == ()
    assert batch["scalar"].item() == 2.5
    assert batch["grad"].requires_grad
    assert batch["dates"] == expected["dates"]
    assert (batch["text"], batch["count"]) == (("a", {"b": None}), ROWS)


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_matrices_without_a_transform(framework: Any) -> None:
    loader = Loader(TABLE, 40, num_workers=2, framework=framework, stack={"m": ["x"]})
    assert [batch["m"].shape for batch in loader] == [(40, 1), (20, 1), (40, 1)]


def test_batches_of_many_sizes_have_slots_that_fit() -> None:
    loader = Loader(TABLE, 7, num_workers=1, transform=transforms.grow)
    for batch in loader:
        first = int(batch["id"][0])
        assert batch["large"].shape == (first * 1000,)
        assert bool((batch["large"] == first).all())


@pytest.mark.parametrize("are_kept", [False, True])
def test_batches_of_which_none_is_like_the_one_before(are_kept: bool) -> None:
    loader = Loader(TABLE, 4, num_workers=1, transform=transforms.alternate)
    kept = []
    for i, batch in enumerate(loader):
        expected = transforms.alternate({"id": np.arange(4 * i, 4 * i + 4)})
        np.testing.assert_equal(batch, expected)
        if are_kept:
            kept.append((batch, expected))
    for batch, expected in kept:
        np.testing.assert_equal(batch, expected)


def test_slots_are_used_again_and_kept_batches_are_not() -> None:
    loader = Loader(TABLE, 1, num_workers=1)
    addresses = [batch["x"].ctypes.data for batch in loader]
    assert len(addresses) == ROWS
    assert len(set(addresses)) < 10
    kept = [batch["x"] for batch in loader]  # more than the slots there were
    del loader
    assert [x.item() for x in kept] == list(range(ROWS))


def test_rows_of_a_kept_tensor_keep_its_slot() -> None:
    kept = [batch["id"][2:4] for batch in Loader(TABLE, 10, num_workers=1)]
    assert [row.tolist() for row in kept] == [[i + 2, i + 3] for i in range(0, ROWS, 10)]


def test_who_counts_the_batches_gets_the_next_epoch() -> None:
    """As Lightning does: no more is asked for than the last batch."""
    whole = Loader(TABLE, 10, shuffle=True)
    epochs = [sorted(read_ids(whole)) for _ in range(2)]
    for workers in (0, 2):
        loader = Loader(
            TABLE, 10, shuffle=True, num_workers=workers, transform=transforms.add_process
        )
        counted = [list(itertools.islice(loader, len(loader))) for _ in range(2)]
        assert [sorted(read_ids(batches)) for batches in counted] == epochs
        processes = {batch["process"] for batches in counted for batch in batches}
        assert len(processes) == max(1, workers)


# ---- errors


def test_an_error_of_a_worker_is_raised_with_its_traceback() -> None:
    batches = iter(Loader(TABLE, 10, num_workers=2, transform=transforms.raise_error))
    with pytest.raises(LookupError, match="no such row") as error:
        list(batches)
    (note,) = error.value.__notes__
    assert "of the Loader:\nTraceback" in note
    assert "in raise_error" in note


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (transforms.raise_what_cannot_be_pickled, "LocalError: 1 and 2"),
        (transforms.kill_process, "worker . of the Loader was killed by SIGKILL"),
        (transforms.exit_process, "worker . of the Loader ended with exit code 3"),
    ],
)
def test_what_ends_a_worker_is_an_error(transform: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        list(Loader(TABLE, 10, num_workers=2, transform=transform))


def test_a_batch_that_cannot_be_pickled_is_an_error() -> None:
    loader = Loader(TABLE, 10, num_workers=1, transform=transforms.give_what_cannot_be_pickled)
    with pytest.raises(Exception, match="pickle"):
        list(loader)


def test_a_loader_reads_on_after_an_error() -> None:
    loader = Loader(TABLE, 10, num_workers=1, transform=transforms.kill_process)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="SIGKILL"):
            list(loader)


def test_a_worker_killed_from_outside_is_no_hang() -> None:
    batches = iter(Loader(TABLE, 1, num_workers=2, transform=transforms.sleep_long))
    next(batches)
    for process in multiprocessing.active_children():
        os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        list(batches)


@pytest.mark.parametrize(
    "arguments",
    [{"source": TABLE, "transform": lambda batch: batch}, {"source": TABLE.to_reader()}],
    ids=["lambda", "stream"],
)
def test_what_cannot_be_pickled_is_said_at_once(arguments: dict[str, Any]) -> None:
    loader = Loader(arguments.pop("source"), 10, num_workers=2, **group(**arguments))
    with pytest.raises(TypeError, match=r"the source and the transform .* pickle"):
        list(loader)


class _Alarmed:
    """A transform while whose pickling a signal comes."""

    def __call__(self, batch: Any) -> Any:
        return batch

    def __getstate__(self) -> dict[str, Any]:
        signal.raise_signal(signal.SIGUSR1)
        return {}


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
@pytest.mark.parametrize("wraps", [False, True])
def test_an_exception_of_a_signal_handler_stays_what_it_is(wraps: bool) -> None:
    def end(number: int, frame: Any) -> None:
        raise LookupError("the job ends")

    before = signal.signal(signal.SIGUSR1, partial(end) if wraps else end)
    loader = Loader(TABLE, 2, num_workers=1, transform=_Alarmed())
    try:
        with pytest.raises(LookupError, match="the job ends"):
            list(loader)
    finally:
        signal.signal(signal.SIGUSR1, before)
        loader.close()


def test_workers_are_counted() -> None:
    with pytest.raises(ValueError, match="num_workers=-1"):
        Loader(TABLE, 10, num_workers=-1)


# ---- ends


@pytest.mark.skipif(not HAS_PROC, reason="reads /proc")
def test_batches_far_ahead_that_nobody_takes() -> None:
    before = count_mapped()
    batches = iter(Loader(TABLE, 3, num_workers=1, prefetch=32))
    next(batches)
    (worker,) = multiprocessing.active_children()
    assert worker.pid is not None
    until = time.monotonic() + 20
    while count_mapped(worker.pid) < 20 and time.monotonic() < until:
        time.sleep(0.01)
    assert count_mapped(worker.pid) >= 20
    assert count_mapped() <= before + 1
    batches.close()
    assert count_mapped() == before


def test_stopping_early_ends_the_workers() -> None:
    loader = Loader(TABLE, 1, num_workers=2, transform=transforms.sleep_long)
    batches: Any = iter(loader)
    next(batches)
    batches.close()
    assert multiprocessing.active_children() == []
    for _ in loader:  # and again, by new ones
        break


def test_an_error_of_the_training_ends_the_workers() -> None:
    def train() -> None:
        for _ in Loader(TABLE, 1, num_workers=2):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()


def test_idle_workers_end_with_the_loader() -> None:
    loader = Loader(TABLE, 10, num_workers=2)
    list(loader)
    assert len(multiprocessing.active_children()) == 2
    del loader
    assert multiprocessing.active_children() == []


SCRIPT = """
import multiprocessing, signal, sys, time
import arrowdl, pyarrow as pa
from helpers import transforms
from helpers.worker_memory import count_mapped
table = pa.table({"id": range(100)})
if __name__ == "__main__" or sys.argv[1] == "no guard":
    loader = arrowdl.Loader(table, 1, num_workers=2, transform=getattr(transforms, sys.argv[2]),
                            framework="numpy")
    for batch in loader:
        workers = multiprocessing.active_children()
        while sys.argv[1] == "hold" and any(count_mapped(worker.pid) < 2 for worker in workers):
            time.sleep(0.01)
        print("batch", flush=True)
        if sys.argv[1] == "hold":
            signal.pause()
        if sys.argv[1] == "exit":
            sys.exit(5)
"""


def start_script(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, *(["-S"] if sys.flags.no_site else []), script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=True,
    )


def assert_group_is_gone(process: subprocess.Popen[str]) -> None:
    """The streams end when no process has them any more: a remaining worker would have them."""
    process.communicate(timeout=60)


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    process = start_script(tmp_path, "run", "sleep_long")
    assert process.stdout is not None
    assert process.stdout.readline() == "batch\n"
    os.killpg(process.pid, signal.SIGINT)
    assert_group_is_gone(process)
    assert process.returncode not in (0, None)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_training_leaves_nothing(end: signal.Signals, tmp_path: Path) -> None:
    process = start_script(tmp_path, "run", "add_process")
    assert process.stdout is not None
    assert process.stdout.readline() == "batch\n"
    process.send_signal(end)
    assert_group_is_gone(process)


@pytest.mark.skipif(not HAS_PROC, reason="reads /dev/shm")
def test_a_killed_process_group_leaves_nothing(tmp_path: Path) -> None:
    """Also of batches that the training has not received. The resource tracker is killed too."""
    before = list_names()
    process = start_script(tmp_path, "hold", "sleep_long")
    assert process.stdout is not None
    assert process.stdout.readline() == "batch\n"
    os.killpg(process.pid, signal.SIGKILL)
    assert_group_is_gone(process)
    assert list_names() <= before


def test_an_exit_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    process = start_script(tmp_path, "exit", "sleep_long")
    assert_group_is_gone(process)
    assert process.returncode == 5


def test_a_script_without_a_guard_is_told(tmp_path: Path) -> None:
    process = start_script(tmp_path, "no guard", "add_process")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert 'if __name__ == "__main__"' in errors


def test_a_partial_is_a_transform() -> None:
    transform = partial(dict, more=1)
    assert [batch["more"] for batch in Loader(TABLE, 50, num_workers=1, transform=transform)]


@pytest.mark.parametrize("batching", [arrowdl.Pack("tokens", 4), arrowdl.Buckets("tokens")])
def test_workers_get_no_report(batching: Any) -> None:
    """It is of the training's process, and pickle may refuse it."""
    lock = threading.Lock()
    table = pa.table({"tokens": pa.array([[i] for i in range(20)], pa.list_(pa.int32()))})
    report = arrowdl.Report(every=1_000, function=lambda stats: lock.locked())
    options: dict[str, Any] = {"batching": batching, "progress": report, "num_workers": 1}
    with arrowdl.Loader(table, 2, framework="numpy", **options) as loader:
        assert sum(1 for _ in loader) == len(loader)
