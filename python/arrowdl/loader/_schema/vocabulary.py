"""`Vocabulary`: the values of dictionary columns, so that a code means the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


class Vocabulary:
    """Code tables by column name: a code is the index of its value."""

    def __init__(self, tables: dict[str, pa.Array]) -> None:
        self.tables = tables
        self._latest: tuple[pa.Schema, pa.Schema] | None = None  # of `encode_schema`

    @classmethod
    def of_user(cls, values: Mapping[str, Any] | None) -> Vocabulary:
        """Read the `vocabulary` of a `Loader`."""
        if values is None:
            return cls({})
        if not isinstance(values, Mapping):
            raise TypeError(
                f"vocabulary={values!r}: give the values by column name, as in "
                '{"color": ["red", "green"]}'
            )
        return cls(
            {str(name): _read_values(name, column_values) for name, column_values in values.items()}
        )

    def check_names(self, columns: Sequence[str]) -> None:
        """Raise ValueError if a table belongs to none of `columns`."""
        for name in self.tables:
            if name not in columns:
                names = list(dict.fromkeys(columns))
                raise ValueError(f'vocabulary= names "{name}", and the columns are {names}')

    def concerns(self, schema: pa.Schema) -> bool:
        """Whether `schema` has a column with a table."""
        return any(name in self.tables for name in schema.names)

    def encode_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of batches that `encode` returns."""
        latest = self._latest
        if latest is None or not latest[0].equals(schema, check_metadata=True):
            self._latest = latest = (schema, self.encode(make_empty(schema)).schema)
        return latest[1]

    def encode(self, batch: pa.RecordBatch, path: str = "") -> pa.RecordBatch:
        """Return `batch` with the codes of these tables in its columns.

        Columns may be dictionaries or plain values. Indices of dictionaries keep their type if it
        holds the codes; plain values get int32.
        """
        import pyarrow as pa

        schema, columns = batch.schema, batch.columns
        for i, field in enumerate(schema):
            values = self.tables.get(field.name)
            if values is not None:
                columns[i] = column = _encode(columns[i], values, field.name, path)
                if column.type != field.type:
                    schema = schema.set(i, field.with_type(column.type))
        return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch

    def encode_table(
        self, table: pa.Table, find_path: Callable[[pa.RecordBatch], str] = lambda batch: ""
    ) -> pa.Table:
        """Return `table` with the codes of these tables; `find_path` finds the file of a batch."""
        import pyarrow as pa

        batches = [*table.to_batches(), make_empty(table.schema)]
        return pa.Table.from_batches(self.encode(batch, find_path(batch)) for batch in batches)


def _read_values(name: str, values: Any) -> pa.Array:
    import pyarrow as pa

    # A set has another order in another process; a mapping may have codes that are not its order.
    is_list = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Set, Mapping))
    if not is_list:
        raise TypeError(
            f'vocabulary: the values of "{name}" are {values!r}: give a list of them, in the order '
            "of their codes"
        )
    try:
        is_arrow = isinstance(values, (pa.Array, pa.ChunkedArray))
        array = values if is_arrow else pa.array(list(values))
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        count = len(array.unique())
    except pa.ArrowException as error:
        raise TypeError(
            f'vocabulary: the values of "{name}" cannot be compared ({error}): give strings, or '
            "numbers, or other values of one type"
        ) from error
    if array.null_count:
        raise ValueError(f'vocabulary: the values of "{name}" have a null, which has no code')
    if count != len(array):
        raise ValueError(f'vocabulary: a value of "{name}" is listed twice: it has one code')
    return array


