"""INT96 timestamps of Parquet files, which pyarrow wraps and cuts without an error."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from arrowdl.loader._files.locate import split_row_groups
from arrowdl.loader._skipped import OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

# Microseconds of the years 1677 to 2262, whose nanoseconds 64 bits hold.
_FIRST, _LAST = -(2**63 // 1000) + 1, 2**63 // 1000 - 1
_FORMAT = "pyarrow.dataset.dataset(path, format=pyarrow.dataset.ParquetFileFormat("
UNIT = "us"


def explain_int96(files: Iterable[tuple[str, pq.ParquetSchema]], name: str) -> str:
    """Say which of the files has INT96 timestamps in a column; empty if none has."""
    path = next((path for path, schema in files if list_int96(schema, [name])), None)
    if path is None:
        return ""
    return (
        f" ({path!r} has it as INT96, which a Loader reads as timestamp[{UNIT}], and a dataset by "
        f'format=pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="{UNIT}"))'
    )


def make_parquet_format() -> ds.ParquetFileFormat:
    """Return the format of files whose INT96 timestamps are read as microseconds."""
    import pyarrow.dataset as ds

    return ds.ParquetFileFormat(coerce_int96_timestamp_unit=UNIT)


def list_int96(schema: pq.ParquetSchema, names: Iterable[str]) -> list[str]:
    """List those of the columns `names` that have INT96 timestamps at any level."""
    columns = [schema.column(i) for i in range(len(schema))]
    paths = [column.path for column in columns if column.physical_type == "INT96"]
    return [
        name for name in names if any(path == name or path.startswith(f"{name}.") for path in paths)
    ]


def check_digits(where: str, micros: pa.Table, nanos: pa.Table) -> None:
    """Raise OptionError if INT96 timestamps have digits that microseconds lack."""
    import pyarrow.compute as pc

    for name in micros.column_names:
        for one, other in zip(_list_times(micros[name]), _list_times(nanos[name]), strict=True):
            # Both wrap alike, and no other digits give the same 64 bits.
            if pc.all(pc.equal(pc.multiply(one, 1000), other)).as_py() is False:
                raise OptionError(
                    f'"{name}" of {where} has INT96 timestamps with nanoseconds, which a Loader '
                    "reads as microseconds: give it a dataset that keeps them, "
                    f'{_FORMAT}coerce_int96_timestamp_unit="ns")), or leave the column out, '
                    "columns="
                )


def _check_years(where: str, micros: pa.Table) -> None:
    import pyarrow.compute as pc

    for name in micros.column_names:
        for times in _list_times(micros[name]):
            low, high = pc.min_max(times).values()
            if low.is_valid and not _FIRST <= low.as_py() <= high.as_py() <= _LAST:
                raise OptionError(
                    f'"{name}" of {where} has INT96 timestamps outside 1677 to 2262, and the '
                    "dataset reads them as nanoseconds, which wrap there: give the Loader the "
                    f'paths, or {_FORMAT}coerce_int96_timestamp_unit="us")); or leave the column '
                    "out, columns="
                )


def _list_times(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield the numbers of the timestamps of a column that was decoded, at all levels."""
    for chunk in column.chunks:
        yield from _list_leaves(chunk)


def _list_leaves(array: Any) -> Iterator[pa.Array]:
    import pyarrow as pa

    if pa.types.is_timestamp(array.type):
        yield array.view(pa.int64())
    elif isinstance(array, pa.StructArray):
        for i in range(array.type.num_fields):
            yield from _list_leaves(array.field(i))
    elif isinstance(array, pa.MapArray):
        yield from _list_leaves(array.keys)
        yield from _list_leaves(array.items)
    elif hasattr(array, "values"):
        yield from _list_leaves(array.values)


class Int96Check:
    """Looks at the INT96 timestamps of each row group before it is first read.

    An INT96 has nanoseconds of any day. 64 bits hold those of the years 1677 to 2262, and
    microseconds of all years: pyarrow wraps the former beyond, and cuts the digits that the latter
    lack.
    """

    def __init__(
        self,
        *,
        # whether a user's dataset chose the unit. Then other units than nanoseconds are as asked
        is_given: bool,
    ) -> None:
        self._is_given = is_given
        # Columns of INT96, by what files with equal columns have alike, or by path.
        self._columns: dict[Any, list[str]] = {}
        self._checked: set[tuple[str, int, str]] = set()

    def check(
        self,
        fragments: Iterable[ds.Fragment],  # row groups of Parquet files; others are passed over
        columns: Container[str],  # the whole columns of the files that are read
        options: Any,  # of the scanner; its ``fragment_scan_options`` are used, if it has them
    ) -> None:
        """Raise OptionError if values of `columns` cannot be read as they are."""
        for fragment in fragments:
            if not hasattr(fragment, "row_groups"):
                continue
            if names := [name for name in self._list_columns(fragment) if name in columns]:
                for unit in split_row_groups(fragment):
                    self._check_group(unit, names, options)

    def _list_columns(self, fragment: Any) -> list[str]:
        key = getattr(fragment, "alike", None) or fragment.path
        columns = self._columns.get(key)
        if columns is None:
            unit = fragment.format.read_options.coerce_int96_timestamp_unit
            schema, columns = fragment.physical_schema, []
            if not self._is_given or unit == "ns":
                names = [field.name for field in schema if _has_times(field.type)]
                columns = list_int96(fragment.metadata.schema, names) if names else []
            self._columns[key] = columns
        return columns

    def _check_group(self, unit: Any, names: list[str], options: Any) -> None:
        number = unit.row_groups[0].id
        keys = {(unit.path, number, name) for name in names}
        if keys <= self._checked:
            return
        where = f"row group {number} of {unit.path!r}"
        micros = _read(unit, number, names, "us", options)
        if self._is_given:
            _check_years(where, micros)
        else:
            check_digits(where, micros, _read(unit, number, names, "ns", options))
        self._checked |= keys


def _has_times(type: pa.DataType) -> bool:
    import pyarrow as pa

    if isinstance(type, pa.BaseExtensionType):
        return _has_times(type.storage_type)
    return pa.types.is_timestamp(type) or any(
        _has_times(type.field(i).type) for i in range(type.num_fields)
    )


def _read(unit: Any, number: int, names: list[str], time_unit: str, options: Any) -> pa.Table:
    """Return columns of one row group with their INT96 timestamps in a unit."""
    import pyarrow.dataset as ds

    scan_options = unit.format.default_fragment_scan_options
    format = ds.ParquetFileFormat(
        coerce_int96_timestamp_unit=time_unit, default_fragment_scan_options=scan_options
    )
    fragment = format.make_fragment(unit.path, unit.filesystem, row_groups=[number])
    chosen = {key: options[key] for key in ("fragment_scan_options",) if key in options}
    return fragment.to_table(columns=names, **chosen)
