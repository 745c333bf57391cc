"""The two kinds of source: `IndexedSource`, read in any order, and `StreamSource`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._clock import Clock
from arrowdl.loader._files.file_plan import FilePlan, digest
from arrowdl.loader._schema.dictionaries import Dictionaries, check_dictionaries, has_dictionaries
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.forked import Home
from arrowdl.loader._sources.row_bytes import Held, measure_schema
from arrowdl.loader._storage.readers import Stamp

if TYPE_CHECKING:
    import pyarrow as pa


_SAMPLE_ROWS = 64


class UnitOrder:
    """The units of a source in the order of an epoch.

    Attributes
    ----------
    units : sequence of int
        Indices of the units, in order.
    ends : list of int
        Rows up to the end of each unit, in order.
    """

    def __init__(self, source: IndexedSource, units: Sequence[int]) -> None:
        self.units = units
        self.ends: list[int] = list(accumulate(source.units[unit] for unit in units))

    def find(self, row: int) -> int:
        """Return the position in the order of the unit that has `row`."""
        return bisect_right(self.ends, row)


class IndexedSource(ABC):
    """Rows in units of known length that can be read in any order: row groups, record batches.

    Attributes
    ----------
    units : list of int
        Rows of each unit.
    is_shared : bool
        Whether the memory of the rows may have another user, or be read again in another epoch.
        Rows that stay in order are copied then, if batches are writable.
    is_decoded : bool
        Whether rows are read into new memory that has no other user: they may be moved in it, and
        values written in place of nulls. Columns may share memory where the rows are null.
    decodes_units : bool
        Whether a row can only be read with its whole unit: row groups of Parquet, other files.
    rows_at_once : int
        Rows of an array of rows that are read in parts.
    is_small : bool
        Whether all rows are in memory and gathered before a thread would have started.
    vocabulary : Vocabulary
        That the user gave.
    clock : Clock, optional
        Of the threads that read and decode files; None if those of another library do.
    home : Home, optional
        The process with the threads that read; None if any process can read.
    """

    units: list[int]
    is_shared = True
    is_decoded = False
    decodes_units = False
    rows_at_once = 4_096
    is_small = False
    vocabulary: Vocabulary = Vocabulary({})
    clock: Clock | None = None
    home: Home | None = None

    @property
    @abstractmethod
    def column_names(self) -> list[str] | None:
        """The columns of the rows, in order; None if unknown."""

    @property
    def snapshot(self) -> str:
        """The name of the table version that is read; empty for a source without versions."""
        return ""

    def list_stamps(self) -> Sequence[Stamp]:
        """Return what is known of the files, in their order; none of a source without files."""
        return ()

    @abstractmethod
    def read(self, units: Sequence[int], readers: int = 1) -> _core.DeviceStream:
        """Read the rows of `units`, in that order.

        Parameters
        ----------
        units : sequence of int
        readers : int
            Streams that this process reads side by side: they share the memory for reading ahead.
        """

    @abstractmethod
    def describe(self) -> str:
        """Describe what decides on the order of the rows, for the check of states."""

    def find_nulls(self, column: str) -> str:
        """Return a sentence that names a file with nulls in `column`; empty if none is known."""
        return ""

    def locate_row(self, row: int) -> tuple[str, int]:
        """Return the path of the file that has a row, "" if none does, and its number there."""
        return "", row

    def count_unfiltered(self) -> int | None:
        """Count the rows of its files, which `filter` may drop; None if that is not known."""
        return None

    def count_files(self) -> int:
        """Count the files; a source that is none counts as one."""
        return 1

    def find_group(self, unit: int) -> int | None:
        """Return the number of the row group that is a unit, in its file; None for others."""
        return None

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Read the columns that have a vocabulary as its codes; called before anything is read.

        Raises
        ------
        ValueError
            A value that is in memory is not in it.
        """
        self.vocabulary = vocabulary

    def use_decoder(self, decoder: str) -> None:
        """Decode Parquet files by another library than pyarrow; called before anything is read.

        Raises
        ------
        ValueError
            The source has no Parquet files.
        """
        _refuse_decoder(self, decoder)

    def prepare(self) -> None:
        """Find what each worker process would find again; called before they are made."""
        return

    def find_vocabulary(self, column: str) -> pa.Array | None:
        """Return the values of a dictionary column, in the order of the codes; None for others."""
        return None

    def describe_unread(self) -> str:
        """Say for states of which rows the dictionaries could not be read; empty if of none."""
        return ""

    def find_footers(self) -> Any:
        """Return what keeps the footers of files over a network; None if nothing does."""
        return None

    def make_plan(self) -> FilePlan:
        """Return what was found out about the files.

        Raises
        ------
        TypeError
            The source has no files, or maps them.
        """
        raise TypeError(
            f"{type(self).__name__} has no plan: only Parquet files, and Arrow IPC files that are "
            "not mapped (memory_map=False, or of a store), have footers that are read when a "
            "Loader is made"
        )

    def check_process(self) -> None:
        """Raise RuntimeError in a forked child without the threads that read."""
        if self.home is not None:
            self.home.check()

    def check_unchanged(self) -> None:
        """Raise OSError if a file has changed; called before each epoch."""
        return

    def check_read(self) -> None:
        """Raise OSError if a file changed while it was read; called after each epoch."""
        return

    @property
    def num_rows(self) -> int:
        """Rows of all units."""
        return sum(self.units)

    def cut_for_shuffle(self, rows: int) -> IndexedSource:
        """Return the same rows in the units that a shuffle permutes, with a buffer of `rows`."""
        return self

    def estimate_row_bytes(self) -> float:
        """Estimate the bytes of a row in memory: by the data, alike on every machine."""
        import pyarrow as pa

        fixed = measure_schema(pa.schema(self.read([]).schema))
        if fixed is not None or not self.num_rows:
            return fixed or 0.0
        order = UnitOrder(self, range(len(self.units)))
        sample = [*self.read_rows(0, min(_SAMPLE_ROWS, self.num_rows), order)]
        return float(sum(array.nbytes for array in sample) / max(1, sum(map(len, sample))))

    def measure_held(self) -> Held:
        """Estimate what readers hold: by the data, alike on every machine."""
        return Held()

    def select(self, column: str) -> IndexedSource:
        """Return the same rows with one column; others may be there if they cost nothing."""
        return self

    def for_writing(self) -> IndexedSource:
        """Return the same rows for writable batches, in private memory if that costs no copy."""
        return self

    def find_arrays(self) -> list[_core.DeviceArray] | None:
        """Return arrays of all rows, in order, if they are in memory or mapped; otherwise None."""
        return None

    def check_taken(self, numbers: _core.DeviceArray) -> None:
        """Raise OSError if a mapped file with one of the rows has changed; called after they were
        taken from `find_arrays`."""
        return

    def read_rows(
        self, start: int, stop: int, order: UnitOrder, readers: int = 1
    ) -> _core.DeviceStream:
        """Read rows `start` to `stop` of the units in `order`, and no units without such rows."""
        first = order.find(start)
        last = bisect_left(order.ends, stop)
        begin = order.ends[first - 1] if first > 0 else 0
        units = order.units[first : last + 1]
        return self.read(units, readers).slice(start - begin, stop - start)


