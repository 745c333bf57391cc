"""Random filters of random files, whose rows are those of `pyarrow.Table.filter`."""

from __future__ import annotations

import datetime
import io
import random
from collections import Counter
from collections.abc import Callable
from copy import copy
from decimal import Decimal
from itertools import pairwise
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
from arrowdl.loader._sources.request import Request
from arrowdl.loader._tables.data_files import DataFilesSource
from arrowdl.loader._tables.fields import TableField
from arrowdl.loader._tables.version import DataFile, TableVersion
from helpers.options import group
from helpers.random_cases import check_cases

NAN, INF = float("nan"), float("inf")
LONG = "a" * 70  # writers cut their statistics to 64 bytes
DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30)

FLOATS = [NAN, 0.0, -0.0, INF, -INF, 1.0, 3.0, 2.5, 0.1]
INTS = [0, 1, 2, 3, 100, 127]
POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "f64": (pa.float64(), FLOATS),
    "f32": (pa.float32(), FLOATS),
    "i8": (pa.int8(), [*INTS, -128]),
    "i32": (pa.int32(), [*INTS, -5, 2**31 - 1]),
    "i64": (pa.int64(), [*INTS, -5, 2**53 + 1, -(2**63), 300]),
    "u64": (pa.uint64(), [*INTS, 2**63, 2**64 - 1]),
    "b": (pa.bool_(), [True, False]),
    "s": (pa.string(), ["", "a", "b", "ab", "é", LONG, f"{LONG}b", f"{LONG}é"]),
    "ls": (pa.large_string(), ["", "a", "b", LONG, f"{LONG}b"]),
    "bin": (pa.binary(), [b"", b"\x00", b"a", b"\xff", b"\xff" * 70, b"\xff" * 71]),
    "fixed": (pa.binary(3), [b"abc", b"\x00\x00\x00", b"\xff\xff\xff"]),
    "date": (pa.date32(), [DAY, datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]),
    "time": (pa.time64("us"), [datetime.time(0), datetime.time(23, 59, 59, 999_999)]),
    "ts": (pa.timestamp("us"), [MOMENT, datetime.datetime(1969, 12, 31, 23, 59, 59, 1)]),
    "tz": (pa.timestamp("ms", "UTC"), [0, 1, -1, 1_700_000_000_123]),
    "dec": (
        pa.decimal128(9, 2),
        [Decimal("-1.00"), Decimal("0.00"), Decimal("3.00"), Decimal("9.25")],
    ),
    "dict": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "ab"]),
    "sv": (pa.string_view(), ["", "a", "b", LONG]),
    "bv": (pa.binary_view(), [b"", b"a", b"\xff" * 70]),
}
NESTED = ["f64", "i32", "s"]
STRUCT = pa.struct([(name, POOLS[name][0]) for name in NESTED])
ORDERED = [
    "f64",
    "f32",
    "i8",
    "i32",
    "i64",
    "u64",
    "date",
    "time",
    "ts",
    "tz",
    "dec",
    "s",
    "ls",
    "bin",
]
NUMBERS = ["f64", "f32", "i8", "i32", "i64", "u64"]
VIEWS = ["sv", "bv"]
LISTS: list[Any] = [[], [NAN], [0.0, None], [1.0, 3.0]]
COMPARE: list[Callable[[Any, Any], Any]] = [
    pc.less, pc.less_equal, pc.greater, pc.greater_equal, pc.equal, pc.not_equal,
]  # fmt: skip
Draw = random.Random


# ---- rows


def draw_group(draw: Draw, rows: int) -> pa.Table:
    """A row group: of few values, with columns of one value, of NaN, or of nulls."""
    columns = {}
    for name, (type, pool) in POOLS.items():
        columns[name] = pa.array(draw_values(draw, pool, rows), type)
    fields = [pa.array(draw_values(draw, POOLS[name][1], rows), POOLS[name][0]) for name in NESTED]
    mask = pa.array([draw.random() < 0.2 for _ in range(rows)])
    columns["st"] = pa.StructArray.from_arrays(fields, fields=list(STRUCT), mask=mask)
    lists = draw_values(draw, LISTS, rows)
    columns["li"] = pa.array(lists, pa.list_(pa.float64()))
    columns["wide"] = pa.array(
        [[name] for name in draw_values(draw, ["a", LONG], rows)], pa.list_(pa.string_view())
    )
    return pa.table(columns)


