"""What a Loader reads: `Source`, and `IndexedSource`, whose rows are read in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from arrowdl import _core
from arrowdl.loader._clock import Clock
from arrowdl.loader._files.file_plan import digest
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.files import SourceFiles
from arrowdl.loader._sources.forked import Home
from arrowdl.loader._sources.row_bytes import Held, measure_schema

if TYPE_CHECKING:
    import pyarrow as pa


ENDLESS = 2**50  # rows of each sequence of a mixture without end
_SAMPLE_ROWS = 64


class Source:
    """Rows that a Loader reads, of unknown number unless a subclass counts them."""

    # whether the memory of the rows may have another user, or be read again in another epoch: then
    # rows that stay in order are copied, if batches are writable
    is_shared = True
    # whether rows are read into new memory that has no other user: they may be moved in it, and
    # values written in place of nulls. Columns may share memory where the rows are null
    is_decoded = False
    # whether a row can only be read with its whole unit: row groups of Parquet, other files
    decodes_units = False
    is_small = False  # whether all rows are in memory and gathered before a thread would start
    is_endless = False  # whether an epoch has no end
    schedule: Sequence[Any] = ()  # of a mixture: the weights of its sources by steps, and by rows
    phases: Sequence[Any] = ()
    vocabulary: Vocabulary = Vocabulary({})  # that the user gave
    # of the threads that read and decode files; None if those of another library do
    clock: Clock | None = None
    home: Home | None = None  # the process with the threads that read; None if any process can read

    @property
    def column_names(self) -> list[str] | None:
        """The columns of the rows, in order; None if unknown."""
        return None

    @property
    def num_rows(self) -> int | None:
        """Rows of an epoch; None if that is not known before they are read."""
        return None

    @property
    def files(self) -> SourceFiles:
        """What is known of the files."""
        return SourceFiles("a stream has no plan: it has no files that are read in any order")

    def list_members(self) -> list[tuple[str, IndexedSource]]:
        """List the sources whose rows can be read in any order, and their names in a mixture."""
        return []

    def identify(self) -> str:
        """Return a text that differs if the order of the rows differs, for states."""
        return "stream"

    def use_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Read the columns that have a vocabulary as its codes; called before anything is read.

        Raises ValueError if a value that is in memory is not in it.
        """
        self.vocabulary = vocabulary

    def use_decoder(self, decoder: str) -> None:
        """Decode Parquet files by another library than pyarrow; called before anything is read.

        Raises ValueError if the source has no Parquet files.
        """
        raise ValueError(
            f'Storage.decoder="{decoder}" decodes Parquet files, and this source has none that the '
            "Loader decodes itself: leave it out"
        )

    def find_vocabulary(self, column: str) -> pa.Array | None:
        """Return the values of a dictionary column, in the order of the codes; None for others."""
        return None

    def describe_unread(self) -> str:
        """Say for states whose rows have dictionaries that could not be read; empty if all
        could."""
        return ""

    def list_user_objects(self) -> list[Any]:
        """List what the user gave that pickle may refuse."""
        return []

    def explain_empty(self) -> str:
        """Say how many rows `filter` keeps; empty if it keeps some, or the files have none."""
        return "no row of the stream, or fewer than a batch with drop_last"

    def prepare(self) -> None:
        """Find what each worker process would find again; called before they are made."""
        return

    def cut_for_shuffle(self, rows: int) -> Source:
        """Return the same rows in the units that a shuffle permutes, with a buffer of `rows`."""
        return self

    def list_buffers(self, rows: int) -> list[tuple[str, IndexedSource, int]]:
        """List the sources that share a shuffle buffer of `rows`, with names and rows of each."""
        return [(name, source, rows) for name, source in self.list_members()]

    def estimate_row_bytes(self) -> float | None:
        """Estimate the bytes of a row in memory, alike on all machines; None of a stream."""
        return None

    def measure_held(self) -> Held:
        """Estimate what readers hold: by the data, alike on every machine."""
        return Held()

    def for_writing(self) -> Source:
        """Return the same rows for writable batches, in private memory if that costs no copy."""
        return self

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


