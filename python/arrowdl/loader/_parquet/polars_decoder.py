"""`PolarsDecoder`: numbers and bools of row groups, decoded by polars.

polars has no call that reads one row group, but a slice of a lazy frame reads only the row groups
that have its rows.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from arrowdl._lifecycle import in_forked_child
from arrowdl.loader._skipped import describe

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_log = logging.getLogger("arrowdl.loader")

# The values whose decoding takes as long as a call, and as long as a column of a row group in the
# footer: pyarrow is faster where a call has fewer of them.
_FEWEST_VALUES = 2**18
_VALUES_OF_FOOTER = 3_000
# The rows of a larger row group are decoded part by part.
_MOST_BYTES = 2**27

# Files whose footers are kept.
_MOST_FRAMES = 64

_has_forked = False


def _after_fork_in_child() -> None:
    global _has_forked
    _has_forked = True


in_forked_child(_after_fork_in_child)


class PolarsDecoder:
    """Decodes columns of row groups of local Parquet files.

    Raises ImportError if polars is not installed.
    """

    def __init__(
        self,
        schema: pa.Schema,  # of the columns that are read
    ) -> None:
        self._polars = import_polars()
        self._schema = schema
        self._frames: dict[str, Any] = {}
        self._has_failed = False
        # the columns that it decodes: those of integers, of floats of 32 and 64 bits and of bools,
        # in which polars and Arrow have the same values
        self.names = [
            field.name for field in schema if _is_plain(field.type) and not _is_pattern(field.name)
        ]

    def fits(self, group: pq.RowGroupMetaData, metadata: pq.FileMetaData) -> bool:
        """Whether it decodes a row group of the file of `metadata` faster than pyarrow.

        Never in a forked process: the threads of polars are gone, and its calls would not return.
        """
        values = group.num_rows * len(self.names)
        footer = metadata.num_row_groups * metadata.num_columns
        return (
            not _has_forked
            and values >= max(_FEWEST_VALUES, footer * _VALUES_OF_FOOTER)
            and group.total_byte_size <= _MOST_BYTES
        )

    def read(self, path: str, start: int, rows: int) -> dict[str, pa.ChunkedArray] | None:
        """Return the columns `names` of `rows` rows from `start` on.

        None if polars fails, or finds anything else than pyarrow: then pyarrow says why, or knows
        better.
        """
        try:
            frame = self._open(path).slice(start, rows).collect(engine="in-memory")
            table = frame.to_arrow()
        except (Exception, self._polars.exceptions.PanicException) as error:
            self._give_up(path, describe(error))
            return None
        types = [self._schema.field(name).type for name in self.names]
        if (table.num_rows, table.column_names, table.schema.types) != (rows, self.names, types):
            self._give_up(path, f"it has made {table.num_rows} rows of {table.schema}")
            return None
        return dict(zip(table.column_names, table.columns, strict=True))

    def _open(self, path: str) -> Any:
        """Return the lazy frame of a file, which keeps its footer."""
        frame = self._frames.get(path)
        if frame is None:
            lazy = self._polars.scan_parquet(
                path, glob=False, hive_partitioning=False, use_statistics=False
            )
            frame = lazy.select(self.names)
            if len(self._frames) >= _MOST_FRAMES:
                self._frames.clear()
            self._frames[path] = frame
        return frame

    def _give_up(self, path: str, why: str) -> None:
        """Leave a row group to pyarrow; the log says so once."""
        if not self._has_failed:
            self._has_failed = True
            _log.warning("pyarrow decodes what polars cannot, such as rows of %r: %s", path, why)


def import_polars() -> Any:
    """Return the module.

    Raises ImportError: with what to install.
    """
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            'Storage.decoder="polars" needs polars: pip install polars, or leave it out'
        ) from error
    return polars


def _is_pattern(name: str) -> bool:
    """Whether polars selects other columns by a name."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def _is_plain(type: pa.DataType) -> bool:
    import pyarrow as pa

    is_number = pa.types.is_integer(type) or pa.types.is_float32(type) or pa.types.is_float64(type)
    return bool(is_number or pa.types.is_boolean(type))
