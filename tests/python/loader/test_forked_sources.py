"""Sources whose engine has threads of its own, in processes that were forked without them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from multiprocessing.context import set_spawning_popen
from types import SimpleNamespace
from typing import Any

import arrowdl
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._sources.forked import find_home, find_home_of_files
from helpers.processes import run_python

TABLE = pa.table({"id": pa.array(range(8), pa.int32())})

FORK = """
import gc, os, sys, traceback
import arrowdl, duckdb, polars, pyarrow as pa
from torch.utils.data import DataLoader

def run(read, *texts):
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(tell, f"read {read()}".encode())
        except BaseException as error:
            os.write(tell, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(tell)
    os.waitpid(child, 0)
    said = os.read(told, 10_000).decode()
    assert all(text in said for text in texts), said

def connect():
    return duckdb.connect().sql("select range::int as id from range(8)")

relation = connect()
table = pa.table({"id": pa.array(range(8), pa.int32())})

def make(source):
    return arrowdl.Loader(source, 4, framework="numpy")

def read(loader):
    return sum(len(batch["id"]) for batch in loader)

function = "give the Loader a function that opens the source in the process that calls it"
for source in (relation, connect().to_arrow_reader(), arrowdl.from_arrow_stream(connect())):
    loader = make(source)
    run(lambda: read(loader), "RuntimeError: process", "forked from it", "num_workers=0", function)
run(lambda: make(relation).vocabulary("id"), "not a dictionary column")
encoded = make(duckdb.connect().sql("select 'a'::enum('a', 'b') as kind from range(8)"))
run(lambda: encoded.vocabulary("kind"), "forked from it")
run(lambda: read(make(connect())), "read 8")

batches = (batch for batch in table.to_batches(max_chunksize=4))
for source in (connect, polars.from_arrow(table).lazy(), table, batches, table.to_batches):
    loader = make(source)
    run(lambda: read(loader), "read 8")

batches = DataLoader(make(relation).torch_dataset(), batch_size=None, num_workers=1,
                     multiprocessing_context="fork")
try:
    list(batches)
except RuntimeError as error:
    assert "forked from it, without the threads of DuckDB" in str(error), error
else:
    raise AssertionError
gc.collect()  # a child that collects the iterator above prints what torch says of it
batches = DataLoader(make(connect).torch_dataset(), batch_size=None, num_workers=2,
                     multiprocessing_context="fork")
assert read(batches) == 8
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_children_read_by_no_threads_of_their_parent() -> None:
    run_python(FORK)


def in_module(module: str, name: str) -> Any:
    return type(name, (), {"__module__": module})()


@pytest.mark.parametrize(
    ("source", "engine"),
    [
        ("duckdb", "DuckDB"),
        (in_module("datafusion.dataframe", "DataFrame"), "DataFusion"),
        (in_module("adbc_driver_manager.dbapi", "Cursor"), "the ADBC driver"),
        (in_module("pyarrow._flight", "FlightStreamReader"), "Flight"),
        (in_module("arro3.core", "RecordBatchReader"), "whatever makes its rows"),
        (TABLE.__arrow_c_stream__(), "whatever makes its rows"),
        (TABLE, None),
        (pl.from_arrow(TABLE), None),
        (iter(TABLE.to_batches()), None),
        (in_module("duckdb_like", "Table"), None),
    ],
)
def test_engines_are_known_by_their_classes(source: Any, engine: str | None) -> None:
    relation = duckdb.connect().sql("select 1 as x")
    home = find_home(relation if isinstance(source, str) else source)
    assert (home and home.engine) == engine


def test_files_that_another_engine_reads(tmp_path: Any) -> None:
    """As those of a dataset of deltalake."""

    handler = in_module("deltalake.fs.fs_handler", "DeltaStorageHandler")
    files = SimpleNamespace(base_fs=SimpleNamespace(handler=handler))
    home = find_home_of_files(files)
    assert home is not None
    assert home.engine == "deltalake"
    pq.write_table(TABLE, tmp_path / "a.parquet")
    dataset = ds.dataset(tmp_path / "a.parquet")
    assert find_home_of_files(dataset.filesystem) is None


def test_a_pickle_is_of_the_process_that_loads_it() -> None:
    home = find_home(duckdb.sql("select 1 as x"))
    assert home is not None
    pickle.loads(pickle.dumps(home)).check()
    other = type(home)(home.source, home.engine, True, os.getppid())
    with pytest.raises(RuntimeError, match=r'multiprocessing_context="spawn", or use Loader'):
        other.check()


@pytest.fixture
def _is_spawning() -> Iterator[None]:
    set_spawning_popen(object())
    yield
    set_spawning_popen(None)


@pytest.mark.usefixtures("_is_spawning")
@pytest.mark.parametrize(
    "make",
    [
        lambda loader: loader.torch_dataset(),
        lambda loader: loader.map_dataset(),
        lambda loader: loader,
    ],
)
def test_what_cannot_be_sent_to_a_spawned_worker_is_said(make: Callable[[Any], Any]) -> None:
    advice = "pickle refuses: .* Give paths, a table or a function that opens the source"
    for options in ({"transform": lambda batch: batch}, {"transform_arrow": lambda batch: batch}):
        given: Any = options
        with pytest.raises(TypeError, match=advice):
            pickle.dumps(make(arrowdl.Loader(TABLE, 4, framework="numpy", **given)))
    loader = make(arrowdl.Loader(TABLE, 4, framework="numpy", transform=np.asarray))
    assert pickle.loads(pickle.dumps(loader))


@pytest.mark.usefixtures("_is_spawning")
def test_a_relation_cannot_be_sent_to_a_spawned_worker() -> None:
    dataset = arrowdl.Loader(duckdb.sql("select 1 as x"), 4).torch_dataset()
    with pytest.raises(TypeError, match=r"pickle refuses: .*DuckDBPy.* a function that op"):
        pickle.dumps(dataset)
