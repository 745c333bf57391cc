"""The code of docs/guides/table-formats.rst that needs libraries of tables."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi as adbc
import datasets
import lance
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from helpers.tables import read_ids
from pyiceberg.catalog.sql import SqlCatalog

PAGE = Path(__file__).parents[2] / "docs/guides/table-formats.rst"
ROWS = pa.table({"id": range(40), "x": [i / 2 for i in range(40)]})


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for start in range(0, 40, 10):
        write_deltalake("rows.delta", ROWS.slice(start, 10), mode="append")
        lance.write_dataset(ROWS.slice(start, 10), "rows.lance", mode="append")
    catalog = SqlCatalog("default", uri="sqlite:///catalog.db", warehouse="warehouse")
    catalog.create_namespace("training")
    catalog.create_table("training.rows", schema=ROWS.schema).append(ROWS)
    with adbc.connect("rows.db") as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("rows", ROWS)
        connection.commit()

    def load_dataset(name: str, *, split: str, revision: str) -> Any:
        return datasets.Dataset(ROWS)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    names: dict[str, Any] = {}
    counts: list[int] = []
    for block in re.findall(r"code-block:: text\n\n((?: {3}.*\n|\n)+)", PAGE.read_text()):
        for statement in textwrap.dedent(block).splitlines():
            exec(statement, names)
            if statement.startswith("loader ="):
                counts.append(len(set(read_ids(names["loader"]))))
    names["connection"].close()
    catalog.close()
    names["catalog"].close()
    assert counts == [40, 40, 40, 20, 40, 40]  # Lance at version 2