def draw_values(draw: Draw, pool: list[Any], rows: int) -> list[Any]:
    some = draw.sample([*pool, None], draw.choice([1, 1, 2, 3]))
    if pool is FLOATS and draw.random() < 0.5:
        some.append(NAN)
    return [draw.choice(some) for _ in range(rows)]


def draw_table(draw: Draw, group: int) -> pa.Table:
    counts = [group] * draw.randrange(1, 5) + [draw.randrange(1, group + 1)]
    table = pa.concat_tables(
        [draw_group(draw, rows) for rows in counts], promote_options="permissive"
    )
    table = table.combine_chunks()
    return table.append_column("id", pa.array(range(len(table)), pa.int64()))


# ---- filters


def draw_filter(draw: Draw, names: list[str], depth: int) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return draw_condition(draw, names)
    one, other = (draw_filter(draw, names, depth - 1) for _ in range(2))
    return draw.choice(
        [
            lambda: one & other,
            lambda: one & other,
            lambda: one | other,
            lambda: ~one,
            lambda: ~one,
            lambda: pc.xor(one, other),
            lambda: pc.and_not_kleene(one, other),
            lambda: pc.if_else(one, other, draw.choice([True, False])),
            lambda: pc.if_else(one, False, True),
            lambda: pc.coalesce(one, draw.choice([True, False])),
            lambda: one.is_null(),
            lambda: pc.equal(one, other),
            lambda: pc.true_unless_null(one) & other,
            lambda: pc.and_not(one, other),
            lambda: pc.invert(pc.true_unless_null(one)),
            lambda: pc.case_when(pc.make_struct(one, other), False, True, one),
            lambda: pc.choose(one.cast(pa.int8()), True, other),
            lambda: pc.struct_field(pc.make_struct(one, other), 1),
            lambda: one.cast(pa.int32()) > other.cast(pa.int32()),
            lambda: one.cast(pa.string()) == "false",
        ]
    )()


def draw_condition(draw: Draw, names: list[str]) -> Any:
    if draw.random() < 0.04:
        return of_lists(draw)
    floats = ["f64", "f32", "st.f64"]  # of which statistics tell least
    name = draw.choice(floats if draw.random() < 0.4 else [*names, "st.i32", "st.s"])
    kind = name.removeprefix("st.")
    field = ds.field(*name.split("."))
    options = [compare, compare, compare, compare_fields, is_in, is_in, is_null]
    if kind in ("f64", "f32"):
        options += [of_floats, of_floats]
    if kind in NUMBERS:
        options += [compute, cast_number]
    if kind in ("s", "ls", "sv"):
        options += [of_strings]
    if kind in ("ts", "tz", "date"):
        options += [of_times]
    if kind == "b":
        options += [lambda draw, field, kind: field]
    return draw.choice(options)(draw, field, kind)


def draw_literal(draw: Draw, kind: str) -> Any:
    """A value of the column's type, of a plain Python type, or of another type."""
    type, pool = POOLS[kind]
    value = draw.choice(pool)
    if kind in NUMBERS and draw.random() < 0.4:
        return draw.choice([2, 2.5, 300, -1, 0.1, 0.0, -0.0, pa.scalar(3, pa.int8())])
    if kind in ("ts", "date") and draw.random() < 0.3:
        return pa.scalar(
            draw.choice([MOMENT.replace(hour=0, minute=0), MOMENT]),
            pa.timestamp(draw.choice(["s", "us", "ns"])),
        )
    if kind == "ts" and draw.random() < 0.3:
        return DAY
    if kind == "dec" and draw.random() < 0.4:
        return draw.choice([3, Decimal("0.0"), Decimal("9.250"), Decimal("0.001")])
    if kind == "dict":
        return value
    if kind in VIEWS:
        return value
    if draw.random() < 0.1:
        return pa.scalar(None, type)
    return value if draw.random() < 0.5 and kind not in ("tz", "u64") else pa.scalar(value, type)


