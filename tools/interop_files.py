"""The questions that tools/interop.py asks a writer of files: what a Loader reads of its file.

Each file has the columns of `interop_kinds.make_table`. What the Loader gives, in order, shuffled,
filtered, masked, filled, by numbers and of chosen columns, is compared with what the writer reads.
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import arrowdl
import interop_kinds
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from interop_kinds import KINDS, make_table
from interop_values import (
    fill,
    is_interval,
    is_text,
    list_intervals,
    list_plain,
    read_tensor,
    split_fields,
)
from interop_writers import WRITERS, File, Writer

Question = tuple[str, str, Callable[[], str]]
Columns = dict[str, Any]

BATCH = 350
NO_ROWS = "no rows"
# What is asked of a writer's other files, which differ in encodings.
ENCODED = [
    *("int8", "int32", "int64", "uint64", "int64, far apart", "float16", "float32", "float64"),
    *("bool", "string", "string, distinct", "binary", "fixed_size_binary[5]", "timestamp[us]"),
    *("timestamp[ns, tz=UTC]", "decimal128(9, 2)", "decimal128(38, 10)", "list<int64>"),
    *("list<string>", "fixed_size_list<float>[3]", "struct", "dictionary<int32, string>", NO_ROWS),
]
SHOWN = 60  # characters of a value that differs


class Adaptor:
    """A writer, by the expressions of its row."""

    def __init__(self, row: Writer) -> None:
        self.folder = tempfile.mkdtemp()
        self._numbers = itertools.count()
        self._names = {"np": np, "pa": pa, "folder": self.folder}
        self._names["x"] = importlib.import_module(row.module)
        exec(row.setup, self._names)

    def evaluate(self, expression: str, **names: Any) -> Any:
        return eval(expression, {**self._names, **names})

    def write(self, file: File, table: Any) -> str:
        """Write a table; return the path."""
        path = f"{self.folder}/{next(self._numbers)}{file.suffix}"
        self.evaluate(file.write, t=table, path=path)
        return path

    def read(self, file: File, path: str) -> Any:
        """The writer's own reading, as a pyarrow table."""
        given = self.evaluate(file.read, path=path)
        if isinstance(given, pa.Table):
            return given
        return pa.RecordBatchReader.from_stream(given).read_all()

    def open(self, file: File, path: str) -> Any:
        """What a Loader takes."""
        return self.evaluate(file.open, path=path)

    def clean(self) -> None:
        for path in Path(self.folder).iterdir():
            if path.name[0].isdigit():
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def ask(name: str) -> Iterator[Question]:
    """Yield the file, the kind of columns and a function that returns the answer."""
    logging.getLogger("arrowdl.loader").setLevel(logging.ERROR)  # of filters that keep nothing
    adaptor = Adaptor(WRITERS[name])
    interop_kinds.ROWS = WRITERS[name].rows
    wanted = os.environ.get("ARROWDL_INTEROP_KINDS", "")
    suffixes = set()
    for label, file in WRITERS[name].files.items():
        is_whole = file.suffix not in suffixes or label in WRITERS[name].whole
        suffixes.add(file.suffix)
        kinds = [*KINDS, NO_ROWS] if is_whole else ENCODED
        for kind in wanted.split(";") if wanted else kinds:
            yield label, kind, lambda file=file, kind=kind: _answer(adaptor, file, kind)


def _answer(adaptor: Adaptor, file: File, kind: str) -> str:
    try:
        return _check(adaptor, file, kind)
    finally:
        adaptor.clean()


