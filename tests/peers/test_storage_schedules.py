"""Random schedules of faults on tables in S3 (moto), and ends for good: rows once, or an error."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import arrowdl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader import Retries
from deltalake import DeltaTable, write_deltalake
from helpers.delta_log import make_deletion_vector, make_field, write_log
from helpers.fault_proxy import FAULTS, Schedule, run_proxy
from helpers.options import group
from helpers.random_cases import check_cases
from helpers.s3_server import KEYS, S3Server
from helpers.stores import PARQUET
from helpers.table_options import list_delta_options, list_iceberg_options
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io

FILES, ROWS, GROUP = 3, 40, 20
DELETED = [0, 7, 25]  # of each file of a table with deletion vectors
PATIENT = Retries(tries=400, deadline=60.0, first_wait=0.001, most_wait=0.01)
TWICE = Retries(tries=2, first_wait=0.001)
PLACES = ("delta", "deleted", "iceberg")


def make_file(number: int) -> pa.Table:
    ids = range(number * ROWS, (number + 1) * ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "x": [i / 2 for i in ids]})


class Tables:
    """The tables, and where their requests go."""

    def __init__(self, server: S3Server, folder: Path) -> None:
        self.server = server
        self.answers: dict[Any, Any] = {}  # of the server, to proxies: nothing is written any more
        self._groups: dict[str, dict[tuple[str, int], list[int]]] = {}
        server.open().create_dir("tables")
        options = list_delta_options(server.port)
        for i in range(FILES):
            write_deltalake(
                "s3://tables/delta", make_file(i), mode="append", storage_options=options
            )
        write_deleted(server, folder / "deleted")
        catalog = SqlCatalog(
            "test",
            uri=f"sqlite:///{folder}/catalog.db",
            warehouse="s3://tables/iceberg",
            **list_iceberg_options(server.port),
        )
        catalog.create_namespace("own")
        properties = {"write.parquet.row-group-limit": str(GROUP)}
        made = catalog.create_table("own.rows", schema=make_file(0).schema, properties=properties)
        made.append(pa.concat_tables([make_file(0), make_file(1)]))
        with made.update_schema() as update:
            update.rename_column("x", "y")  # so that each batch is converted
        made.append(make_file(2).rename_columns(["id", "y"]))
        self._iceberg = catalog.load_table("own.rows")

    def open(self, place: str, port: int) -> Any:
        """Open a table without faults; later requests of its files go to `port`."""
        if place == "iceberg":
            self._iceberg.io = load_file_io(list_iceberg_options(port), self._iceberg.location())
            return self._iceberg
        table = DeltaTable(
            f"s3://tables/{place}", storage_options=list_delta_options(self.server.port)
        )
        table._storage_options = list_delta_options(port)
        return table

    def list_groups(self, place: str, plan: Any) -> dict[tuple[str, int], list[int]]:
        """The ids of each row group, by the path of its file as the table has it."""
        if place not in self._groups:
            self._groups[place] = groups = {}
            below = "" if place == "iceberg" else f"tables/{place}/"
            for path in (file.path for file in plan.files):
                file = pq.ParquetFile(self.server.open().open_input_file(below + path))
                for i in range(file.num_row_groups):
                    ids = file.read_row_group(i, ["id"])["id"].to_pylist()
                    groups[path, i] = [id for id in ids if id in list_ids(place)]
        return self._groups[place]


def write_deleted(server: S3Server, folder: Path) -> None:
    """Write a Delta table with deletion vectors; each file has several row groups."""
    folder.mkdir()
    adds = []
    for i in range(FILES):
        pq.write_table(make_file(i), folder / f"{i}.parquet", row_group_size=GROUP)
        vector = make_deletion_vector(DELETED)
        stats = json.dumps({"numRecords": ROWS})
        adds.append({"path": f"{i}.parquet", "stats": stats, "deletionVector": vector})
    fields = [make_field("id", "long"), make_field("x", "double")]
    write_log(folder, fields, adds, features=["deletionVectors"])
    files = [path for path in folder.rglob("*") if path.is_file()]
    server.put({f"tables/deleted/{path.relative_to(folder)}": path.read_bytes() for path in files})


def list_ids(place: str) -> list[int]:
    deleted = DELETED if place == "deleted" else ()
    return [i for i in range(FILES * ROWS) if i % ROWS not in deleted]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    server = S3Server()
    try:
        yield Tables(server, tmp_path_factory.mktemp("tables"))
    finally:
        server.kill()


class Read(NamedTuple):
    """What a rank read, and with which error it ended."""

    ids: list[int]
    batches: int
    error: BaseException | None
    loader: Any


def read(make: Any) -> Read:
    ids: list[int] = []
    batches, loader = 0, None
    try:
        loader = make()
        for batch in loader:
            ids += batch["id"][: loader.valid_rows].tolist()
            batches += 1
    except (OSError, ValueError) as error:
        return Read(ids, batches, error, loader)
    return Read(ids, batches, None, loader)


def check_clear(error: BaseException | None) -> None:
    """An error names the file and the tries, and has no secret."""
    text = "".join([str(error), *getattr(error, "__notes__", ())])
    assert "failed 2 times" in text
    assert ".parquet" in text or "table" in text
    assert KEYS["secret_key"] not in text


def choose(random: random.Random) -> dict[str, Any]:
    order: dict[str, Any] = random.choice(
        [{}, {"shuffle": True, "seed": 3}, {"shuffle": True, "splits": 6}, {"buffer_size": 30}]
    )
    return {**order, "shuffle": order.get("shuffle", "buffer_size" in order)}


def draw_schedule(random: random.Random) -> Schedule:
    faults = random.choice([FAULTS, ("delay", "reset"), ("truncate", "500"), ("503", "429")])
    return Schedule(random.randrange(2**32), random.choice([0.05, 0.15, 0.3]), faults)


def test_random_faults_of_tables(tables: Tables, tmp_path: Path) -> None:
    """Alone and in ranks, with and without a plan and a cache: the order without faults."""
    plans: dict[str, Any] = {}
    expected: dict[Any, list[int]] = {}

    def check(random: random.Random) -> None:
        place, order = random.choice(PLACES), choose(random)
        world = random.choice([1, 1, 2, 3])
        options: dict[str, Any] = {"framework": "numpy", **order}
        size = {"global_batch_size": 12}
        plain = tables.open(place, tables.server.port)
        if place not in plans:
            plans[place] = arrowdl.Loader(plain, **group(**size)).plan()
        if random.random() < 0.3:
            options |= {"cache": tmp_path / str(random.random()), "cache_bytes": 10**6}
        if world > 1 or random.random() < 0.5:
            options["plan"] = plans[place]
        options["retries"] = random.choice([TWICE, PATIENT, PATIENT])
        ranks = [{"rank": rank, "world_size": world} for rank in range(world)]
        for own in ranks:
            key = (place, str(order), *own.values())
            if key not in expected:
                expected[key] = read(
                    lambda own=own: arrowdl.Loader(
                        plain, framework="numpy", **group(**size, **order, **own)
                    )
                ).ids
        found = sorted(i for own in ranks for i in expected[place, str(order), *own.values()])
        assert found == list_ids(place)
        with run_proxy(tables.server.port) as proxy:
            proxy.schedule, proxy.answers = draw_schedule(random), tables.answers
            table = tables.open(place, proxy.server_port)
            for own in ranks:
                got = read(lambda own=own: arrowdl.Loader(table, **group(**size, **options, **own)))
                known = expected[place, str(order), *own.values()]
                if got.error is None:
                    assert got.ids == known
                else:
                    assert options["retries"] is TWICE, got.error
                    check_clear(got.error)
                    assert got.ids == known[: len(got.ids)]

    check_cases(check, 20)


def test_random_faults_that_are_skipped(tables: Tables) -> None:
    """Each row is read or named once, and ranks have equally many batches."""

    def check(random: random.Random) -> None:
        place, world = random.choice(PLACES), random.choice([1, 2, 3])
        plan = arrowdl.Loader(tables.open(place, tables.server.port), 12).plan()
        options: dict[str, Any] = {
            **choose(random),
            **{"framework": "numpy", "on_error": "skip", "max_skipped_rows": 10**6},
            **{"plan": plan, "global_batch_size": 12, "retries": TWICE},
        }
        with run_proxy(tables.server.port) as proxy:
            proxy.schedule = Schedule(random.randrange(2**32), 0.5, ("500", "reset", "truncate"))
            proxy.answers = tables.answers
            table = tables.open(place, proxy.server_port)
            ranks = [
                read(
                    lambda rank=rank: arrowdl.Loader(
                        table, **group(**options, rank=rank, world_size=world)
                    )
                )
                for rank in range(world)
            ]
        assert [own.error for own in ranks] == [None] * world
        assert len({own.batches for own in ranks}) == 1
        ids = [i for own in ranks for i in own.ids]
        assert len(ids) == len(set(ids))
        assert set(ids) <= set(list_ids(place))
        stats = [own.loader.stats() for own in ranks]
        skipped = sum(own.skipped_rows for own in stats)
        assert len(ids) + skipped == len(list_ids(place))
        named = {(e.path, e.row_group) for own in stats for e in own.skipped}
        groups = tables.list_groups(place, plan)
        lost = {i for i in list_ids(place) if i not in ids}
        assert lost <= {i for group in named for i in groups[group]}
        # Otherwise another rank, or another lane of the shuffle, may have read the rest of a group.
        if world == 1 and "buffer_size" not in options:
            assert lost == {i for group in named for i in groups[group]}
            ranges = [each for own in stats for e in own.skipped for each in e.ranges]
            assert sum(stop - start for start, stop in ranges) == skipped

    check_cases(check, 12)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("is_planned", [False, True])
def test_a_store_that_is_gone_for_good(tables: Tables, place: str, is_planned: bool) -> None:
    """In mid-epoch, and before a Loader is made: an error, soon, and its state goes on."""
    plain = tables.open(place, tables.server.port)
    options: dict[str, Any] = {"framework": "numpy", "retries": TWICE, "prefetch": 0}
    plan = {"plan": arrowdl.Loader(plain, 6).plan()} if is_planned else {}
    known = read(lambda: arrowdl.Loader(plain, 6, framework="numpy")).ids
    with run_proxy(tables.server.port) as proxy:
        table = tables.open(place, proxy.server_port)
        loader = arrowdl.Loader(table, 6, **group(**options, **plan))
        batches = iter(loader)
        ids: list[int] = []
        error = None
        proxy.schedule = Schedule(0, 1.0, ("reset",))
        try:
            for batch in batches:
                ids += batch["id"].tolist()
        except OSError as caught:
            error = caught
        check_clear(error)
        assert ids == known[: len(ids)]
        state = loader.state_dict()
        got = read(
            lambda: arrowdl.Loader(tables.open(place, proxy.server_port), 6, **group(**options))
        )
        check_clear(got.error)
    again = arrowdl.Loader(
        tables.open(place, tables.server.port), 6, framework="numpy", **group(**plan)
    )
    again.load_state_dict(state)
    ids += [i for batch in again for i in batch["id"].tolist()]
    assert ids == known


def test_the_web_is_gone_for_good(tables: Tables) -> None:
    """At a request that is drawn: all rows before it in their order, and an error with the file."""
    tables.server.put({f"web/{path}": data for path, data in PARQUET.items()})
    known = list(range(len(PARQUET) * ROWS))

    def check(random: random.Random) -> None:
        with run_proxy(tables.server.port) as proxy:
            limit, lock, seen = random.randrange(60), threading.Lock(), [0]
            fault = random.choice(["reset", "500", "503", "truncate"])

            class Ending(Schedule):
                def draw(self) -> str:
                    with lock:
                        seen[0] += 1
                        return fault if seen[0] > limit else ""

            proxy.schedule = Ending(0, 0.0)
            base = f"http://127.0.0.1:{proxy.server_port}/web"
            urls = [f"{base}/{path}" for path in PARQUET]
            got = read(
                lambda: arrowdl.Loader(
                    urls,
                    16,
                    framework="numpy",
                    columns=["id"],
                    storage=arrowdl.Storage(retries=TWICE),
                )
            )
            assert got.ids == known[: len(got.ids)]
            if got.error is None:
                assert got.ids == known
                assert seen[0] <= limit or fault == "truncate", "nothing of HEAD is cut"
            else:
                check_clear(got.error)

    check_cases(check, 12)
