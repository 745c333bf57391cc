"""Writes docs/concepts/protocols.csv: the protocol by which arrowdl reads each library's data.

    list_protocols.py [library ...]

The rows are found by asking the libraries that are named, all without a name, as far as they are
installed here; the other rows stay. tests/python/protocols/test_protocols.py and
tests/peers/test_modin.py hold the file to it.
"""

from __future__ import annotations

import csv
import importlib
import importlib.metadata
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import arrowdl

FILE = Path(__file__).resolve().parents[1] / "docs/concepts/protocols.csv"
HEADER = ["Library", "Object", "Offers", "Taken by"]

PROTOCOLS = [
    "__arrow_c_device_array__",
    "__arrow_c_array__",
    "__arrow_c_device_stream__",
    "__arrow_c_stream__",
    "__dataframe__",
]

COLUMNS = {"x": [1, 2]}


def _arrow(kind: str) -> Any:
    import pyarrow as pa

    table = pa.table(COLUMNS)
    return {
        "Table": table,
        "RecordBatch": table.to_batches()[0],
        "RecordBatchReader": table.to_reader(),
        "ChunkedArray": table["x"],
        "Array": table["x"].chunk(0),
    }[kind]


# Library and object: a function that makes the object, given the library's module.
PRODUCERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("pyarrow", "Table"): lambda _: _arrow("Table"),
    ("pyarrow", "RecordBatch"): lambda _: _arrow("RecordBatch"),
    ("pyarrow", "RecordBatchReader"): lambda _: _arrow("RecordBatchReader"),
    ("pyarrow", "Array"): lambda _: _arrow("Array"),
    ("pyarrow", "ChunkedArray"): lambda _: _arrow("ChunkedArray"),
    ("polars", "DataFrame"): lambda polars: polars.DataFrame(COLUMNS),
    ("polars", "Series"): lambda polars: polars.Series(COLUMNS["x"]),
    ("pandas", "DataFrame"): lambda pandas: pandas.DataFrame(COLUMNS),
    ("pandas", "Series"): lambda pandas: pandas.Series(COLUMNS["x"]),
    ("modin", "DataFrame"): lambda _: importlib.import_module("modin.pandas").DataFrame(COLUMNS),
    ("duckdb", "relation"): lambda duckdb: duckdb.sql("SELECT 1 AS x"),
    ("nanoarrow", "Array"): lambda nanoarrow: nanoarrow.Array([1, 2], nanoarrow.int64()),
    ("nanoarrow", "ArrayStream"): lambda nanoarrow: nanoarrow.ArrayStream(_arrow("Table")),
    ("arro3-core", "Table"): lambda arro3: arro3.Table(_arrow("Table")),
    ("arro3-core", "Array"): lambda arro3: arro3.Array(_arrow("Array")),
}
MODULES = {"arro3-core": "arro3.core"}


def find_taken(producer: Any) -> str:
    """Return the protocol that `from_arrow` calls on `producer`, seen by a proxy object."""
    asked: list[str] = []

    def pass_on(name: str) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> Any:
            asked.append(name)
            return getattr(producer, name)(*args, **options)

        return method

    offered = {name: pass_on(name) for name in PROTOCOLS if hasattr(producer, name)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrowdl.from_arrow(type("Between", (), offered)())
    return asked[0]


def find_rows(libraries: Sequence[str] = ()) -> dict[tuple[str, str], list[str]]:
    """Return the rows of the installed libraries, by library and object."""
    rows = {}
    for (library, kind), make in PRODUCERS.items():
        if libraries and library not in libraries:
            continue
        try:
            module = importlib.import_module(MODULES.get(library, library))
        except ImportError:
            continue
        producer = make(module)
        offered = [name for name in PROTOCOLS if hasattr(producer, name)]
        version = importlib.metadata.version(library)
        cells = [f"{library} {version}", kind, ", ".join(map(_code, offered))]
        rows[library, kind] = [*cells, _code(find_taken(producer))]
    return rows


def _code(name: str) -> str:
    return f"``{name}``"


def read_rows() -> dict[tuple[str, str], list[str]]:
    """Return the rows of the file, by library and object."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="") as file:
        return {(row[0].split()[0], row[1]): row for row in list(csv.reader(file))[1:]}


def main() -> None:
    rows = read_rows() | find_rows(sys.argv[1:])
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(rows[key] for key in PRODUCERS if key in rows)


if __name__ == "__main__":
    main()
