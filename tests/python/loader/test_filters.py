"""`filter=`: it keeps the rows of `pyarrow.Table.filter`, and reads no row groups without any."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import arrowdl
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._schema.bounds import find_bounds
from arrowdl.loader._schema.filters import describe_filter, show_filter
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField
from arrowdl.loader._tables.version import DataFile, TableVersion
from helpers.options import group

NAN = float("nan")
X, I = ds.field("x"), ds.field("i")  # noqa: E741
TABLE = pa.table(
    {
        "i": range(6),
        "x": [3.0, NAN, 3.0, 1.0, 2.0, NAN],
        "s": [{"x": x} for x in (3.0, NAN, 3.0, 1.0, 2.0, NAN)],
    }
)


def read(source: Any, column: str = "i", **options: Any) -> list[int]:
    loader = arrowdl.Loader(source, 2, columns=[column], framework="numpy", **group(**options))
    batches = list(loader)
    assert all(list(batch) == [column] for batch in batches)
    return [row for batch in batches for row in batch[column].tolist()]


def read_by_numbers(source: Any, **options: Any) -> list[int]:
    loader = arrowdl.Loader(source, 2, columns=["i"], framework="numpy", **group(**options))
    rows = loader.map_dataset()
    return rows[list(range(len(rows)))]["i"].tolist() if len(rows) else []


def read_by_plan(source: Any, **options: Any) -> list[int]:
    plan = arrowdl.Loader(source, 2, columns=["i"], framework="numpy", **group(**options)).plan()
    assert plan.num_rows == len(read(source, plan=plan, **options))
    whole = arrowdl.Loader(source, 2, framework="numpy").plan()
    return read(source, plan=whole, **options)


def read_version(source: Any, filter: Any) -> list[int]:
    fields = [TableField(own.name, own.type, own.name) for own in TABLE.schema]
    version = TableVersion("T", "table 1", fields, [DataFile(str(source))], fs.LocalFileSystem())
    opened = DataFilesSource(version, Request(["i"], filter))
    return pa.table(opened.read(range(len(opened.units))))["i"].to_pylist()


WAYS: dict[str, Callable[..., list[int]]] = {
    "path": read,
    "polars": lambda path, filter: read(path, filter=filter, decoder="polars"),
    "dataset": lambda path, filter: read(ds.dataset(path), filter=filter),
    "dataset with a filter": lambda path, filter: read(ds.dataset(path).filter(filter)),
    "datasets": lambda path, filter: read(ds.dataset([ds.dataset(path)]), filter=filter),
    "map_dataset": read_by_numbers,
    "plan": read_by_plan,
    "table version": read_version,
    "file object": lambda path, filter: read(io.BytesIO(path.read_bytes()), filter=filter),
    "workers": lambda path, filter: read(path, filter=filter, num_workers=1),
}


def list_nan_filters(x: Any) -> list[Any]:
    return [
        pc.is_nan(x),
        x != 3.0,
        ~(x < 10),
        ~(x == 3.0),
        x != x,
        ~x.isin([3.0]),
        x.isin([NAN]),
        ~pc.is_finite(x),
        x.is_null(nan_is_null=True),
        pc.if_else(x < 10, False, True),
        (I >= 0) & ~(x < 10),
        (I < 0) | pc.is_nan(x),
    ]


@pytest.mark.parametrize("way", WAYS)
def test_rows_with_nan_are_kept(way: str, tmp_path: Path) -> None:
    """Statistics leave NaN out."""
    pq.write_table(TABLE, path := tmp_path / "a.parquet", row_group_size=3)
    filters = [*list_nan_filters(X), *list_nan_filters(ds.field("s", "x"))]
    for filter in filters[:2] if way == "workers" else filters:
        expected = TABLE.filter(filter)["i"].to_pylist()
        assert WAYS[way](path, filter=filter) == expected, str(filter)


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()])
def test_zeros_of_both_signs_in_sets(type: pa.DataType, tmp_path: Path) -> None:
    """A row group of zeros has the bounds -0.0 and 0.0."""
    values = [0.0] * 10 + [1.0] * 10 + [2.0] * 10 + [-0.0] * 10
    table = pa.table({"i": range(40), "x": pa.array(values, type)})
    pq.write_table(table, path := tmp_path / "a.parquet", row_group_size=10)
    for values in ([0.0, 2.0], [0.0], [-0.0], [2.0, -0.0, None]):
        for filter in (X.isin(values), ~X.isin(values)):
            assert read(path, filter=filter) == table.filter(filter)["i"].to_pylist(), str(filter)


def test_ranges_of_partition_expressions_say_nothing_of_nan(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in "ab"]
    for path in paths:
        pq.write_table(TABLE, path)
    format, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    says = [(X >= 1.0) & (X <= 3.0) & (ds.field("p") == 1), (X <= 3.0) & (ds.field("p") == 2)]
    fragments = [
        format.make_fragment(path, local, own) for path, own in zip(paths, says, strict=True)
    ]
    schema = TABLE.schema.append(pa.field("p", pa.int64()))
    dataset = ds.FileSystemDataset(fragments, schema, format, local)
    one = ~(X < 10) & (ds.field("p") == 1)
    assert read(dataset, filter=one) == [1, 5]
    assert read(dataset.filter(one)) == [1, 5]
    assert read_by_plan(dataset, filter=one) == [1, 5]
    assert read(dataset, "p", filter=~(X < 10)) == [1, 1, 2, 2]
    assert read(dataset, filter=X > 7) == []


def test_files_of_zeros_of_both_signs(tmp_path: Path) -> None:
    """pyarrow takes their partition expressions for one."""
    format, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragments, files = [], []
    for i, zero in enumerate((-0.0, 0.0)):
        path = str(tmp_path / f"{i}.parquet")
        pq.write_table(pa.table({"i": [i]}), path)
        fragments.append(format.make_fragment(path, local, zero == X))
        files.append(DataFile(path, {"x": zero}))
    schema = pa.schema([("i", pa.int64()), ("x", pa.float64())])
    dataset = ds.FileSystemDataset(fragments, schema, format, local)
    fields = [TableField(own.name, own.type, own.name) for own in schema]
    version = TableVersion("T", "table 1", fields, files, local)
    for filter, rows in ((X.isin([0.0]), [1]), (X.isin([-0.0]), [0]), (X == 0.0, [0, 1])):
        assert read(dataset, filter=filter) == rows
        source = DataFilesSource(version, Request(["i"], filter))
        found = pa.table(source.read(range(len(source.units))))
        assert found["i"].to_pylist() == rows


# ---- views


VIEWS = pa.table(
    {
        "i": range(4),
        "s": pa.array(["a", "b", None, "more than twelve bytes"], pa.string_view()),
        "b": pa.array([b"a", None, b"b", b"\xff" * 20], pa.binary_view()),
        "l": pa.array([["a"], None, [], ["b", "c"]], pa.list_(pa.string_view())),
        "st": pa.array([{"v": "a"}, None, {}, {"v": "b"}], pa.struct([("v", pa.string_view())])),
    }
)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_files_with_views(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pq.write_table(VIEWS, path)
    else:
        pyarrow.feather.write_feather(VIEWS, path, compression="uncompressed")
    text = ds.field("s")
    expected = {
        "others": (I > 1, [2, 3]),
        "string": (text == "more than twelve bytes", [3]),
        "set": (text.isin(["a", None]), [0, 2]),
        "function": (pc.starts_with(text, "more"), [3]),
        "binary": (ds.field("b") >= b"b", [2, 3]),
        "field": (ds.field("st", "v") == "b", [3]),
        "null": (text.is_null(), [2]),
    }
    dataset = ds.dataset(path, format="ipc" if suffix == ".arrow" else "parquet")
    for filter, rows in expected.values():
        assert read(path, filter=filter) == rows, str(filter)
        assert read(path, filter=filter, memory_map=False) == rows, str(filter)
        assert read(dataset, filter=filter) == rows, str(filter)
        assert read(dataset.filter(filter)) == rows, str(filter)
        assert read(io.BytesIO(path.read_bytes()), filter=filter) == rows, str(filter)
    options: dict[str, Any] = {"framework": "numpy", "nulls": "mask", "ragged": "offsets"}
    (batch,) = arrowdl.Loader(path, 4, filter=I > 2, **group(**options))
    (whole,) = arrowdl.Loader(path, 4, **group(**options))
    assert list(batch) == list(whole)
    assert bytes(batch["s"][0][0]).decode() == "more than twelve bytes"


def test_ipc_that_polars_writes(tmp_path: Path) -> None:
    words = polars.Series(["w0", "w1", "w2"] * 3)
    frame = polars.DataFrame({"i": range(9), "s": words, "c": words.cast(polars.Categorical)})
    frame.write_ipc(path := tmp_path / "a.arrow")
    for filter in (I.isin([1, 4, 7]), ds.field("s") == "w1", ds.field("c") == "w1"):
        loader = arrowdl.Loader(path, 9, filter=filter, framework="numpy", ragged="offsets")
        (batch,) = loader
        assert batch["i"].tolist() == [1, 4, 7]
        assert loader.vocabulary("c")[batch["c"][0]].as_py() == "w1"


# ---- what is read


SORTED = pa.table(
    {
        "i": pa.array(range(100), pa.int32()),
        "x": pa.array([float(i) for i in range(100)], pa.float32()),
        "text": [f"{i:03}" for i in range(100)],
        "when": pa.array([datetime.datetime(2024, 1, 1, i // 10) for i in range(100)]),
        "day": pa.array([datetime.date(2024, 1, 1 + i // 10) for i in range(100)]),
        "price": pa.array([Decimal(i) / 4 for i in range(100)], pa.decimal128(9, 2)),
        "flag": [i >= 90 for i in range(100)],
        "missing": [None] * 90 + [1] * 10,
        "s": [{"i": i} for i in range(100)],
    }
)


def spoil(path: Path, groups: range) -> None:
    """Overwrite the pages of row groups."""
    metadata = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for number in groups:
        group = metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            start = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)))
            data[start : start + chunk.total_compressed_size] = (
                b"\xff" * chunk.total_compressed_size
            )
    path.write_bytes(data)


LAST = {
    "int": I >= 90,
    "int of another type": pa.scalar(90, pa.int64()) <= I,
    "reversed": pc.less(pc.scalar(89), I),
    "negated": ~(I < 90),
    "set": I.isin([3_000, 95, 90, 97]),
    "or": (I == 92) | (X > 95.0),
    "neither": ~((I < 90) | (ds.field("text") < "090")),
    "float": X >= 90,
    "float between": (X > 89.5) & ~pc.is_nan(X),
    "float that float32 lacks": X > 89.1,
    "set of floats": X.isin([90.0, 95.5]),
    "text": ds.field("text") >= "090",
    "time": ds.field("when") >= datetime.datetime(2024, 1, 1, 9),
    "date": ds.field("day") >= datetime.date(2024, 1, 10),
    "decimal": ds.field("price") >= Decimal("22.5"),
    "bool": ds.field("flag"),
    "valid": ds.field("missing").is_valid(),
    "struct": ds.field("s", "i") >= 90,
    "with what statistics do not tell": (I >= 90) & (pc.utf8_length(ds.field("text")) == 3),
}


@pytest.mark.parametrize("name", LAST)
def test_row_groups_without_rows_are_not_read(name: str, tmp_path: Path) -> None:
    pq.write_table(SORTED, path := tmp_path / "a.parquet", row_group_size=10)
    plan = arrowdl.Loader(path, 10, framework="numpy").plan()
    spoil(path, range(9))
    expected = SORTED.filter(LAST[name])["i"].to_pylist()
    assert 0 < len(expected) <= 10
    assert read(path, filter=LAST[name]) == expected
    assert read(path, filter=LAST[name], shuffle=True, seed=3) != []
    assert read(ds.dataset(path).filter(LAST[name])) == expected
    with pytest.raises(OSError):  # noqa: PT011  # the file is another than that of the plan
        read(path, filter=LAST[name], plan=plan)


def test_files_of_other_partitions_are_not_read(tmp_path: Path) -> None:
    for year in (2023, 2024):
        for month in (1, 2):
            (folder := tmp_path / f"year={year}" / f"month={month}").mkdir(parents=True)
            part = SORTED.slice(10 * month, 10)
            pq.write_table(part, folder / "a.parquet")
            if (year, month) != (2024, 2):
                spoil(folder / "a.parquet", range(1))
    year, month = ds.field("year"), ds.field("month")
    for filter in (
        (year == 2024) & (month > 1),
        year * 100 + month > 202_401,
        (year.cast(pa.string()) == "2024") & ~(month == 1),
        (year * 100 + month > 202_401) & ~(X < 0),
    ):
        assert read(tmp_path, filter=filter) == list(range(20, 30))


BOUNDS = [
    (X > 3, "(x > 3)"),
    (X >= 0, "(x >= -0)"),
    (X <= -0.0, "(x <= 0)"),
    (X == 3, "((x >= 3) and (x <= 3))"),
    (X > NAN, None),
    (X != 3, None),
    (~(X > 3), None),
    (X.isin([2.0, -0.0, 1.0]), "((x >= -0) and (x <= 2))"),
    (X.isin([2.0, NAN]), None),
    (X.isin([2.0, None]), "(((x >= 2) and (x <= 2)) or is_null(x, {nan_is_null=false}))"),
    (X.is_null(nan_is_null=True), None),
    (X.is_null(), "is_null(x, {nan_is_null=false})"),
    (~X.is_null(), "is_valid(x)"),
    (I.is_null(nan_is_null=True), "is_null(i, {nan_is_null=false})"),
    (I != 3, "((i < 3) or (i > 3))"),
    (~(I != 3), "(i == 3)"),
    (~((I > 3) & (X > 1)), None),
    (~((I > 3) | (X > 1)), "(i <= 3)"),
    ((I > 3) | pc.is_nan(X), None),
    (I > 2**40, None),
    (I > 2.5, None),
    (I + 1 > 3, None),
    (I.cast(pa.int64()) > 3, None),
    (ds.field("text") > b"a", None),
    (ds.field("none") > 1, None),
    (ds.field(0) > 1, None),
    (ds.scalar(True), None),
]


@pytest.mark.parametrize(("filter", "bounds"), BOUNDS, ids=lambda own: str(own))
def test_bounds(filter: Any, bounds: str | None) -> None:
    schema = pa.schema([("x", pa.float64()), ("i", pa.int32()), ("text", pa.string())])
    found = find_bounds(filter, schema)
    assert (found if found is None else str(found)) == bounds


def test_deep_and_wide_filters(tmp_path: Path) -> None:
    pq.write_table(SORTED, path := tmp_path / "a.parquet", row_group_size=10)
    chain = I == 90
    for number in range(91, 2_000):
        chain |= number == I
    assert read(path, filter=chain) == list(range(90, 100))
    assert read(path, filter=I.isin(list(range(90, 100_000)))) == list(range(90, 100))


def test_columns_by_their_numbers(tmp_path: Path) -> None:
    pq.write_table(TABLE, path := tmp_path / "a.parquet", row_group_size=3)
    for way in ("path", "dataset", "datasets", "file object", "table version"):
        assert WAYS[way](path, filter=ds.field(1) == 2.0) == [4], way


def test_filters_that_are_not_bool(tmp_path: Path) -> None:
    pq.write_table(TABLE, path := tmp_path / "a.parquet")
    for source in (path, ds.dataset(path), ds.dataset([ds.dataset(path)])):
        with pytest.raises(TypeError, match=r"filter=add\(.*\) is int64, not bool"):
            read(source, filter=pc.add(I, 1))
        with pytest.raises(pa.ArrowInvalid, match="No match for FieldRef"):
            read(source, filter=ds.field("none") > 1)


# ---- texts


def test_functions_that_pyarrow_does_not_evaluate(tmp_path: Path) -> None:
    """pyarrow.compute.and_() makes an expression of a function that has no such name."""
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "x.parquet")
    x = pc.field("x")
    for filter, advice in [
        (pc.or_(x < 2, x > 2), r"a \| b"),
        (~pc.and_(x > 1, x < 3) & x.is_valid(), "a & b"),
    ]:
        for source in (tmp_path, ds.dataset(tmp_path), tmp_path / "x.parquet"):
            with pytest.raises(ValueError, match=f"pyarrow cannot evaluate .*: write {advice}"):
                arrowdl.Loader(source, 2, filter=filter)
    (batch,) = arrowdl.Loader(tmp_path, 2, filter=pc.field("x").isin([2]) & (pc.field("x") != 3))
    assert batch["x"].tolist() == [2]


def test_values_that_are_not_ascii(tmp_path: Path) -> None:
    """pyarrow's text of a filter ends inside of a character, and is not valid UTF-8."""
    words = ["日本語テキスト" * 20, "é" * 101, "a" + "é" * 101]
    pq.write_table(pa.table({"i": range(3), "s": words}), path := tmp_path / "a.parquet")
    others = [word + "!" for word in words]
    for i, word in enumerate(words):
        for filter in (ds.field("s").isin([word]), ds.field("s") == word):
            assert read(path, filter=filter) == [i]
            assert read_by_plan(path, filter=filter) == [i]
            assert show_filter(filter)
        assert describe_filter(ds.field("s") == word) != describe_filter(ds.field("s") == others[i])
    plan = arrowdl.Loader(path, 2, columns=["i"], filter=ds.field("s") == words[0]).plan()
    with pytest.raises(ValueError, match="give the filter of the plan"):
        read(path, filter=ds.field("s").isin([words[0]]), plan=plan)