def compare(draw: Draw, field: Any, kind: str) -> Any:
    literal = draw_literal(draw, kind)
    operands = (field, literal) if draw.random() < 0.8 else (pc.scalar(literal), field)
    return draw.choice(COMPARE)(*operands)


def compare_fields(draw: Draw, field: Any, kind: str) -> Any:
    return draw.choice(COMPARE)(field, draw.choice([field, ds.field(kind)]))


def is_in(draw: Draw, field: Any, kind: str) -> Any:
    type, pool = POOLS[kind]
    values = draw.sample([*pool, None], draw.randrange(0, 4))
    if kind in ("dict", *VIEWS):
        type = pa.string() if kind != "bv" else pa.binary()
    if kind in NUMBERS and draw.random() < 0.3:
        type, values = pa.float64(), [draw.choice([*FLOATS, None]) for _ in values]
    skips = draw.random() < 0.3
    return pc.is_in(field, pa.array(values, type), skip_nulls=skips)


def is_null(draw: Draw, field: Any, kind: str) -> Any:
    return draw.choice(
        [field.is_null(), field.is_valid(), field.is_null(nan_is_null=draw.random() < 0.7)]
    )


def of_floats(draw: Draw, field: Any, kind: str) -> Any:
    return draw.choice([pc.is_nan, pc.is_finite, pc.is_inf, lambda own: own != own])(field)


def compute(draw: Draw, field: Any, kind: str) -> Any:
    computed = draw.choice(
        [
            lambda: pc.add(field, 1),
            lambda: pc.add_checked(field, 1),
            lambda: pc.multiply(field, 2),
            lambda: pc.divide(field.cast(pa.float64(), safe=False), 0.0),
            lambda: pc.abs(field),
            lambda: pc.negate(field.cast(pa.float64(), safe=False)),
            lambda: pc.min_element_wise(field, 2),
            lambda: pc.max_element_wise(field, 2, skip_nulls=False),
            lambda: pc.coalesce(field, 3),
            lambda: pc.index_in(field, pa.array([0, 3], POOLS[kind][0])),
            lambda: pc.sign(field),
            lambda: pc.subtract(pc.scalar(0), field),
            lambda: pc.power(field.cast(pa.float64(), safe=False), draw.choice([-1, 0.5, 2])),
            lambda: pc.sqrt(field.cast(pa.float64(), safe=False)),
            lambda: pc.ln(field.cast(pa.float64(), safe=False)),
            lambda: pc.exp(field.cast(pa.float64(), safe=False)),
            lambda: pc.atan2(field.cast(pa.float64(), safe=False), -0.0),
            lambda: draw.choice([pc.floor, pc.ceil, pc.trunc])(
                field.cast(pa.float64(), safe=False)
            ),
            lambda: pc.round(field.cast(pa.float64(), safe=False), -1),
            lambda: pc.bit_wise_and(field, 1),
            lambda: pc.shift_right(field, 1),
            lambda: pc.if_else(field > 2, field, 0),
            lambda: pc.case_when(pc.make_struct(field < 2, field >= 2), 1, 0),
            lambda: pc.utf8_length(field.cast(pa.string())),
        ]
    )()
    return draw.choice(COMPARE)(computed, draw.choice([0, 1, 2.5]))


def cast_number(draw: Draw, field: Any, kind: str) -> Any:
    type = draw.choice([pa.int8(), pa.uint8(), pa.int64(), pa.float32(), pa.float64(), pa.bool_()])
    made = field.cast(type, safe=draw.random() < 0.2)
    return made if type == pa.bool_() else draw.choice(COMPARE)(made, draw.choice([0, 1, 44]))


