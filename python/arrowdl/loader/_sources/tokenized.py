"""Rows whose text is tokenized before they become batches, since batches depend on the tokens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import accumulate, chain, count
from threading import get_ident
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._files.file_plan import digest
from arrowdl.loader._options.functions import ArrowStep
from arrowdl.loader._options.options import Options
from arrowdl.loader._schema.vocabulary import make_empty
from arrowdl.loader._skipped import RowsError
from arrowdl.loader._sources.base import IndexedSource
from arrowdl.loader._sources.cut_units import cut_units
from arrowdl.loader._sources.shared_folder import SharedFolder
from arrowdl.loader._sources.stream import StreamSource
from arrowdl.loader._sources.wrapped import WrappedSource
from arrowdl.loader._text.tokenize import Tokenize

if TYPE_CHECKING:
    import pyarrow as pa

_ERRORS = b"errors"  # of rows, in the metadata of a file
_TEXTS = 1_024  # that are encoded at a time: what the library returns is larger than the ids


class TokenizedSource(WrappedSource):
    """Rows of another source, with ids in place of a column of text.

    Each text is encoded once: a file of each unit keeps its ids. Worker processes share the files.
    """

    read_rows = IndexedSource.read_rows
    identify = IndexedSource.identify
    estimate_row_bytes = IndexedSource.estimate_row_bytes

    def __init__(
        self, source: IndexedSource, column: str, tokenize: Tokenize, options: Options
    ) -> None:
        import pyarrow as pa

        kinds = [kind.type for kind in pa.schema(source.read([]).schema)]
        has_lists = any(pa.types.is_nested(getattr(kind, "storage_type", kind)) for kind in kinds)
        # Without a text, lists that are packed with it would be longer.
        self._skips = options.skips and not (options.pack and has_lists)
        self._column = column
        self._tokenize = tokenize
        self._folder = SharedFolder("tokens")
        super().__init__(source)

    def _adopt(self, source: IndexedSource) -> None:
        super()._adopt(source)
        self.is_shared, self.is_decoded, self.is_small = True, False, False  # files are mapped
        self._starts = [0, *accumulate(source.units)]
        self._failed: dict[int, dict[int, Exception]] = {}

    def find_failed(self, unit: int) -> Mapping[int, Exception]:
        return {**self._source.find_failed(unit), **self._failed.get(unit, {})}

    def describe(self) -> str:
        return f"{self._source.describe()} {_identify(self._column, self._tokenize)}"

    def select(self, column: str) -> Any:
        source = self._source.select(column)
        return self._wrap(source) if column == self._column else source

    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        return _core.from_arrow_stream(self._read(units, self._source.read(units, readers)))

    def _read(
        self, units: Sequence[int], stream: _core.DeviceStream
    ) -> Iterator[_core.DeviceArray]:
        yield _make_empty(stream, self._column, self._tokenize)
        parts = cut_units(stream, [self.units[unit] for unit in units])
        for unit, arrays in zip(units, parts, strict=True):
            ids, row = self._find_ids(unit, arrays), 0
            for array in arrays:
                for piece in ids.slice(row, len(array)).chunks:
                    yield _replace(array[: len(piece)], self._column, piece)
                    array = array[len(piece) :]
                    row += len(piece)

    def _find_ids(self, unit: int, arrays: Sequence[_core.DeviceArray]) -> pa.ChunkedArray:
        """Return the ids of a unit, from its file, or write it."""
        import pyarrow as pa

        with suppress(OSError):  # without room, texts are encoded again
            self._folder.renew()
        start, rows = self._starts[unit], self.units[unit]
        path = f"{self._folder.path}/{start}-{rows}.arrow"
        errors: dict[int, Exception] = {}
        if os.path.exists(path):
            with pa.memory_map(path) as file:
                table = pa.ipc.open_file(file).read_all()
            ids, error_texts = table.column(0), json.loads(table.schema.metadata[_ERRORS])
            errors = {int(row): ValueError(text) for row, text in error_texts.items()}
        else:
            pieces, row = [], 0
            for piece in chain.from_iterable(map(_cut, arrays)):
                try:
                    pieces.append(_encode(piece, self._column, self._tokenize))
                except RowsError as error:
                    pieces.append(_fill(error, len(piece)))
                    errors |= {row + i: failure for i, failure in error.errors.items()}
                row += len(piece)
            ids = pa.chunked_array(pieces, pa.list_(pa.int32()))
            with suppress(OSError):
                _write(ids, errors, path)
        if errors and not self._skips:
            path, number = self.files.locate_row(start + min(errors))
            where = repr(path) if path else "the source"
            all_errors = RowsError(errors)
            all_errors.add_note(f"row {min(errors)} of the batch is row {number} of {where}")
            raise all_errors
        self._failed[unit] = errors
        return ids


class TokenizedStream(StreamSource):
    """Rows of a stream, with ids in place of a column of text."""

    def __init__(self, source: StreamSource, column: str, tokenize: Tokenize) -> None:
        self.__dict__.update(source.__dict__)
        self._inner, self._column, self._tokenize = source, column, tokenize

    def identify(self) -> str:
        return f"{self._inner.identify()} {_identify(self._column, self._tokenize)}"

    def open(self, epoch: int) -> _core.DeviceStream:
        return _core.from_arrow_stream(self._read(self._inner.open(epoch)))

    def _read(self, stream: _core.DeviceStream) -> Iterator[_core.DeviceArray]:
        yield _make_empty(stream, self._column, self._tokenize)
        for array in stream:
            for piece in _cut(array):
                yield _replace(piece, self._column, _encode(piece, self._column, self._tokenize))


def tokenize_ahead(source: Any, options: Options) -> tuple[Any, Options]:
    """Tokenize the columns whose tokens decide on the batches; return the options of the rest.

    Raises ValueError if a source, whose columns are known, lacks one of these, or if another
    function is called before.
    """
    functions = options.functions
    steps, rest = _divide(options)
    if not steps:
        return source, options
    if source.column_names is not None:
        functions.check_arrow_columns(source.column_names)
    for step in steps:
        identity: Any = {"column": step.column, "tokenize": step.function}
        if source.list_members():
            make = partial(TokenizedSource, **identity, options=options)
            source = source.map_members(make, is_named=True)
        else:
            source = TokenizedStream(source, **identity)
    after = [
        later.function if later.column is None else {later.column: later.function} for later in rest
    ]
    return source, replace(options, functions=replace(functions, transform_arrow=after or None))


def _divide(options: Options) -> tuple[list[ArrowStep], list[ArrowStep]]:
    """Return the steps that are called before batches are made, and those of the batches."""
    sizes, steps = options.sizes, options.functions.arrow_steps
    if options.pack is None and not sizes.is_planned:
        return [], []
    column = None if options.pack else sizes.bucket_by or sizes.token_column
    ahead: list[ArrowStep] = []
    rest: list[ArrowStep] = []
    for step in steps:
        if not isinstance(step.function, Tokenize) or column not in (None, step.column):
            rest.append(step)
        elif any(earlier.column in (None, step.column) for earlier in (*ahead, *rest)):
            raise ValueError(
                f'transform_arrow= changes "{step.column}" before it is tokenized, and the size of '
                "batches depends on its tokens, which are counted first: clean the text in the "
                "source, or by the normalizer of the tokenizer"
            )
        else:
            ahead.append(step)
    return ahead, rest


def _identify(column: str, tokenize: Tokenize) -> str:
    """Return what decides on the ids of a column, for states."""
    library = tokenize.tokenizer
    values = [getattr(library, field.name) for field in fields(library) if field.compare]
    about = [*values, tokenize.max_length, tokenize.add_special_tokens]
    return f"{column!r} {digest(repr(about).encode())}"


def _make_empty(stream: _core.DeviceStream, column: str, tokenize: Tokenize) -> _core.DeviceArray:
    """Return an array without rows, with lists in place of the texts of a stream."""
    import pyarrow as pa

    empty = _core.from_arrow(make_empty(pa.schema(stream.schema)))
    return _replace(empty, column, _encode(empty, column, tokenize))


def _replace(rows: _core.DeviceArray, column: str, ids: pa.Array) -> _core.DeviceArray:
    names = rows.field_names
    columns = [_core.from_arrow(ids) if name == column else rows.field(name) for name in names]
    return _core.make_struct(names, columns)


def _cut(array: _core.DeviceArray) -> Iterator[_core.DeviceArray]:
    return (array[i : i + _TEXTS] for i in range(0, len(array), _TEXTS))


def _encode(rows: _core.DeviceArray, column: str, tokenize: Tokenize) -> pa.ListArray:
    import pyarrow as pa

    return tokenize(pa.array(rows.field(column)))


def _fill(error: RowsError, rows: int) -> pa.ListArray:
    """Return the ids of the rows of a piece, with no ids for those that fail."""
    import pyarrow as pa

    assert error.make_rest is not None
    rest, numbers = error.make_rest(), count()
    index = [len(rest) if i in error.errors else next(numbers) for i in range(rows)]
    return pa.concat_arrays([rest, pa.array([[]], rest.type)]).take(pa.array(index))


def _write(ids: pa.ChunkedArray, errors: Mapping[int, Exception], path: str) -> None:
    """Write a file that other processes see when it is whole."""
    import pyarrow as pa

    part = f"{path}.{os.getpid()}-{get_ident()}"
    try:
        about = {_ERRORS: json.dumps({row: str(error) for row, error in errors.items()})}
        table = pa.table([ids], names=["ids"], metadata=about)
        with pa.ipc.new_file(part, table.schema) as writer:
            writer.write_table(table)
        os.replace(part, path)
    finally:
        with suppress(OSError):  # it has the other name by now
            os.remove(part)
