"""Rows of tables with versions, as a Loader reads them, against those of the table's library.

Each table has a column ``id``, whose values are unique.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable
from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl.__main__ import main
from arrowdl._commands.contender import Task, measure
from arrowdl.loader import FilePlan
from arrowdl.loader._open.source import open_source
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.data_files import DataFilesSource

from helpers.options import group

Row = dict[str, Any]


def read_rows(source: Any, columns: list[str] | None = None, filter: Any = None) -> list[Row]:
    """Return the rows that a Loader reads, in its order; of a table with a plan, by it too."""
    opened = open_source(source, Request(columns, filter))
    rows = pa.table(opened.read(range(len(opened.units)))).to_pylist()
    assert len(rows) == opened.num_rows
    if isinstance(opened, DataFilesSource):
        with tempfile.TemporaryDirectory() as folder:
            opened.files.make_plan().save(f"{folder}/plan.json")
            plan = FilePlan.load(f"{folder}/plan.json")
        planned = open_source(source, Request(columns, filter, plan=plan))
        assert (planned.describe(), planned.files.make_plan()) == (opened.describe(), plan)
        assert pa.table(planned.read(range(len(planned.units)))).to_pylist() == rows
    return rows


def sort_rows(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


def make_loader(source: Any, batch_size: int = 7, **options: Any) -> arrowdl.Loader:
    return arrowdl.Loader(source, batch_size, columns=["id"], framework="numpy", **group(**options))


def read_ids(loader: Any, batches: int | None = None) -> list[int]:
    """Return the ids of the next batches, without rows that belong to another rank."""
    ids: list[int] = []
    for batch in itertools.islice(loader, batches):
        valid = getattr(loader, "valid_rows", None)
        ids += batch["id"].tolist()[:valid]
    return ids


def check_epochs(source: Any, expected: list[int]) -> None:
    """Read epochs in order, shuffled, by ranks, and resumed: each row once."""
    ids = read_ids(make_loader(source))
    assert sorted(ids) == sorted(expected)
    assert read_ids(make_loader(source)) == ids, "the order is the same each time"
    shuffled = make_loader(source, shuffle=True, seed=3)
    epochs = [read_ids(shuffled) for _ in range(2)]
    assert all(sorted(epoch) == sorted(expected) for epoch in epochs)
    assert len(expected) < 20 or len({*map(tuple, epochs), tuple(ids)}) == 3
    for shuffle in (False, True):
        ranks = [
            make_loader(source, 5, shuffle=shuffle, rank=rank, world_size=3) for rank in range(3)
        ]
        assert sorted(itertools.chain(*map(read_ids, ranks))) == sorted(expected)
    first = make_loader(source, shuffle=True, seed=3)
    before = read_ids(first, 2)
    state = json.loads(json.dumps(first.state_dict()))
    again = make_loader(source, shuffle=True, seed=3)
    again.load_state_dict(state)
    assert before + read_ids(again) == epochs[0]


def check_versions(
    one: Callable[[], Any], other: Callable[[], Any], one_name: str, other_name: str
) -> None:
    """A state of one version goes on with that version only; an error names both."""
    loader = make_loader(one(), 2)
    read_ids(loader, 1)
    state = loader.state_dict()
    assert one_name in state["snapshot"]
    make_loader(one(), 2).load_state_dict(state)
    with pytest.raises(ValueError, match=f"{one_name}.*{other_name}"):
        make_loader(other(), 2).load_state_dict(state)


def check_inspected(folder: str, rows: int, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the commands find the table of a folder by themselves."""
    assert main(["inspect", folder, "--json", "--framework", "numpy"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == rows
    assert found["version"].startswith(kind)
    columns = {column["name"]: column for column in found["columns"]}
    assert columns["id"]["tensor"] == {"dtype": "int64", "shape": [None], "nulls": None}
    for who in ("Loader", "pyarrow scan"):
        options = {"batch_size": 8, "columns": ["id"], "framework": "numpy"}
        assert measure(Task(who, [folder], None, options, 60.0)).rows >= rows