def of_strings(draw: Draw, field: Any, kind: str) -> Any:
    return draw.choice(
        [
            pc.starts_with(field, "a"),
            pc.match_substring(field, draw.choice(["b", "é", LONG])),
            pc.match_like(field, "a%"),
            pc.utf8_length(field) > 2,
            pc.utf8_upper(field) == "A",
            pc.binary_length(field) >= draw.choice([0, 70]),
            pc.ends_with(field, draw.choice(["b", "é"])),
            pc.match_substring_regex(field, "^a+b?$"),
            pc.count_substring(field, "a") > draw.choice([0, 69]),
            pc.find_substring(field, "b") >= 0,
            pc.utf8_slice_codeunits(field, 0, draw.choice([1, 64])) == "a",
            pc.utf8_reverse(field) > "a",
            pc.utf8_trim(field, "a") == "",
            pc.string_is_ascii(field),
            pc.utf8_is_alpha(field),
            pc.replace_substring(field, "a", "") != "b",
            pc.binary_join_element_wise(field, "a", "") == "aa",
        ]
    )


def of_times(draw: Draw, field: Any, kind: str) -> Any:
    made = [pc.year(field) == 2024, pc.day(field) > 29, pc.day_of_week(field) > 2]
    made += [pc.quarter(field) == 1, pc.is_leap_year(field), pc.iso_week(field) > 8]
    made.append(pc.floor_temporal(field, unit="month") != pc.floor_temporal(field, unit="day"))
    made.append(pc.strftime(field, "%Y") >= "2024")
    if kind == "ts":
        made.append(field.cast(pa.timestamp("s"), safe=False) == MOMENT)
        made.append(field.cast(pa.date32(), safe=False) <= DAY)
    return draw.choice(made)


def of_lists(draw: Draw) -> Any:
    field = ds.field("li")
    return draw.choice(
        [
            pc.list_value_length(field) > draw.choice([0, 1]),
            pc.list_value_length(field) != 2,
            field.is_null(),
            field.is_valid(),
            pc.list_element(pc.if_else(pc.list_value_length(field) > 0, field, None), 0) < 2,
            pc.is_nan(pc.list_element(pc.coalesce(field, pa.scalar([0.0])), 0)),
        ]
    )


# ---- sources


UNKNOWN_TO_POLARS = ["tz", "time", "fixed", "dict", "sv", "bv", "wide"]


class Case:
    """Parquet files of a random table.

    Parameters
    ----------
    draw : random.Random
    folder : pathlib.Path

    Attributes
    ----------
    table : pyarrow.Table
        Their rows.
    paths : list of str
    names : list of str
        Columns that filters may have.
    """

    def __init__(self, draw: Draw, folder: Path) -> None:
        self.draw = draw
        self.folder = folder
        group = draw.choice([2, 3, 8])
        table = draw_table(draw, group)
        by_polars = draw.random() < 0.3  # its statistics of long strings are cut
        if by_polars:
            table = table.drop_columns(UNKNOWN_TO_POLARS)
        elif draw.random() < 0.6:  # pyarrow alone cannot filter the others
            table = table.drop_columns([*VIEWS, "wide"])
        self.names = [name for name in POOLS if name in table.column_names]
        cut = group * draw.randrange(len(table) // group + 1)
        self.paths = []
        for start, stop in pairwise(sorted({0, cut, len(table)})):
            path = str(folder / f"{start:04}.parquet")
            self.paths.append(path)
            if by_polars:
                polars.from_arrow(table[start:stop]).write_parquet(path, row_group_size=group)
            else:
                self.write(table[start:stop], path, group)
        self.table = pa.concat_tables([pq.ParquetFile(path).read() for path in self.paths])

    def write(self, part: pa.Table, path: str, group: int) -> None:
        options = {"use_dictionary": self.draw.random() < 0.5}
        options["write_statistics"] = self.draw.random() < 0.9
        pq.write_table(part, path, row_group_size=group, **options)

    def take(self, draw: Draw) -> Case:
        """Return the same files for another case, which draws how they are read."""
        taken = copy(self)
        taken.draw = draw
        return taken

    def make_dataset(self, partitions: list[Any], schema: pa.Schema) -> ds.FileSystemDataset:
        """A dataset of the files with partition expressions."""
        format, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
        fragments = [
            format.make_fragment(path, local, own)
            for path, own in zip(self.paths, partitions, strict=True)
        ]
        return ds.FileSystemDataset(fragments, schema, format, local)


@pytest.fixture(scope="module")
def find_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Draw], Case]:
    """Returns one of 1,000 sets of files, each of which is written when it is first drawn."""
    made: dict[int, Case] = {}

    def find(draw: Draw) -> Case:
        number = draw.randrange(1_000)
        if number not in made:
            made[number] = Case(random.Random(number), tmp_path_factory.mktemp("files"))
        return made[number].take(draw)

    return find


