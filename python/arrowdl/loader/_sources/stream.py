"""`StreamSource`: rows of an Arrow stream, which is read from its start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.forked import Home

if TYPE_CHECKING:
    import pyarrow as pa


class StreamSource(Source):
    """Rows of an Arrow stream."""

    def __init__(
        self,
        open: Callable[[int], Any],  # takes the epoch, and returns an Arrow stream
        is_replayable: bool,  # whether `open` can be called again, and returns the same rows
        column_names: list[str] | None = None,  # the columns of the rows, in order; None if unknown
        is_in_memory: bool = False,  # whether the stream is of arrays that are in memory
        home: Home | None = None,  # as in `Source`
    ) -> None:
        self._open = open
        self.is_in_memory = is_in_memory
        self.home = home
        self._column_names = column_names
        self.is_replayable = is_replayable
        self._is_spent = False
        self._opened: _core.DeviceStream | None = None  # of one pass, to find its schema
        self._dictionaries = Dictionaries(grows=True)

    @property
    def column_names(self) -> list[str] | None:
        return self._column_names

    def open(self, epoch: int) -> _core.DeviceStream:
        """Open the stream of an epoch.

        Raises RuntimeError if the stream has been read, and cannot be opened again, or not in a
        forked child.
        """
        self.check_process()
        if self._opened is not None:
            opened, self._opened = self._opened, None
            return opened
        if self._is_spent:
            raise RuntimeError(
                "this source is an Arrow stream, which is good for one pass, and has been read: "
                "for several epochs give a function that makes the stream, a table, a dataset or "
                "paths"
            )
        self._is_spent = not self.is_replayable
        stream = _core.from_arrow_stream(self._open(epoch))
        if (columns := _core.list_columns(stream.schema)) is not None:
            stream = stream.select(columns)
        stream = self._encode(stream)
        if has_dictionaries(stream.schema):
            stream = check_dictionaries(stream, self._dictionaries)
        return stream

    def find_schema(self) -> _core.Schema:
        """Return the columns of the rows; of one pass, the stream stays open until it is read."""
        stream = self.open(0)
        schema = stream.schema
        if self.is_replayable:
            stream.close()
        else:
            self._opened = stream
        return schema

    def list_user_objects(self) -> list[Any]:
        return [] if self.is_in_memory else [self]

    def _encode(self, stream: _core.DeviceStream) -> _core.DeviceStream:
        """Encode the columns that have a vocabulary."""
        if not any(field.name in self.vocabulary.tables for field in stream.schema.children):
            return stream
        import pyarrow as pa

        first = next(stream, None)
        if first is None:
            return stream
        return _core.from_arrow_stream(
            self.vocabulary.encode(pa.record_batch(array.to("cpu")))
            for arrays in ([first], stream)
            for array in arrays
        )

    def find_vocabulary(self, column: str) -> pa.Array | None:
        """As in `Source`; of the first rows, which all others have to match.

        Raises RuntimeError if the stream can be read once, and has not been read.
        """
        if column in self.vocabulary.tables:
            return self.vocabulary.tables[column]
        if self._dictionaries.find(column) is None:
            if not self.is_replayable:
                raise RuntimeError(
                    f'the dictionary of "{column}" is known when the first batch of this stream '
                    f"has been read: give vocabulary=, or a source that can be read again"
                )
            with closing(self.open(0)) as stream:
                any(len(array) > 0 for array in stream)
        return self._dictionaries.find(column)
