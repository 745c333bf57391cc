"""The user's functions of each Arrow record batch, or of its columns, before it becomes tensors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from functools import partial
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl._frameworks.threads import set_up_thread
from arrowdl.loader._batches.draws import Drawing, Draws
from arrowdl.loader._batches.failures import FunctionError, Left, call
from arrowdl.loader._batches.rows import take_rows
from arrowdl.loader._clock import Clock
from arrowdl.loader._options.functions import ArrowStep, find_arrow_column, list_new_columns
from arrowdl.loader._schema.dictionaries import are_same, find_dictionaries, has_dictionaries
from arrowdl.loader._schema.vocabulary import Vocabulary, list_dictionaries
from arrowdl.loader._skipped import RowsError

if TYPE_CHECKING:
    import pyarrow as pa

Skip = Callable[[Callable[..., Any], _core.DeviceArray, int], Any]


def transform_stream(
    stream: _core.DeviceStream,  # structs in host memory
    # Each takes a ``pyarrow.RecordBatch``, and returns a record batch, a table, another Arrow
    # struct, or a mapping from column name to Arrow array, tensor or list, with as many rows; or it
    # takes a ``pyarrow.Array``, and returns such a value of a column.
    steps: Sequence[ArrowStep],
    draws: Draws,
    vocabulary: Vocabulary,  # of the dictionary columns that the steps make
    describe: Callable[[int], str],  # describes a batch by its index, for errors
    locate: Callable[[int, int], tuple[str, int]] | None,  # see `RowStream`
    clock: Clock,  # of the threads that call the steps
    *,
    ahead: int,  # arrays for which the steps are called at a time; these draw by their generators
    # copy what the steps return, before they are called again: they may keep the memory, and write
    # to it
    copy: bool,
    # takes what makes a batch of an array, and may note which rows are left, the array and its
    # index. Makes the batch, of other rows if it fails
    skip: Skip | None = None,
) -> _core.DeviceStream:
    """Call `steps` with each array of `stream`, and return a stream of the results.

    Raises TypeError or ValueError if a step returns something else, another number of rows, other
    types than for the first batch, or a dictionary column whose codes have no fixed meaning. Errors
    of steps are raised with the batch as a note.
    """
    import pyarrow as pa

    first = next(stream, None)
    if first is None:
        return stream
    schema: list[pa.Schema] = []
    bound = [_BoundStep(step, draws, number) for number, step in enumerate(steps)]
    new, names = list_new_columns(steps), first.field_names

    def transform(seed: int, array: _core.DeviceArray, left: Left | None = None) -> pa.RecordBatch:
        batch = source_batch = pa.record_batch(array)
        with draws.seeded(seed):
            for step in bound:
                batch = step.run(batch, seed) if skip is None else step.run(batch, seed, call, left)
        return _encode(batch, source_batch, vocabulary)

    def convert(index: int, array: _core.DeviceArray) -> tuple[int, pa.RecordBatch]:
        try:
            set_up_thread()
            seeded = partial(transform, draws.find_seed(index))
            with clock.measure("transform"):
                transformed = seeded(array) if skip is None else skip(seeded, array, index)
        except Exception as error:
            _name_place(error, index, describe, locate)
            raise
        return index, transformed

    def finish(index: int, transformed: pa.RecordBatch) -> _core.DeviceArray:
        if not schema:
            vocabulary.check_names([*names, *transformed.schema.names])
            schema.append(transformed.schema)
        _check_schema(transformed, schema[0], describe(index))
        result = _core.from_arrow(transformed)
        return _copy_columns(result, new) if copy else result

    arrays = enumerate(chain([first], stream))
    del first
    results = starmap(convert, arrays) if ahead < 2 else _call_ahead(convert, arrays, ahead)
    return _core.from_arrow_stream(starmap(finish, results))


def _call_ahead(
    function: Callable[[int, _core.DeviceArray], Any],
    arrays: Iterator[tuple[int, _core.DeviceArray]],
    count: int,
) -> Iterator[Any]:
    """Yield what a function returns for each array, in order; call it with `count` at a time."""
    calls: deque[Future[Any]] = deque()
    is_read = False
    with ThreadPoolExecutor(count, "arrowdl-arrow") as pool:
        while calls or not is_read:
            if is_read or len(calls) == count:
                yield calls.popleft().result()
                continue
            try:
                calls.append(pool.submit(function, *next(arrays)))
            except StopIteration:
                is_read = True
            except Exception as error:  # raised after the results of the arrays before
                is_read = True
                calls.append(Future())
                calls[-1].set_exception(error)


def _copy_columns(batch: _core.DeviceArray, new: Set[str]) -> _core.DeviceArray:
    """Copy all columns but those that have memory of their own."""
    if not new:
        return deepcopy(batch)
    names = batch.field_names
    columns = [batch.field(i) for i in range(len(names))]
    copies = [
        column if name in new else deepcopy(column)
        for name, column in zip(names, columns, strict=True)
    ]
    return _core.make_struct(names, copies)


class _BoundStep:
    """A step that gets its draws."""

    def __init__(self, step: ArrowStep, draws: Draws, number: int) -> None:
        self._column = step.column
        # The function of a user may change what one of arrowdl returns to it.
        self._is_own = type(step.function).__module__.startswith("arrowdl.loader.")
        draw = draws.bind(step.function, number)
        self._draw = draw if step.column is None else partial(_call_naming, step.column, draw)

    def run(
        self,
        batch: pa.RecordBatch,
        seed: int,
        call: Callable[..., Any] = lambda function, *arguments: function(*arguments),
        left: Left | None = None,
    ) -> pa.RecordBatch:
        """Return the batch that the function makes, of rows that are `left`; `call` calls it."""
        if self._column is None:
            return _read_result(call(self._draw, batch, seed), batch)
        index, rows = find_arrow_column(self._column, batch.schema.names), _core.from_arrow(batch)
        try:
            value = call(self._draw, batch.column(index), seed)
        except FunctionError as failure:
            error = failure.error
            if left is None or not (self._is_own and isinstance(error, RowsError)):
                raise
            if error.make_rest is None or not (remaining := left.drop(error.errors)):
                raise
            rows, value = take_rows(rows, remaining), call(error.make_rest)
        return _replace_column(rows, index, value)


def _name_place(
    error: Exception,
    index: int,  # of the batch
    describe: Callable[[int], str],
    locate: Callable[[int, int], tuple[str, int]] | None,
) -> None:
    """Say in an error which batch it is of, and where the first of its bad rows is."""
    error.add_note(f"in transform_arrow, with {describe(index)}")
    if isinstance(error, RowsError) and locate is not None:
        row = min(error.errors)
        with suppress(Exception):  # the source may be gone
            path, number = locate(index, row)
            where = repr(path) if path else "the source"
            error.add_note(f"row {row} of the batch is row {number} of {where}")


def _call_naming(column: str, draw: Drawing, array: pa.Array, seed: int) -> Any:
    """Call a function of a column, whose errors name it."""
    try:
        return draw(array, seed)
    except Exception as error:
        error.add_note(f'in the function of the column "{column}"')
        raise


def _replace_column(rows: _core.DeviceArray, index: int, value: Any) -> pa.RecordBatch:
    import pyarrow as pa

    names = rows.field_names
    columns = [rows.field(i) for i in range(len(names))]
    columns[index] = _read_column(names[index], value, len(rows))
    return pa.record_batch(_core.make_struct(names, columns))


def _read_result(result: Any, source_batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    if isinstance(result, Mapping):
        rows = source_batch.num_rows
        arrays = {str(name): _read_column(name, value, rows) for name, value in result.items()}
        result = _core.make_struct(list(arrays), list(arrays.values()))
        batch = pa.record_batch(result) if arrays else source_batch.select([])
    elif isinstance(result, pa.RecordBatch):
        batch = result
    elif any(hasattr(result, f"__arrow_c_{kind}__") for kind in ("array", "stream")):
        array = _core.from_arrow(result)
        if array.schema.format != "+s":
            raise _refuse(f"an array of {array.type}")
        batch = pa.record_batch(array)
    else:
        raise _refuse(type(result).__name__)
    if batch.num_rows != source_batch.num_rows:
        raise ValueError(
            f"transform_arrow returned {batch.num_rows} rows for a batch of "
            f"{source_batch.num_rows}: return as many rows, in their order (states and ranks count "
            "them); filter= drops rows of files"
        )
    return batch


def _refuse(what: str) -> TypeError:
    return TypeError(
        f"transform_arrow returned {what}: return a pyarrow.RecordBatch or Table, or a dict of "
        "arrays by column name; transform= takes a function of tensors"
    )


def _read_column(name: Any, value: Any, rows: int) -> _core.DeviceArray:
    """Return a column of a dict: an Arrow array, a list, or a tensor whose rows come first."""
    import pyarrow as pa

    is_text = getattr(getattr(value, "dtype", None), "kind", "") in tuple("OSUMm")
    if any(hasattr(value, f"__arrow_c_{kind}__") for kind in ("array", "stream")):
        array = _core.from_arrow(value)
    elif isinstance(value, (list, tuple)) or is_text:
        array = _core.from_arrow(pa.array(value))
    else:
        array = _core.to_arrow_device(value)
    if len(array) != rows:
        raise ValueError(
            f'transform_arrow returned {len(array)} rows in the column "{name}" for a batch of '
            f"{rows}: return as many rows, in their order"
        )
    return array


def _encode(
    batch: pa.RecordBatch, source_batch: pa.RecordBatch, vocabulary: Vocabulary
) -> pa.RecordBatch:
    """Encode the columns that have a vocabulary; other dictionaries must be those of the source."""
    batch = vocabulary.encode(batch)
    array = _core.from_arrow(batch)
    if not has_dictionaries(array.schema):
        return batch
    source_dictionaries = dict(find_dictionaries(_core.from_arrow(source_batch)))
    for path, dictionary in find_dictionaries(array):
        if any(
            path in tables and are_same(tables[path], dictionary)
            for tables in (vocabulary.tables, source_dictionaries)
        ):
            continue
        if path in list_dictionaries(batch.schema, ()):
            raise ValueError(
                f'transform_arrow made the dictionary column "{path}", whose codes may mean '
                f'other values in another batch: give vocabulary={{"{path}": [...]}} with '
                "all values, or return the codes as integers"
            )
        raise ValueError(
            f'transform_arrow made a dictionary within a column, "{path}", whose codes may mean '
            "other values in another batch: return the codes as integers"
        )
    return batch


def _check_schema(batch: pa.RecordBatch, first: pa.Schema, where: str) -> None:
    if batch.schema.equals(first):
        return
    columns, other = _list_types(batch.schema), _list_types(first)
    changed = [name for name in (*columns, *other) if columns.get(name) != other.get(name)]
    what = f"its columns are {list(columns)}, and were {list(other)}"
    if changed:
        now, before = columns.get(changed[0], "missing"), other.get(changed[0], "missing")
        what = f'"{changed[0]}" is {now}, and was {before}'
    raise ValueError(
        f"transform_arrow returned another schema for {where} than for the first batch: {what}. "
        "Return the same names and types for each batch, as in pyarrow.array(values, type)"
    )


def _list_types(schema: pa.Schema) -> dict[str, str]:
    return {field.name: f"{field.type}{'' if field.nullable else ' not null'}" for field in schema}