def test_file_objects_are_filtered_when_they_are_one_table() -> None:
    def dump(**columns: Any) -> io.BytesIO:
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        return sink

    files = [dump(x=[1, 2], y=[5, 6]), dump(x=[3])]
    for filter, rows in ((ds.field("y") == 5, [1]), (ds.field("y").is_null(), [3])):
        loader = arrowdl.Loader(files, 2, columns=["x"], filter=filter, framework="numpy")
        assert [i for batch in loader for i in batch["x"].tolist()] == rows
    with pytest.raises(TypeError, match="pyarrow expression"):
        arrowdl.Loader(files, 2, filter="x > 1")


class OfViews(pa.ExtensionType):
    """An extension type whose storage has views."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "test.of_views")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> OfViews:
        return cls(storage)


def make_unfiltered(rows: int) -> dict[str, pa.Array]:
    """Make columns of types that pyarrow cannot filter."""
    views = pa.array([f"text {i}" for i in range(rows)], pa.string_view())
    ends = pa.array(range(rows + 1), pa.int32())
    wrapped = pa.ExtensionArray.from_storage(OfViews(pa.string_view()), views)
    lists = pa.ListArray.from_arrays(ends, views)
    json = pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), views)
    return {
        "extension": wrapped,
        "extension of lists": pa.ExtensionArray.from_storage(OfViews(lists.type), lists),
        "list": pa.ListArray.from_arrays(ends, wrapped),
        "struct": pa.StructArray.from_arrays([wrapped], ["a"]),
        "json": json,
        "union": pa.UnionArray.from_sparse(pa.array([0] * rows, pa.int8()), [views]),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), views[:1]),
    }


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
@pytest.mark.parametrize("name", make_unfiltered(1))
def test_types_that_pyarrow_cannot_filter(tmp_path: Path, name: str, kind: str) -> None:
    rows = 40
    column = make_unfiltered(rows)[name]
    table = pa.table({"id": range(rows), "c": column})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet" and name in ("union", "runs"):
        pytest.skip("Parquet has no such type")
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=16)
    pa.register_extension_type(OfViews(pa.string_view()))
    try:
        _check_kept(path, kind, column, range(rows))
    finally:
        pa.unregister_extension_type("test.of_views")


def _check_kept(path: Path, kind: str, column: pa.Array, ids: range) -> None:
    found: list[Any] = []

    def note(batch: pa.RecordBatch) -> pa.RecordBatch:
        found.extend(batch.column("c").to_pylist())
        return batch.select(["id"])

    for keep in (list(ids), [1, 2, 7, 30, 31, 39], [20], []):
        filter = ds.field("id").isin(keep)
        for source in (path, ds.dataset(path, format="ipc" if kind == "arrow" else kind)):
            options: dict[str, Any] = {"filter": filter, "framework": "numpy"}
            loader = arrowdl.Loader(source, 7, columns=["id"], **group(**options))
            assert [i for batch in loader for i in batch["id"].tolist()] == keep
            found.clear()
            list(arrowdl.Loader(source, 7, transform_arrow=note, prefetch=0, **group(**options)))
            assert found == [column[i].as_py() for i in keep]