def _encode(column: pa.Array, values: pa.Array, name: str, path: str) -> pa.DictionaryArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_dictionary = pa.types.is_dictionary(column.type)
    index_type: pa.DataType = pa.int32()
    if is_dictionary:
        index_type = _choose_index_type(column.type.index_type, len(values))
        if column.dictionary.equals(values) and column.type.index_type == index_type:
            # All arrays have one dictionary in memory: a shuffle shares it and compares nothing.
            ordered = column.type.ordered
            indices = column.indices
            return pa.DictionaryArray.from_arrays(indices, values, ordered=ordered, safe=False)
    entries = column.dictionary if is_dictionary else column
    if pa.types.is_null(values.type):  # of an empty list
        values = values.cast(entries.type)
    try:
        if _is_text(entries.type) and not _is_text(values.type):  # "1" and "01" would be one value
            raise pa.ArrowInvalid("strings would be parsed")
        codes = pc.index_in(entries.cast(values.type), value_set=values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f'vocabulary: the column "{name}" is of {entries.type}, and its vocabulary of '
            f"{values.type} ({error}): give values of the column's type"
        ) from error
    is_unknown = pc.and_(pc.is_null(codes), pc.is_valid(entries))
    if is_dictionary:
        is_unknown = is_unknown.take(column.indices)
        codes = codes.take(column.indices)
    unknown = pc.index(is_unknown, True).as_py()
    if unknown >= 0:
        value = column[unknown].as_py()
        where = f" in {path!r}" if path else ""
        raise ValueError(
            f'the column "{name}" has the value {value!r}{where}, which its vocabulary lacks: add '
            "it to vocabulary="
        )
    ordered = is_dictionary and column.type.ordered
    return pa.DictionaryArray.from_arrays(codes.cast(index_type), values, ordered=ordered)


def _is_text(type: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    return any(
        check(type) for check in (types.is_string, types.is_large_string, types.is_string_view)
    )


def _choose_index_type(index_type: pa.DataType, count: int) -> pa.DataType:
    """Return `index_type`, or int32 if its codes would not fit."""
    import pyarrow as pa

    bits = index_type.bit_width - (1 if pa.types.is_signed_integer(index_type) else 0)
    return index_type if count <= 2**bits else pa.int32()


class TableBuilder:
    """Makes one code table of the dictionaries of a source, in its order.

    The table is the longest dictionary if each other one is a prefix of it. Otherwise it has the
    values of all of them, in the order of their first appearance.
    """

    def __init__(self) -> None:
        self._table: pa.Array | None = None

    def add(self, dictionary: pa.Array) -> None:
        """Add a dictionary.

        Raises pyarrow.ArrowNotImplementedError: the values have a type that pyarrow does not
        compare, such as structs.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._table
        if table is None:
            pc.index_in(dictionary.slice(0, 0), value_set=dictionary.slice(0, 0))  # may raise
        if table is None or len(table) == 0:
            self._table = dictionary
        elif table.slice(0, len(dictionary)).equals(dictionary):
            return
        elif dictionary.slice(0, len(table)).equals(table):
            self._table = dictionary
        else:
            table = table.drop_null().unique()
            new = dictionary.filter(pc.is_null(pc.index_in(dictionary, value_set=table)))
            self._table = pa.concat_arrays([table, new.drop_null().unique()])

    def finish(self, type: pa.DictionaryType) -> pa.Array:
        """Return the table, of the values of `type`; null has no code."""
        import pyarrow as pa

        table = self._table
        if table is None:
            return pa.array([], type.value_type)
        return table.drop_null().unique() if table.null_count else table


def make_empty(schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch without rows, of any types."""
    import pyarrow as pa

    # pyarrow.array([], type) does not make each dictionary.
    return pa.record_batch([pa.nulls(0, field.type) for field in schema], schema=schema)


def make_table(schema: pa.Schema) -> pa.Table:
    """Make a table without rows, of any types."""
    import pyarrow as pa

    return pa.Table.from_batches([], schema)  # empty_table() makes no nested extension types


def list_dictionaries(schema: pa.Schema, listed_names: Iterable[str]) -> list[str]:
    """List the dictionary columns of `schema` that are not `listed_names`."""
    import pyarrow as pa

    listed_names = set(listed_names)
    return [f.name for f in schema if pa.types.is_dictionary(f.type) and f.name not in listed_names]