class StreamSource:
    """Rows of an Arrow stream.

    Parameters
    ----------
    open : callable
        Takes the epoch, and returns an Arrow stream.
    is_replayable : bool
        Whether `open` can be called again, and returns the same rows.
    column_names : list of str, optional
        The columns of the rows, in order; None if unknown.
    is_in_memory : bool
        Whether the stream is of arrays that are in memory.
    home : Home, optional
        As in `IndexedSource`.

    Attributes
    ----------
    is_shared : bool
    vocabulary : Vocabulary
        As in `IndexedSource`.
    """

    is_shared = True
    vocabulary: Vocabulary = Vocabulary({})

    def __init__(
        self,
        open: Callable[[int], Any],
        is_replayable: bool,
        column_names: list[str] | None = None,
        is_in_memory: bool = False,
        home: Home | None = None,
    ) -> None:
        self._open = open
        self.is_in_memory = is_in_memory
        self._home = home
        self.column_names = column_names
        self.is_replayable = is_replayable
        self._is_spent = False
        self._dictionaries = Dictionaries(grows=True)

    def find_nulls(self, column: str) -> str:
        """As in `IndexedSource`."""
        return ""

    def open(self, epoch: int) -> _core.DeviceStream:
        """Open the stream of an epoch.

        Raises
        ------
        RuntimeError
            The stream has been read, and cannot be opened again, or not in a forked child.
        """
        self.check_process()
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

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        """As in `IndexedSource`."""
        self.vocabulary = vocabulary

    def use_decoder(self, decoder: str) -> None:
        """As in `IndexedSource`."""
        _refuse_decoder(self, decoder)

    def prepare(self) -> None:
        """As in `IndexedSource`."""
        return

    def check_process(self) -> None:
        """As in `IndexedSource`."""
        if self._home is not None:
            self._home.check()

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
        """As in `IndexedSource`; of the first rows, which all others have to match.

        Raises
        ------
        RuntimeError
            The stream can be read once, and has not been read.
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


def _refuse_decoder(source: Any, decoder: str) -> None:
    raise ValueError(
        f'decoder="{decoder}" decodes Parquet files, and this source has none that the Loader '
        "decodes itself: leave it out"
    )


def fingerprint(source: IndexedSource) -> str:
    """Return 16 hexadecimal digits, which differ if the order of the rows differs."""
    return digest(source.describe().encode())


Source = IndexedSource | StreamSource