def _check(adaptor: Adaptor, file: File, kind: str) -> str:
    table = make_table("int64" if kind == NO_ROWS else kind)
    if kind == NO_ROWS:
        table = table.slice(0, 0)
    try:
        path = adaptor.write(file, table)
    except BaseException as error:  # a panic of Rust
        return f"not written: {_describe(error)}"
    notes: list[str] = []
    own = _read_own(adaptor, file, path, notes)
    if own is None:
        own = table
    else:
        wanted = list_columns(table, own.schema)
        notes += [f"the writer changes {text}" for text in compare(list_columns(own), wanted)[:1]]
    is_parquet = file.suffix in (".parquet", "") and file.open == "path"
    checks = Checks(lambda: adaptor.open(file, path), own, file.is_stream, is_parquet)
    checks.run()
    if kind == NO_ROWS and file.suffix and checks.schema is not None:
        checks.read_beside(path, adaptor.write(file, make_table("int64")))
    words = [str(checks.schema.field("some").type)] if checks.schema is not None else []
    return "; ".join([*words, *checks.problems, *notes])


def _read_own(adaptor: Adaptor, file: File, path: str, notes: list[str]) -> Any:
    try:
        return adaptor.read(file, path)
    except BaseException as error:
        notes.append(f"its own reading: {_describe(error)}")
    try:
        return ds.dataset(path, format="ipc" if "arrow" in file.suffix else "parquet").to_table()
    except Exception:
        return None


def _describe(error: BaseException) -> str:
    lines = [*str(error).splitlines(), *getattr(error, "__notes__", ())]
    return f"{type(error).__name__}: {' | '.join(line for line in lines if line.strip())[:400]}"


# ---------------------------------------------------------------------------


def list_columns(table: Any, like: Any = None) -> Columns:
    """Plain values of the columns of a table, in the order of the ids.

    Times are counts of their own unit where the schema `like` has integers, which have none.
    """
    columns = {}
    for name in table.column_names:
        bare = (
            like is not None and name in like.names and pa.types.is_integer(like.field(name).type)
        )
        columns[name] = list_plain(table.column(name), bare=bare)
    return sort(columns)


def sort(columns: Columns) -> Columns:
    if "id" not in columns:
        return columns
    order = sorted(range(len(columns["id"])), key=columns["id"].__getitem__)
    return {name: _take(values, order) for name, values in columns.items()}


def _take(values: Any, order: list[int]) -> Any:
    if isinstance(values, Mapping):
        return {name: _take(field, order) for name, field in values.items()}
    return [values[i] for i in order]


def compare(seen: Any, wanted: Any, name: str = "") -> list[str]:
    """Say where columns differ."""
    if isinstance(wanted, Mapping):
        if not isinstance(seen, Mapping) or set(seen) != set(wanted):
            return [f"{name}: fields {list(seen)} for {list(wanted)}"]
        return [
            text
            for field in wanted
            for text in compare(seen[field], wanted[field], f"{name}.{field}".lstrip("."))
        ]
    if seen == wanted:
        return []
    if len(seen) != len(wanted):
        return [f"{name}: {len(seen)} rows for {len(wanted)}"]
    rows = [i for i, (a, b) in enumerate(zip(seen, wanted, strict=True)) if a != b]
    ours, theirs = (repr(values[rows[0]])[:SHOWN] for values in (seen, wanted))
    return [f"{name}: {len(rows)} values, row {rows[0]} is {ours} for {theirs}"]


