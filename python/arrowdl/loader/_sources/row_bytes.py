"""How many rows fit into a shuffle buffer: estimates of the bytes of a row, from the data alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from arrowdl import _core
from arrowdl.loader._files.footers import read_statistics

if TYPE_CHECKING:
    import pyarrow as pa

BUFFER_BYTES = 2**28
LANES = 12  # of all sequences together, unless these are more: see `_epoch.lanes`
_LEAST_LANES = 2
_LANES_BYTES = 3 * 2**27
BUFFER_TEXT = "256 MiB"

_ORDER_BYTES = 8  # of a row's place in the order of a buffer
_DIGITS = 3  # binary, of a number of rows: sizes that differ a little give the same number
_OFFSET_BYTES = 4.0
# A page of Parquet ends after this many bytes, but not before this many rows.
_PAGE_BYTES = 2**20
_PAGE_ROWS = 1_024
_SHORT_BYTES = 16.0  # of a string, if nothing is known of it
_PAGE_OVERHEAD = 40  # bytes of a page of numbers that are not numbers
# Rows of a stream are measured after this many: the second number only if rows are small.
_SAMPLES = (64, 1_024)
_SAMPLE_BYTES = 2**24
# Bytes of the values of a Parquet column, by its physical type; not of those of any length.
_WIDTHS = {"BOOLEAN": 0.125, "INT32": 4.0, "INT64": 8.0, "INT96": 8.0, "FLOAT": 4.0, "DOUBLE": 8.0}


class Held(NamedTuple):
    """What a source takes in memory, by all its columns: the same whichever are read."""

    # bytes that a reader holds while it reads a unit, beside the rows that it has given
    unit: float = 0.0
    row: float = 0.0


def measure_held(
    sizes: Mapping[str, float],  # bytes of a row in each column
    rows: int,
) -> Held:
    """Estimate what is held of row groups of `rows` rows: a page of each column."""
    row = sum(sizes.values())
    pages = max(len(sizes) * _PAGE_BYTES, _PAGE_ROWS * row)
    return Held(min(rows * row, pages), row)


def count_lanes(
    held: Held,
    rows: int,  # of the shuffle buffer: with a large one, lanes may hold as much
    max_lanes: int = LANES,
) -> int:
    """Count the lanes of a source, of which few fit into memory if row groups are large."""
    room = max(_LANES_BYTES, rows * held.row)
    return max(_LEAST_LANES, int(min(max_lanes, room / max(1.0, held.unit))))


def count_buffer_rows(
    row_bytes: float,
    held: float = 0.0,  # bytes that are held beside these rows, of which some fit whatever it is
) -> int:
    """Count the rows that fit into a shuffle buffer: the same number for sizes that are near."""
    room = max(BUFFER_BYTES - held, BUFFER_BYTES / 4)
    rows = int(room / (max(0.0, row_bytes) + _ORDER_BYTES))
    shift = max(0, rows.bit_length() - _DIGITS)
    return max(1, rows >> shift << shift)


def measure_type(type: pa.DataType) -> float | None:
    """Return the bytes of a value; None if values of the type differ."""
    import pyarrow as pa

    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return measure_type(type.storage_type)
    if types.is_dictionary(type):
        return measure_type(type.index_type)
    if types.is_null(type):
        return 0.0
    if types.is_fixed_size_list(type):
        item = measure_type(type.value_type)
        return None if item is None else item * type.list_size
    if types.is_struct(type):
        sizes = [measure_type(type.field(i).type) for i in range(type.num_fields)]
        known_sizes = [size for size in sizes if size is not None]
        return sum(known_sizes) if len(known_sizes) == len(sizes) else None
    try:
        return float(type.bit_width) / 8
    except ValueError:
        return None


def measure_schema(schema: pa.Schema) -> float | None:
    """Return the bytes of a row; None if rows of the schema differ."""
    sizes = [measure_type(field.type) for field in schema]
    known_sizes = [size for size in sizes if size is not None]
    return sum(known_sizes) if len(known_sizes) == len(sizes) else None


def estimate_row(
    schema: pa.Schema,
    sizes: Mapping[str, float],  # of a row in columns whose values differ
    # of a row in all columns of that kind that `sizes` lacks, as they are stored; 0 if unknown
    other: float,
) -> float:
    """Estimate the bytes of a row in memory."""
    total, unknown = 0.0, 0
    for field in schema:
        size = measure_type(field.type)
        if size is None:
            size = sizes.get(field.name, sizes.get(field.name.partition(".")[0]))
        if size is None:
            unknown += 1
        else:
            total += size
    return total + max(other if unknown else 0.0, unknown * _SHORT_BYTES)


def measure_row_group(footer: Any, number: int) -> dict[str, float]:
    """Estimate the bytes in memory of a row in each column, by the footer of a Parquet file.

    Encoded values may be much smaller than decoded ones: those of a dictionary are numbers.
    """
    group = footer.row_group(number)
    sizes: dict[str, float] = {}
    rows = max(1, group.num_rows)
    for i in range(group.num_columns):
        chunk = group.column(i)
        name, *levels = chunk.path_in_schema.split(".")
        offsets = _OFFSET_BYTES * rows if levels else 0.0
        nbytes = offsets + _measure_chunk(chunk, footer.schema.column(i))
        sizes[name] = sizes.get(name, 0.0) + nbytes / rows
    return sizes


def _measure_chunk(chunk: Any, column: Any) -> float:
    width = _WIDTHS.get(chunk.physical_type)
    if width is not None:
        return width * float(chunk.num_values)
    stored, values = float(chunk.total_uncompressed_size), max(1.0, float(chunk.num_values))
    if not chunk.has_dictionary_page:
        return stored
    statistics = read_statistics(chunk)
    numbers = chunk.total_compressed_size - chunk.data_page_offset + chunk.dictionary_page_offset
    dictionary, different = stored - numbers, _count_different(chunk, column, statistics, numbers)
    if statistics is not None and statistics.has_min_max:
        value = sum(map(_count_bytes, (statistics.min, statistics.max))) / 2
        if different:  # an empty text may be the least one, and the greatest one short
            value = max(value, dictionary / (2 * different))
    else:  # there may be any number of different values, from one to all
        value = max(0.0, dictionary) / (different or math.sqrt(values))
    return max(stored, values * (_OFFSET_BYTES + value))


def _count_different(chunk: Any, column: Any, statistics: Any, numbers: int) -> float:
    """Estimate how many values a dictionary has, by `numbers` bytes of data pages; 0 if unknown."""
    values = max(1, chunk.num_values)
    nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
    levels = column.max_repetition_level.bit_length()
    if levels or nulls != 0:
        levels += column.max_definition_level.bit_length()
    bits = (8 * (numbers - _PAGE_OVERHEAD) - levels * values) / max(1, values - (nulls or 0))
    if bits < 1:  # or runs of one number, which take none
        return 0.0
    # Between half of the numbers that these bits have, and all. Plain values take more bits.
    return float(min(values, 2 ** min(bits - 0.5, 32)))


def _count_bytes(value: Any) -> float:
    return float(len(value)) if isinstance(value, (str, bytes)) else _SHORT_BYTES


def measure_stream(stream: _core.DeviceStream) -> tuple[float, _core.DeviceStream]:
    """Return the bytes of a row, by the first rows of a stream, and the stream with all rows."""
    taken: list[_core.DeviceArray] = []
    size = 0.0
    for rows in _SAMPLES:
        while sum(map(len, taken)) < rows and (array := next(stream, None)) is not None:
            taken.append(array)
        if not taken:
            return 0.0, stream
        # Copied: the parts that a stream comes in do not count.
        sample = next(_core.chain([*taken, taken[0][:0]]).slice(0, rows).rebatch(rows), None)
        if sample is not None:
            size = sample.nbytes / len(sample)
        if size * _SAMPLES[-1] > _SAMPLE_BYTES:
            break
    return size, _core.from_arrow_stream(_join(taken, stream))


def _join(
    taken: list[_core.DeviceArray], stream: _core.DeviceStream
) -> Iterator[_core.DeviceArray]:
    while taken:
        yield taken.pop(0)
    yield from itertools.chain(stream)
