"""Rows of a database cursor (ADBC) or of a Flight server, released when an epoch ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from arrowdl.loader._schema.vocabulary import make_empty

if TYPE_CHECKING:
    import pyarrow as pa


def read_cursor(
    cursor: Any,
    *,
    is_own: bool,  # whether to close the cursor, too, at the end, or when the epoch is left
) -> Iterator[pa.RecordBatch]:
    """Yield the result of a cursor's last query; first a batch without rows, for the schema."""
    try:
        with cursor.fetch_record_batch() as reader:
            yield make_empty(reader.schema)
            yield from reader
    finally:
        if is_own:
            cursor.close()


def read_flight(stream: Any) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Flight stream; first one without rows, for the schema.

    The call is cancelled when the epoch is left, so that the server stops sending.
    """
    is_done = False
    try:
        yield make_empty(stream.schema)
        for chunk in stream:
            if chunk.data is not None:  # otherwise metadata alone
                yield chunk.data
            del chunk
        is_done = True
    finally:
        if not is_done:
            stream.cancel()
