"""Tables of Delta Lake and Iceberg in S3 (moto) through a proxy with faults, and their secrets."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import Retries
from arrowdl.loader._storage import table_stores
from deltalake import DeltaTable, write_deltalake
from helpers.delta_log import make_deletion_vector, make_field, write_log
from helpers.fault_proxy import Schedule, run_proxy, start_proxy
from helpers.options import group
from helpers.plan_group import Group, share_plan
from helpers.s3_server import KEYS, S3Server
from helpers.table_options import list_delta_options, list_iceberg_options
from helpers.tables import read_rows, sort_rows
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.table import Table

HELPERS = str(Path(__file__).parents[1] / "python")
ROWS = 400
PATIENT = Retries(tries=400, deadline=60.0, first_wait=0.001, most_wait=0.02)
FEW = Retries(tries=2, first_wait=0.0)
TABLE = pa.table({"id": range(ROWS), "x": [i / 2 for i in range(ROWS)]})


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.open().create_dir("bucket")
    yield server
    server.kill()


def write_delta(folder: Path, port: int) -> DeltaTable:
    uri, options = f"s3://bucket/{folder.name}-delta", list_delta_options(port)
    for start in range(0, ROWS, 100):
        write_deltalake(uri, TABLE.slice(start, 100), mode="append", storage_options=options)
    return DeltaTable(uri, storage_options=options)


def write_iceberg(folder: Path, port: int) -> Table:
    properties = {
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"s3://bucket/{folder.name}-iceberg",
    }
    catalog = SqlCatalog("test", **properties, **list_iceberg_options(port))
    catalog.create_namespace("own")
    made = catalog.create_table("own.rows", schema=TABLE.schema)
    for start in range(0, ROWS, 100):
        made.append(TABLE.slice(start, 100))
    return made


@pytest.fixture(params=[write_delta, write_iceberg])
def table(request: pytest.FixtureRequest, server: S3Server, tmp_path: Path) -> Any:
    return request.param(tmp_path, server.port)


def aim(table: Any, port: int) -> None:
    """Make the files of a table be read by another port of the server."""
    if isinstance(table, DeltaTable):
        table._storage_options = list_delta_options(port)
    else:
        table.io = load_file_io(list_iceberg_options(port), table.location())


def read_ids(loader: arrowdl.Loader) -> list[int]:
    return sorted(i for batch in loader for i in batch["id"][: loader.valid_rows].tolist())


def test_rows_are_those_of_the_table_in_spite_of_faults(table: Any, server: S3Server) -> None:
    with start_proxy(server.port, 7, 0.2, "reset", "truncate", "500", "503", "outage") as port:
        aim(table, port)
        loader = arrowdl.Loader(
            table, 16, framework="numpy", shuffle=True, storage=arrowdl.Storage(retries=PATIENT)
        )
        for _ in range(2):
            assert read_ids(loader) == list(range(ROWS))
    with start_proxy(server.port, 7, 1.0, "500") as port:  # they are read by it
        aim(table, port)
        with pytest.raises(OSError, match="failed 2 times"):
            list(arrowdl.Loader(table, 16, framework="numpy", storage=arrowdl.Storage(retries=FEW)))


def test_the_second_epoch_comes_from_the_cache(
    table: Any, server: S3Server, tmp_path: Path
) -> None:
    with start_proxy(server.port, 7, 0.0) as port:
        aim(table, port)
        cache = {"cache": tmp_path / "cache", "cache_bytes": 10**7}
        loader = arrowdl.Loader(table, 16, framework="numpy", **group(retries=FEW, **cache))
        assert read_ids(loader) == list(range(ROWS))
    assert read_ids(loader) == list(range(ROWS))


def test_requests_run_in_parallel(table: Any, server: S3Server) -> None:
    """Through a proxy of this process, which waited for ever for the interpreter that deltalake's
    client held."""
    with run_proxy(server.port) as proxy:
        aim(table, proxy.server_port)
        proxy.schedule = Schedule(0, 1.0, ("delay",))
        loader = arrowdl.Loader(table, 16, framework="numpy", storage=arrowdl.Storage(retries=FEW))
        assert read_ids(loader) == list(range(ROWS))
        assert proxy.most_at_once > 1


@pytest.mark.parametrize("prefix", ["a b/ü%20x", ""])
def test_deltas_paths_are_those_of_its_store(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions and deletion vectors, by pyarrow's client and by deltalake's."""
    parts = ["a b", "ü/x=%20", "#?&+"]
    fields = [make_field("id", "long"), make_field("part", "string")]
    adds = []
    for i, part in enumerate(parts):
        path = f"part={quote(part, safe='')}/{i}.parquet"
        (tmp_path / path).parent.mkdir()
        pq.write_table(TABLE.slice(i * 10, 10).select(["id"]), tmp_path / path)
        vector = {"deletionVector": make_deletion_vector([2, 5])} if i < 2 else {}
        stats = {"stats": json.dumps({"numRecords": 10}), "partitionValues": {"part": part}}
        adds.append({"path": quote(path, safe="/="), **stats, **vector})
    features = ["deletionVectors"]
    write_log(tmp_path, fields, adds, features=features, partitionColumns=["part"])
    own = S3Server()
    try:
        place = "/".join(["odd", *([unquote(prefix)] if prefix else ())])
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        own.put({f"{place}/{path.relative_to(tmp_path)}": path.read_bytes() for path in files})
        uri = f"s3://odd/{prefix}"
        table = DeltaTable(uri, storage_options=list_delta_options(own.port))
        expected = [(i, parts[i // 10]) for i in range(30) if i >= 20 or i % 10 not in (2, 5)]
        for _ in range(2):
            rows = sort_rows(read_rows(table))
            assert [(row["id"], row["part"]) for row in rows] == expected
            monkeypatch.setattr(table_stores, "_SCHEMES", {})
    finally:
        own.kill()


def test_a_plan_opens_a_table_without_a_request(table: Any, server: S3Server) -> None:
    options: dict[str, Any] = {"framework": "numpy", "retries": FEW}
    first = arrowdl.Loader(table, 16, **group(**options))
    plan = first.plan()
    aim(table, 1)  # where no server answers
    arrowdl.Loader(table, 16, **group(plan=plan, shuffle=True, **options))
    aim(table, server.port)
    again = arrowdl.Loader(table, 16, **group(plan=plan, **options))
    again.load_state_dict(first.state_dict())
    assert [b["id"].tolist() for b in again] == [b["id"].tolist() for b in first]
    ranks = [
        arrowdl.Loader(
            table, 16, num_workers=1, **group(plan=plan, rank=i, world_size=2, **options)
        )
        for i in range(2)
    ]
    assert sorted(i for loader in ranks for i in read_ids(loader)) == list(range(ROWS))


def test_rank_0_lists_a_table_for_all(
    table: Any, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    options: dict[str, Any] = {"framework": "numpy", "retries": FEW, "plan": "share"}
    ranks = []
    for rank in range(2):
        share_plan(Group(rank, told), monkeypatch)
        ranks.append(arrowdl.Loader(table, 16, **group(rank=rank, world_size=2, **options)))
        aim(table, 1)  # where no server answers rank 1
    assert len(ranks[1]._source.files.footers.list_footers()) == ROWS // 100
    assert len(read_ids(ranks[0])) == ROWS // 2
    aim(table, server.port)
    if isinstance(table, DeltaTable):
        newer = write_delta(tmp_path, server.port)
    else:
        table.append(TABLE)
        newer = table.refresh()
    share_plan(Group(1, told), monkeypatch)
    with pytest.raises(ValueError, match=r"the plan is of (Delta|Iceberg) table .* open what the"):
        arrowdl.Loader(newer, 16, **group(**options))


def test_secrets_are_nowhere(
    table: Any, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "arrowdl")
    with start_proxy(server.port, 7, 0.0) as port:
        aim(table, port)
        loader = arrowdl.Loader(table, 16, framework="numpy", storage=arrowdl.Storage(retries=FEW))
        shown = [repr(loader), str(loader.state_dict())]
    with pytest.raises(OSError, match="failed 2 times") as caught:
        list(loader)
    shown += [*traceback.format_exception(caught.value), caplog.text, str(loader.stats())]
    for text in shown:
        assert KEYS["secret_key"] not in text


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_file_that_vacuum_removed_names_version_and_advice(
    table: Any, server: S3Server, is_planned: bool
) -> None:
    """Between opening and reading, and in mid-epoch; or its row groups are skipped."""
    first = arrowdl.Loader(table, 16, framework="numpy", storage=arrowdl.Storage(retries=FEW))
    options: dict[str, Any] = {"framework": "numpy", "retries": FEW}
    options |= {"plan": first.plan()} if is_planned else {}
    loader = arrowdl.Loader(table, 16, **group(**options))
    skipping = arrowdl.Loader(table, 16, **group(on_error="skip", max_skipped_rows=100, **options))
    (path, *_) = (file.path for file in first.plan().files)
    full = path if isinstance(table, Table) else f"{table.table_uri.removeprefix('s3://')}{path}"
    server.open().delete_file(full)
    for own in (loader, first):
        with pytest.raises(FileNotFoundError, match="parquet") as caught:
            list(own)
        (note,) = (text for text in caught.value.__notes__ if "Loader read" in text)
        assert ("version 3" if isinstance(table, DeltaTable) else "snapshot") in note
        assert "If its files were removed (vacuum, cleanup, expired snapshots), make a new" in note
    assert len(read_ids(skipping)) == ROWS - 100
    assert [entry.path for entry in skipping.stats().skipped] == [path]


TOKEN = "tokenofatest/withslash+"


LEAK = """
import json, logging, os, sys, traceback
_, helpers, folder, port, token = sys.argv
sys.path.insert(0, helpers)
import arrowdl
from arrowdl.loader import Retries
from deltalake import DeltaTable
from helpers.fault_proxy import run_proxy
from helpers.s3_server import KEYS
from helpers.table_options import list_iceberg_options
from pyiceberg.catalog.sql import SqlCatalog

logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
logging.getLogger("botocore").setLevel(logging.WARNING)
name = os.path.basename(folder)

def open_sources(place, keys):
    options = {"endpoint": f"http://127.0.0.1:{port}", "allow_http": "true"}
    options |= dict(zip(("access_key_id", "secret_access_key", "session_token"), keys))
    delta = DeltaTable(f"s3://bucket/{name}-delta", storage_options=options)
    delta._storage_options = {**options, "endpoint": place}
    options = list_iceberg_options(place.rpartition(":")[2])
    del options["s3.access-key-id"], options["s3.secret-access-key"]
    options |= dict(zip(("s3.access-key-id", "s3.secret-access-key", "s3.session-token"), keys))
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", **options)
    store = dict(zip(("access_key", "secret_key", "session_token"), keys))
    url = delta.file_uris()  # a pattern in a table is refused
    options = {"options": {"endpoint_override": place, **store}}
    return [(delta, {}), (catalog.load_table("own.rows"), {}), (url, options)]

os.environ["AWS_REGION"] = "us-east-1"
for keys in ([*KEYS.values(), token], []):
    if not keys:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        os.environ.update(zip(names, [*KEYS.values(), token]))
    with run_proxy(int(port)) as proxy:
        for source, options in open_sources(f"http://127.0.0.1:{proxy.server_port}", keys):
            proxy.refusal = None
            storage = arrowdl.Storage(retries=Retries(tries=2, first_wait=0.0), **options)
            loader = arrowdl.Loader(source, 16, storage=storage)
            plan = loader.plan()
            plan.save(f"{folder}/plan.json")
            print("shown", loader, json.dumps(loader.state_dict()), plan, plan.files, plan.table)
            print(open(f"{folder}/plan.json").read(), loader.stats())
            proxy.refusal = 503, b"<Error/>"
            try:
                list(loader)
            except OSError as error:
                traceback.print_exception(error, file=sys.stdout)
                print("shown, and it failed", error, repr(error), vars(error))
"""


def test_session_tokens_are_nowhere(tmp_path: Path, server: S3Server) -> None:
    """The tokens of both tables and of a URL, in options and then in variables of a program."""
    token = "tokenofatest/withslash+"
    write_delta(tmp_path, server.port)
    write_iceberg(tmp_path, server.port)
    command = [sys.executable, "-c", LEAK, HELPERS, str(tmp_path), str(server.port), token]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count("shown <arrowdl.Loader") == 6
    assert said.count("shown, and it failed") == 6
    for text in (token, quote(token, safe=""), *KEYS.values()):
        assert text not in said


GO_ON = """
import json, os, sys
_, helpers, folder, port, kind = sys.argv
sys.path.insert(0, helpers)
import arrowdl
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog

place, name = f"http://127.0.0.1:{port}", os.path.basename(folder)
if kind == "delta":
    options = {"endpoint": place, "allow_http": "true", "region": "us-east-1"}
    table = DeltaTable(f"s3://bucket/{name}-delta", storage_options=options)
else:
    options = {"s3.endpoint": place, "s3.region": "us-east-1"}
    table = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", **options)
    table = table.load_table("own.rows")
loader = arrowdl.Loader(
    table,
    16,
    framework="numpy",
    shuffle=True,
    storage=arrowdl.Storage(plan="plan.json"),
)
loader.load_state_dict(json.load(open("state.json")))
print(json.dumps([batch["id"].tolist() for batch in loader]))
"""


def test_a_plan_and_a_state_go_on_at_another_machine(
    table: Any, server: S3Server, tmp_path: Path
) -> None:
    """Files of JSON alone: with another endpoint, credentials, folder, hash seed and time zone."""
    loader = arrowdl.Loader(table, 16, framework="numpy", shuffle=True)
    folder = tmp_path / "another"
    folder.mkdir()
    loader.plan().save(folder / "plan.json")
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    (folder / "state.json").write_text(json.dumps(loader.state_dict()))
    left = [batch["id"].tolist() for batch in batches]
    variables = {"AWS_ACCESS_KEY_ID": "another", "AWS_SECRET_ACCESS_KEY": "another"}
    given = {**os.environ, **variables, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    kind = "delta" if isinstance(table, DeltaTable) else "iceberg"
    with start_proxy(server.port, 7, 0.0) as port:
        command = [sys.executable, "-c", GO_ON, HELPERS, str(tmp_path), str(port), kind]
        done = subprocess.run(
            command, cwd=folder, env=given, capture_output=True, text=True, timeout=100, check=False
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == left