def read(source: Any, **options: Any) -> list[int]:
    loader = arrowdl.Loader(source, 5, columns=["id"], framework="numpy", **group(**options))
    found = [i for batch in loader for i in batch["id"].tolist()]
    return sorted(found) if options.get("shuffle") else found


def by_paths(case: Case, filter: Any) -> list[int]:
    options = {} if case.draw.random() < 0.7 else {"decoder": "polars"}
    return read(case.paths, filter=filter, shuffle=case.draw.random() < 0.3, **options)


def by_dataset(case: Case, filter: Any) -> list[int]:
    return read(ds.dataset(case.paths), filter=filter)


def by_map_dataset(case: Case, filter: Any) -> list[int]:
    loader = arrowdl.Loader(case.paths, 5, columns=["id"], framework="numpy", filter=filter)
    rows = loader.map_dataset()
    return rows[list(range(len(rows)))]["id"].tolist() if len(rows) else []


def by_plan(case: Case, filter: Any) -> list[int]:
    chosen = filter if case.draw.random() < 0.5 else None
    source = ds.dataset(case.paths) if case.draw.random() < 0.5 else case.paths
    plan = arrowdl.Loader(
        source, 5, columns=["id"] if chosen is not None else None, filter=chosen
    ).plan()
    return read(source, filter=filter, plan=plan)


def by_filtered_dataset(case: Case, filter: Any) -> list[int]:
    if case.draw.random() < 0.5:
        return read(ds.dataset(case.paths).filter(filter))
    return read(ds.dataset(case.paths).filter(ds.field("id") >= 0), filter=filter)


def by_several_datasets(case: Case, filter: Any) -> list[int]:
    return read(ds.dataset([ds.dataset(path) for path in case.paths]), filter=filter)


def by_memory(case: Case, filter: Any) -> list[int]:
    return read(ds.dataset(case.table), filter=filter)


def by_ipc(case: Case, filter: Any) -> list[int]:
    paths = []
    for number, table in enumerate([case.table[:3], case.table[3:]]):
        paths.append(case.folder / f"{number}.arrow")
        codec = case.draw.choice(["uncompressed", "lz4"])
        pa.feather.write_feather(table, paths[-1], compression=codec)
    return read(paths, filter=filter, memory_map=case.draw.random() < 0.5)


def by_file_object(case: Case, filter: Any) -> list[int]:
    return read([io.BytesIO(Path(path).read_bytes()) for path in case.paths], filter=filter)


def by_ranges(case: Case, filter: Any) -> list[int]:
    """Partition expressions that say of the floats what the statistics of their files say."""
    ranges = []
    for path in case.paths:
        bounds = pc.min_max(pq.read_table(path, columns=["f64"])["f64"].drop_null())
        low, high = bounds["min"], bounds["max"]
        known = (ds.field("f64") >= low) & (ds.field("f64") <= high) if low.is_valid else None
        ranges.append(known if case.draw.random() < 0.8 else None)
    return read(case.make_dataset(ranges, case.table.schema), filter=filter)