class Checks:
    """What a Loader reads of a source, in all ways, and where it differs from what is wanted."""

    def __init__(
        self, open: Callable[[], Any], own: Any, is_stream: bool, is_parquet: bool
    ) -> None:
        self._open = open
        self._has_decoder = is_parquet and importlib.util.find_spec("polars") is not None
        self._is_stream = is_stream
        self._own = own  # the writer's reading
        self.schema: Any = None
        self.problems: list[str] = []
        self._rows: Any = None  # what the Loader reads, in order
        self._codes: dict[str, Any] = {}

    def run(self) -> None:
        try:
            self._read_arrow()
        except Exception as error:
            self.problems.append(f"error Loader: {_describe(error)}")
            return
        seen = list_columns(self._rows, self._own.schema)
        plain = list_columns(self._own, self.schema) | self._replace_storage(seen)
        # Some writers know no null structs: their fields are null, as in tensors.
        found = compare(self._split_structs(seen), self._split_structs(plain))
        self.problems += [f"WRONG Loader: {text}" for text in found]
        wanted = {
            name: split_fields(plain[name], self.schema.field(name).type)
            for name in self.schema.names
            if name in plain
        }
        masked = {"nulls": "mask"}
        if not self._check("masked", lambda: self._read(**masked), wanted):
            masked = {"nulls": "fill"}  # no mask has the nulls of the items of lists
            if not self.problems[-1].startswith("no mask"):
                return
        filled = {
            name: fill(values, self.schema.field(name).type, self._find_code(name))
            for name, values in wanted.items()
        }
        self._check("filled", lambda: self._read(nulls="fill"), filled)
        if masked["nulls"] == "fill":
            wanted = filled
        some = {name: wanted[name] for name in ("some", "id")}
        columns = {"columns": list(some), "shuffle": arrowdl.Shuffle(300)}
        self._check("of columns, shuffled by parts", lambda: self._read(**columns, **masked), some)
        if self._is_stream:
            return
        self._check("shuffled", lambda: self._read(shuffle=True, **masked), wanted)
        self._check_numbers(wanted, masked)
        if self._has_decoder and _is_number(self.schema.field("some")):
            self._check("decoder", self._read_by_polars, wanted)
        for expression in self._list_filters():
            self._check_filter(expression)

    def _split_structs(self, columns: Columns) -> Columns:
        types = {name: self.schema.field(name).type for name in self.schema.names}
        return {
            name: split_fields(values, types[name]) if pa.types.is_struct(types[name]) else values
            for name, values in columns.items()
        }

    def _replace_storage(self, seen: Columns) -> Columns:
        """Return values for columns that have only bytes of what the writer reads, such as JSON."""
        replaced: Columns = {}
        for name in self._own.column_names:
            type, own = self.schema.field(name).type, self._own.schema.field(name).type
            if is_interval(type) and not is_interval(own):
                plain = list_plain(self._own.column(name))
                replaced[name] = seen[name] if list_intervals(seen[name]) == plain else plain
            elif is_text(type) and pa.types.is_nested(own):
                self.problems.append(f"{name} is {own} in its own reading")
                replaced[name] = seen[name]
        return replaced

    def read_beside(self, path: str, other: str) -> None:
        """Check that a file without rows goes with one that has rows."""
        self._open = lambda: [path, other]
        self._check(
            "beside a file with rows",
            lambda: {"id": self._read(columns=["id"])["id"]},
            {"id": list(range(len(make_table("int64"))))},
        )

    def _check(self, how: str, read: Callable[[], Columns], wanted: Columns) -> bool:
        try:
            found = [f"WRONG {how}: {text}" for text in compare(read(), wanted)]
        except Exception as error:
            begin = f"error {how}"
            if how == "masked" and isinstance(error, BufferError):
                begin = "no mask" if "elements of the lists" in str(error) else "no tensor"
            found = [f"{begin}: {_describe(error)}"]
        self.problems += found
        return not found

    def _read_arrow(self) -> None:
        """Read the columns as `transform_arrow` gets them."""
        from arrowdl.loader._look.batch_schema import _find_columns

        batches = []

        def note(batch: Any) -> Any:
            batches.append(batch)
            return batch.select(["id"])

        loader = arrowdl.Loader(self._open(), BATCH, framework="numpy", transform_arrow=note)
        ids = [batch["id"] for batch in loader]
        source = loader._pipeline.source
        schema = batches[0].schema if batches else pa.schema(_find_columns(source, None))
        table = pa.Table.from_batches(batches, schema)
        self.schema = table.schema
        self._rows = table
        if (np.concatenate(ids).tolist() if ids else []) != table["id"].to_pylist():
            raise ValueError("the batches have other rows than transform_arrow")

    def _options(self, names: list[str]) -> dict[str, Any]:
        decimals = {
            name: "float64" for name in names if pa.types.is_decimal(self.schema.field(name).type)
        }
        return {"framework": "numpy", "ragged": "offsets", "dtype": decimals or None}

    def _read(self, columns: list[str] | None = None, **options: Any) -> Columns:
        loader = self._load(columns, **options)
        return self._join(list(loader), columns)

    def _load(self, columns: list[str] | None = None, **options: Any) -> Any:
        names = columns or self.schema.names
        options = {**self._options(names), "columns": columns, **options}
        loader = arrowdl.Loader(self._open(), BATCH, **options)
        for name in names:
            if pa.types.is_dictionary(self.schema.field(name).type):
                self._codes[name] = list_plain(loader.vocabulary(name))
        return loader

    def _join(self, batches: list[Any], columns: list[str] | None) -> Columns:
        parts: list[Columns] = [
            {
                name: read_tensor(value, self.schema.field(name).type, self._codes.get(name))
                for name, value in batch.items()
            }
            for batch in batches
        ]
        if not parts:
            types = {name: self.schema.field(name).type for name in columns or self.schema.names}
            return {name: split_fields([], type) for name, type in types.items()}
        return sort({name: _concatenate([part[name] for part in parts]) for name in parts[0]})

    def _find_code(self, name: str) -> Any:
        codes = self._codes.get(name)
        return codes[0] if codes else None

    def _check_numbers(self, wanted: Columns, masked: dict[str, str]) -> None:
        """Check rows of a map-style dataset."""
        count = len(wanted["id"])
        numbers = np.random.default_rng(1).permutation(count)[:200].tolist()

        def read() -> Columns:
            rows = self._load(**masked).map_dataset()
            return self._join([rows._read(numbers)[0]] if numbers else [], None)

        ids = self._rows["id"].take(pa.array(numbers, pa.int64())).to_pylist()
        places = {row: i for i, row in enumerate(wanted["id"])}
        self._check("map_dataset", read, _take(wanted, [places[row] for row in sorted(ids)]))

    def _read_by_polars(self) -> Columns:
        from arrowdl.loader._parquet import polars_decoder

        polars_decoder._FEWEST_VALUES, polars_decoder._VALUES_OF_FOOTER = 1, 0
        return self._read(nulls="mask", storage=arrowdl.Storage(decoder="polars"))

    def _list_filters(self) -> Iterator[Any]:
        field = ds.field("id")
        yield (field > 300) & (field < 1100) & ds.field("some").is_valid()
        try:
            column = self._rows["some"].drop_null()
            order = pc.sort_indices(column).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
            return
        if pa.types.is_floating(column.type):
            order = [i for i in order if not np.isnan(float(column[i].as_py()))]
        if not order:
            return
        low, middle, high = (column[order[i]] for i in (0, len(order) // 2, -1))
        some, full = ds.field("some"), ds.field("full")
        yield (some == high) | ds.field("none").is_valid()
        yield some >= middle
        yield full == low
        yield ds.field("few").isin(column.take(order[-1:]).combine_chunks())

    def _check_filter(self, expression: Any) -> None:
        try:
            wanted = sorted(self._rows.filter(expression)["id"].to_pylist())
        except Exception:  # pyarrow has no comparison of this type
            return
        self._check(
            f"filter={expression}",
            lambda: self._read(columns=["id"], filter=expression),
            {"id": wanted},
        )


def _is_number(field: Any) -> bool:
    """Whether `decoder="polars"` decodes a column."""
    is_ = pa.types
    return bool(
        is_.is_integer(field.type) or is_.is_floating(field.type) or is_.is_boolean(field.type)
    )


def _concatenate(parts: list[Any]) -> Any:
    if isinstance(parts[0], Mapping):
        return {name: _concatenate([part[name] for part in parts]) for name in parts[0]}
    return [value for part in parts for value in part]