class UnitOrder:
    """The units of a source in the order of an epoch."""

    def __init__(self, source: IndexedSource, units: Sequence[int]) -> None:
        self.units = units  # indices of the units, in order
        # rows up to the end of each unit, in order
        self.ends: list[int] = list(accumulate(source.units[unit] for unit in units))

    def find(self, row: int) -> int:
        """Return the position in the order of the unit that has `row`."""
        return bisect_right(self.ends, row)


class IndexedSource(Source, ABC):
    """Rows in units of known length that can be read in any order: row groups, record batches."""

    units: list[int]  # rows of each unit
    rows_at_once = 4_096  # rows of an array of rows that are read in parts

    @property
    @abstractmethod
    def column_names(self) -> list[str] | None: ...

    @property
    def files(self) -> SourceFiles:
        return SourceFiles(self.refuse_plan())

    def find_failed(self, unit: int) -> Mapping[int, Exception]:
        """Return the rows of a unit that are stand-ins, and why; known when its first rows come."""
        return {}

    def refuse_plan(self) -> str:
        """Say why there is no plan of the files."""
        return (
            f"{type(self).__name__} has no plan: only Parquet files, and Arrow IPC files that are "
            "not mapped (Storage.memory_map=False, or of a store), have footers that are read "
            "when a Loader is made"
        )

    @abstractmethod
    def read(
        self,
        units: Sequence[int],
        # streams that this process reads side by side: they share the memory for reading ahead
        readers: int = 1,
    ) -> _core.DeviceStream:
        """Read the rows of `units`, in that order."""

    @abstractmethod
    def describe(self) -> str:
        """Describe what decides on the order of the rows, for the check of states."""

    def identify(self) -> str:
        """Return 16 hexadecimal digits."""
        return digest(self.describe().encode())

    def list_members(self) -> list[tuple[str, IndexedSource]]:
        return [("", self)]

    def map_members(
        self, change: Callable[[IndexedSource], IndexedSource], *, is_named: bool = False
    ) -> IndexedSource:
        """Return what `change` makes of the source, or a mixture of what it makes of each."""
        # With `is_named`, columns of a mixture have one name, and its `origin`.
        return change(self)

    def with_turns_of(self, other: IndexedSource) -> IndexedSource:
        """Return a mixture of as many rows in the order of `other`; others stay as they are."""
        return self

    def explain_empty(self) -> str:
        if self.num_rows:
            return ""
        rows, files = self.files.count_unfiltered(), self.files.count()
        if not files:
            return "no row, since it leaves out all files by their partition columns"
        if rows == 0:
            return ""
        return f"none of {'the' if rows is None else format(rows, ',')} rows in {files} files"

    @property
    def num_rows(self) -> int:
        """Rows of all units."""
        return sum(self.units)

    def cut_for_shuffle(self, rows: int) -> IndexedSource:
        return self

    def estimate_row_bytes(self) -> float:
        import pyarrow as pa

        fixed = measure_schema(pa.schema(self.read([]).schema))
        if fixed is not None or not self.num_rows:
            return fixed or 0.0
        order = UnitOrder(self, range(len(self.units)))
        sample = [*self.read_rows(0, min(_SAMPLE_ROWS, self.num_rows), order)]
        return float(sum(array.nbytes for array in sample) / max(1, sum(map(len, sample))))

    def select(self, column: str) -> IndexedSource:
        """Return the same rows with one column; others may be there if they cost nothing."""
        return self

    def for_writing(self) -> IndexedSource:
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


def count_member_rows(source: Source) -> int | None:
    """Count the rows of a source, or of all sources of a mixture; None for a stream."""
    members = source.list_members()
    return sum(member.num_rows for _, member in members) if members else None
