"""Google Cloud Storage (fake-gcs-server) by pyarrow's client: rows, faults, and what it asks for.

pyarrow's file of an object holds the interpreter during its first request, so the proxy with faults
is a process of its own.
"""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow.fs as fs
import pytest
from arrowdl.loader import Retries
from arrowdl.loader._storage.table_stores import open_table_store
from helpers.cloud_servers import GoogleStorage, find_google_storage
from helpers.fault_proxy import start_proxy
from helpers.options import group
from helpers.stores import IPC, PARQUET, ROWS, dump

ALL = list(range(3 * ROWS))
PATIENT = Retries(tries=400, deadline=60.0, first_wait=0.001, most_wait=0.02)
TOKEN = "ya29.tokenofatest"


@pytest.fixture(scope="module")
def server() -> Iterator[GoogleStorage]:
    program = find_google_storage()
    if program is None:
        pytest.skip("fake-gcs-server has no wheel for this system")
    server = GoogleStorage(program)
    server.put("box", {**PARQUET, **IPC})
    yield server
    server.kill()


def load(source: Any, port: int, **options: Any) -> arrowdl.Loader:
    options = {"storage_options": GoogleStorage.make_options(port), "retries": PATIENT, **options}
    return arrowdl.Loader(source, 16, framework="numpy", columns=["id"], **group(**options))


def read(source: Any, port: int, **options: Any) -> list[int]:
    loader = load(source, port, **options)
    try:
        return [i for batch in loader for i in batch["id"].tolist()]
    finally:
        loader.close()


def test_objects_folders_and_patterns(server: GoogleStorage, tmp_path: Path) -> None:
    for source in ("gs://box/b", "gcs://box/b/*/*.parquet", "gs://box/c/?.arrow", "gs://box/c"):
        assert read(source, server.port) == ALL
    assert read("gs://box/b/k=1/1.parquet", server.port) == ALL[40:80]
    cache = {"cache": tmp_path, "cache_bytes": 10**7}
    rows = read("gs://box/b", server.port, shuffle=True, num_workers=1, **cache)
    assert sorted(rows) == ALL
    assert list(tmp_path.glob("*.range"))
    plan = load("gs://box/b", server.port).plan()
    assert read("gs://box/b", server.port, plan=plan) == ALL
    with pytest.raises(FileNotFoundError, match="no file"):
        load("gs://box/nothing/*.parquet", server.port)


def test_file_systems(server: GoogleStorage) -> None:
    native = fs.GcsFileSystem(**GoogleStorage.make_options(server.port))
    below = fs.SubTreeFileSystem("box", native)
    for source, filesystem in (("box/b", native), ("b", below)):
        assert read(source, server.port, filesystem=filesystem, storage_options=None) == ALL


def test_stores_of_delta_tables(server: GoogleStorage) -> None:
    """deltalake's client lists by the XML interface, which fake-gcs-server has not."""
    base = f"http://127.0.0.1:{server.port}"
    options = {"google_base_url": base, "google_skip_signature": "true"}
    made = open_table_store("gs://box/b/k=1/", options)
    assert made is not None
    assert read("1.parquet", server.port, filesystem=made, storage_options=None) == ALL[40:80]


def test_faults(server: GoogleStorage) -> None:
    """A first request of pyarrow's that failed was "I/O operation on closed file", and final."""
    with start_proxy(server.port, 5, 0.05, "503", "reset", "truncate") as port:
        assert read("gs://box/b", port) == ALL


def test_what_stays_wrong_is_named(server: GoogleStorage) -> None:
    """Google's client alone tried again for more than ten seconds, in each of our tries."""
    with start_proxy(server.port, 0, 1.0, "reset") as port:
        once = Retries(tries=2, first_wait=0.001)
        with pytest.raises(OSError, match=r"'gs://box/b' failed 2 times"):
            load("gs://box/b", port, retries=once)


def test_an_object_that_changed_is_an_error(server: GoogleStorage) -> None:
    server.put("changing", {"a.parquet": dump(0), "b.parquet": dump(ROWS)})
    loader = load("gs://changing", server.port)
    server.put("changing", {"b.parquet": dump(7)})
    with pytest.raises(OSError, match=r"'gs://changing/b.parquet' has changed"):
        list(loader)


def test_tokens_are_nowhere(server: GoogleStorage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "arrowdl.loader")
    options = GoogleStorage.make_options(server.port)
    del options["anonymous"]
    options |= {"access_token": TOKEN, "credential_token_expiration": None}
    once = Retries(tries=1)
    shown = []
    for more in ({}, {"oops": 1}, {"endpoint_override": "127.0.0.1:1"}, {"scheme": "ftp"}):
        try:
            loader = load("gs://box/b", 0, storage_options=options | more, retries=once)
        except Exception as error:
            shown += traceback.format_exception(error)
        else:
            plan = loader.plan()
            shown += [repr(loader), str(loader.state_dict()), str(loader.stats()), repr(plan)]
            shown += [str(plan.files), repr(loader._source), str(pickle.dumps(plan))]
    shown.append(caplog.text)
    assert len(shown) > 4
    assert not [text for text in shown if TOKEN in text]
