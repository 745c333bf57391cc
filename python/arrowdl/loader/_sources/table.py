"""`TableSource`: rows of a table in memory. `DeviceSource`: those of arrays on a device."""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Self

from arrowdl import _core
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._schema.fields import choose_columns, select_fields
from arrowdl.loader._schema.vocabulary import (
    TableBuilder,
    Vocabulary,
    list_dictionaries,
)
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.files import NamedVersion, SourceFiles
from arrowdl.loader._sources.row_bytes import estimate_row

if TYPE_CHECKING:
    import pyarrow as pa

# Small blocks of a table mix well when they are permuted; large ones cost less to put together.
_BLOCKS_OF_BUFFER = 512
_MOST_BLOCK_ROWS = 4_096
# A table of any length has at most that number: the time to the first batch, and the memory for the
# order, do not grow with its rows.
_MOST_BLOCKS = 2**14
# Gathering this many bytes takes less time than starting a thread.
_SMALL_BYTES = 2**17


class ChunkSource(IndexedSource):
    """Rows of arrays, one after the other, in units of one length."""

    _arrays: list[_core.DeviceArray]
    _total: int

    def _set_units(self, rows: int) -> None:
        """Cut units of `rows` rows; the chunks may depend on the threads that made the table."""
        self._unit_rows = rows
        whole, rest = divmod(self._total, rows)
        self.units = [rows] * whole + [rest] * (rest > 0)

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        self._load()
        first = _core.chain([*self._slice_units(units[:1])] or [self._arrays[0][:0]])
        if len(units) < 2:
            return self._check(first)
        arrays = chain(first, self._slice_units(units[1:]))
        return self._check(_core.read_arrays(arrays, first.schema, first.device_type))

    def _slice_units(self, units: Sequence[int]) -> Iterator[_core.DeviceArray]:
        """Yield the rows of units, an array for each chunk that has some."""
        for unit in units:
            start = unit * self._unit_rows
            for i, rows in self._find_slices(start, start + self.units[unit]):
                yield self._arrays[i][rows]

    def find_arrays(self) -> list[_core.DeviceArray]:
        self._load()
        return list(self._check(_core.chain(self._arrays)))

    def _load(self) -> None:
        """Make the arrays, when they are first read."""
        return

    def _check(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        return stream

    def _find_slices(self, start: int, stop: int) -> Iterator[tuple[int, slice]]:
        """Yield the index of each chunk with rows of `start` to `stop`, and the slice of them."""
        ends = self._ends
        for i in range(bisect_right(ends, start), len(ends)):
            begin = ends[i] - len(self._arrays[i])
            if begin >= stop:
                break
            yield i, slice(max(start - begin, 0), stop - begin)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self._arrays)))

    def cut_for_shuffle(self, rows: int) -> ChunkSource:
        cut = copy(self)
        least = -(-self._total // _MOST_BLOCKS)
        block = max(min(_MOST_BLOCK_ROWS, rows // _BLOCKS_OF_BUFFER), least)
        cut._set_units(max(1, self._total if rows >= self._total else block))
        return cut


class TableSource(ChunkSource):
    """Rows of a table."""

    def __init__(
        self,
        table: pa.Table,
        columns: list[str] | None,
        snapshot: str = "",  # as in `IndexedSource`
    ) -> None:
        self._schema = table.schema
        self._snapshot = snapshot
        chosen = choose_columns(columns, self._schema)
        selected = table if chosen is None else select_fields(table, chosen)
        self._table = _unify_dictionaries(selected)
        self._dictionaries = Dictionaries()
        self._arrays: list[_core.DeviceArray] = []  # the chunks, made when they are first read
        self._total = table.num_rows
        is_short = self._total <= _MOST_BLOCK_ROWS
        self.is_small = is_short and self._table.nbytes <= _SMALL_BYTES
        self._set_units(max(1, self._total))

    @property
    def column_names(self) -> list[str]:
        return list(self._table.column_names)

    def estimate_row_bytes(self) -> float:
        columns = zip(self._table.schema, self._table.columns, strict=True)
        sizes = {field.name: column.nbytes / max(1, self._total) for field, column in columns}
        return estimate_row(self._table.schema, sizes, 0.0)

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        if any(name in vocabulary.tables for name in self._table.column_names):
            self._table = vocabulary.encode_table(self._table, self._find_file)
            self._arrays = []
            self.__dict__.pop("_ends", None)
            self._dictionaries = Dictionaries()

    def _find_file(self, batch: pa.RecordBatch) -> str:
        """Return the path of the file that a batch is of; empty if it is not of a file."""
        return ""

    def find_vocabulary(self, column: str) -> pa.Array | None:
        import pyarrow as pa

        if column not in self._table.column_names:
            return None
        field = self._table.schema.field(column)
        if not pa.types.is_dictionary(field.type):
            return None
        dictionaries = [chunk.dictionary for chunk in self._table.column(column).chunks if chunk]
        empty = pa.array([], field.type.value_type)
        return max(dictionaries, key=len, default=empty)  # the others are prefixes of it

    def _load(self) -> None:
        if not self._arrays:
            batches = self._table.to_batches() or [self._table.slice(0, 0)]
            self._arrays = [_core.from_arrow(batch) for batch in batches]

    def _check(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        if has_dictionaries(stream.schema):
            self._dictionaries.check(_core.from_arrow(self._table.slice(0, 1)))
            stream = check_dictionaries(stream, self._dictionaries)
        return stream

    def __getstate__(self) -> dict[str, Any]:
        table = self._table
        return {key: value for key, value in self.__dict__.items() if key != "_ends"} | {
            "_arrays": [],
            "_schema": self._schema.serialize().to_pybytes(),
            "_table": table if _keeps_fields(table.schema) else _write_stream(table),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        import pyarrow as pa

        self.__dict__.update(state)
        self._schema = pa.ipc.read_schema(pa.py_buffer(state["_schema"]))
        if isinstance(state["_table"], pa.Buffer):
            self._table = pa.ipc.open_stream(state["_table"]).read_all()

    @property
    def files(self) -> SourceFiles:
        return NamedVersion(self._snapshot, self.refuse_plan())

    def describe(self) -> str:
        revision = f" {self._snapshot}" if self._snapshot else ""
        return f"{self._schema.to_string()} {self.num_rows}{revision}"


class DeviceSource(ChunkSource):
    """Rows of record batches on a device, which are cut and shuffled there.

    Raises ValueError if the schemas differ, or a column is missing.
    """

    def __init__(
        self,
        arrays: Sequence[_core.DeviceArray],  # struct arrays of one schema, at least one
        columns: list[str] | None,
    ) -> None:
        stream = _core.chain(arrays)
        self._schema = stream.schema
        columns = _core.list_columns(self._schema) if columns is None else columns
        self._arrays = list(stream if columns is None else stream.select(columns))
        self._columns = columns or [field.name for field in self._schema.children]
        self._total = sum(map(len, self._arrays))
        self._set_units(max(1, self._total))

    @property
    def column_names(self) -> list[str]:
        return list(self._columns)

    def estimate_row_bytes(self) -> float:
        return sum(array.nbytes for array in self._arrays) / max(1, self._total)

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        super().use_vocabulary(vocabulary)
        for name in self._columns:
            if name in vocabulary.tables:
                raise ValueError(
                    f'vocabulary= encodes values on the CPU, and "{name}" is on '
                    f"{self._arrays[0].device}: encode it before it is copied to the device"
                )

    def find_vocabulary(self, column: str) -> pa.Array | None:
        import pyarrow as pa

        if column not in self._columns:
            return None
        values = self._arrays[0][column]
        if values.schema.dictionary is None:
            return None
        return pa.array(values[:1].to("cpu")).dictionary

    def describe(self) -> str:
        return f"{self._schema} {self.num_rows}"

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "the rows are in device memory, which worker processes cannot read: leave num_workers "
            "out, the device does the work"
        )


def _keeps_fields(schema: pa.Schema) -> bool:
    """Whether `schema` is the same after pickling."""
    # pyarrow 26 pickles a fixed-size list without the field of its items, which has their extension
    # type and name: `pa.FixedSizeListType.__reduce__`.
    return bool(pickle.loads(pickle.dumps(schema)).equals(schema, check_metadata=True))


def _write_stream(table: pa.Table) -> pa.Buffer:
    """Write a table as an IPC stream, which keeps the fields of all types."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _unify_dictionaries(table: pa.Table) -> pa.Table:
    """Use one dictionary for all chunks; codes are copied if there were several."""
    import pyarrow as pa

    try:
        return table.unify_dictionaries()
    except pa.ArrowNotImplementedError:  # nested values: dictionaries are compared instead
        return table
    except pa.ArrowInvalid:  # a null is among the values, or the indices are too narrow
        return _encode_dictionaries(table)


def _encode_dictionaries(table: pa.Table) -> pa.Table:
    """Use one code table for each dictionary column, with wider indices if they are needed."""
    import pyarrow as pa

    tables = {}
    for name in list_dictionaries(table.schema, ()):
        builder = TableBuilder()
        try:
            for chunk in table.column(name).chunks:
                builder.add(chunk.dictionary)
        except pa.ArrowNotImplementedError:  # compared instead
            continue
        tables[name] = builder.finish(table.schema.field(name).type)
    return Vocabulary(tables).encode_table(table)