def by_table_version(case: Case, filter: Any) -> list[int]:
    """As tables of Delta Lake and Iceberg are read."""
    return read_version([DataFile(path) for path in case.paths], case.table.schema, filter)


def read_version(files: list[DataFile], schema: pa.Schema, filter: Any) -> list[int]:
    fields = [TableField(own.name, own.type, own.name) for own in schema]
    version = TableVersion("Table", "table 1", fields, files, fs.LocalFileSystem())
    source = DataFilesSource(version, Request(["id"], filter))
    return pa.table(source.read(range(len(source.units))))["id"].to_pylist()


SOURCES = [
    by_paths,
    by_paths,
    by_dataset,
    by_map_dataset,
    by_plan,
    by_filtered_dataset,
    by_several_datasets,
    by_memory,
    by_ipc,
    by_file_object,
    by_ranges,
    by_table_version,
]


def expect(table: pa.Table, filter: Any) -> list[int] | None:
    """The rows of `table.filter`; None if it fails."""
    try:
        return table.filter(filter)["id"].to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def without_views(table: pa.Table) -> pa.Table:
    # As a Loader reads them: not all functions take a large string beside others.
    plain: dict[str, Any] = {
        "sv": pa.large_string(),
        "bv": pa.large_binary(),
        "wide": pa.list_(pa.string()),
    }
    fields = [own.with_type(plain.get(own.name, own.type)) for own in table.schema]
    return table.cast(pa.schema(fields))


def check_filters(draw: Draw, case: Case, outcomes: Counter[str]) -> None:
    plain = without_views(case.table)
    for _ in range(4):
        filter = draw_filter(draw, case.names, draw.choice([0, 0, 1, 2]))
        expected = expect(plain, filter)
        if expected is None:
            outcomes["refused"] += 1
            continue
        open_by = draw.choice(SOURCES)
        assert open_by(case, filter) == expected, (open_by.__name__, str(filter))
        outcomes["some" if 0 < len(expected) < len(plain) else "all or none"] += 1


def test_filters_keep_the_rows_that_arrow_keeps(find_case: Callable[[Draw], Case]) -> None:
    outcomes: Counter[str] = Counter()
    check_cases(lambda draw: check_filters(draw, find_case(draw), outcomes), 40)
    if sum(outcomes.values()) >= 100:
        assert outcomes["some"] > sum(outcomes.values()) / 4, outcomes


CONSTANTS = [NAN, 0.0, -0.0, 3.0, INF, None]


def check_constants(draw: Draw, case: Case) -> None:
    type = draw.choice([pa.float64(), pa.float32()])
    values = [pa.scalar(draw.choice(CONSTANTS), type) for _ in case.paths]
    parts = []
    for path, value in zip(case.paths, values, strict=True):
        part = without_views(pq.ParquetFile(path).read())
        parts.append(part.append_column("c", pa.array([value.as_py()] * len(part), type)))
    filter = draw_constant_filter(draw, case.names)
    expected = expect(pa.concat_tables(parts), filter)
    if expected is None:
        return
    schema = case.table.schema.append(pa.field("c", type))
    field = ds.field("c")
    says = [field == value if value.is_valid else field.is_null() for value in values]
    assert read(case.make_dataset(says, schema), filter=filter) == expected, str(filter)
    files = [DataFile(path, {"c": own}) for path, own in zip(case.paths, values, strict=True)]
    assert read_version(files, schema, filter) == expected, str(filter)


def draw_constant_filter(draw: Draw, names: list[str]) -> Any:
    one = draw.choice([compare, is_in, is_null, of_floats, compute])(draw, ds.field("c"), "f64")
    other = draw_filter(draw, names, 1)
    return draw.choice([lambda: one, lambda: ~one, lambda: one & other, lambda: ~one | other])()


def test_filters_of_constants_of_files(find_case: Callable[[Draw], Case]) -> None:
    """Constants of partition expressions, and of tables whose partition columns are floats."""
    check_cases(lambda draw: check_constants(draw, find_case(draw)), 15)
