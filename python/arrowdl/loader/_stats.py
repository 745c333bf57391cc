"""`Stats`: what a `Loader` counts while it reads."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from arrowdl.loader._clock import Work
from arrowdl.loader._html import make_table
from arrowdl.loader._skipped import Skipped

Part = Literal["source", "decode", "conversion", "transform", "copy", "start", "consumer"]


def advise(
    part: Part | Literal["storage"],  # that takes the most time, or what `source` waits for
    in_use: Set[str],  # options that the Loader has
) -> str:
    """Say what to do for more batches in a second."""
    if part == "consumer":
        return "the training itself takes the time, and the Loader is not the problem"
    if part == "transform":
        return _advise_transform(in_use)
    text, ways = _WAYS[part]
    return f"{text}: {_join([way for condition, way in ways if _holds(condition, in_use)])}"


def _holds(condition: str, in_use: Set[str]) -> bool:
    """Whether an option is not in use; after a plus sign, whether it is."""
    return condition[1:] in in_use if condition.startswith("+") else condition not in in_use


_COLUMNS = ("", "read fewer columns (columns=)")
_PREFETCH = ("prefetch", "set prefetch=")
_WAYS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "storage": (
        "reading waits for storage",
        [
            ("cache", "keep the files nearer (Storage.cache)"),
            _COLUMNS,
            ("", "write larger row groups"),
        ],
    ),
    "source": (
        "the training waits for rows",
        [
            _PREFETCH,
            _COLUMNS,
            ("+shuffle", "give the shuffle a smaller buffer (Shuffle.buffer_size)"),
        ],
    ),
    "decode": (
        "decoding takes the time (of local files with the waits for the disk)",
        [_COLUMNS, ("", "write files that decode faster (zstd, uncompressed Arrow IPC)")],
    ),
    "conversion": (
        "the training waits for tensors",
        [
            ("ragged", "of columns of lists, ragged='offsets' is quicker than 'jagged'"),
            ("", "leave out columns that it does not need (columns=)"),
        ],
    ),
    "copy": (
        "copies to the device take the time",
        [("", "copy fewer or smaller columns (columns=, dtype=)"), _PREFETCH],
    ),
    "start": (
        "the training waits for worker processes to start, which stay for the next epochs",
        [("", "use fewer (num_workers=)"), ("", "use threads (num_threads=)")],
    ),
}


def _advise_transform(in_use: Set[str]) -> str:
    called = [name for name in ("transform", "transform_arrow") if name in in_use] or ["transform"]
    ways = ["use whole-batch operations"]
    if "num_workers" in in_use:
        ways.append("give it more num_workers=")
    elif "num_threads" in in_use and "transform_arrow" not in in_use:
        ways += ["give it more num_threads=", "use num_workers= instead"]
    else:
        if "transform_arrow" not in in_use:
            ways += ["call it ahead of the training as transform_arrow=", "set num_threads="]
        ways.append("set num_workers=")
    return f"the training waits for {'= and '.join(called)}=: {_join(ways)}"


def _join(ways: list[str]) -> str:
    *others, last = ways
    return f"{', '.join(others)}, or {last}" if others else last


TakeStats = Callable[["Stats"], Any]

_WAITS = 0.2  # share of the time up to which the training does not wait noticeably


@dataclass
class Stats:
    """What a `Loader` has read since it was made, and how long each part took.

    ``stats - earlier`` is the difference of two counts; ``str(stats)`` is a line for people.

    Seconds are wall-clock time of the thread that iterates: the parts add up to the time that the
    epochs took. A wait for a batch is attributed to the work of the threads that read ahead, in
    proportion if several worked at the same time; the remaining wait counts as source. With worker
    processes, it is attributed in proportion to the work of the worker for that batch. Waits below
    0.1 ms count as source.

    Attributes
    ----------
    batches : int
    rows : int
        Rows of this rank. Padding, and rows that another rank also reads, are not counted.
    bytes : int
        Bytes of the Arrow arrays; with worker processes, bytes of the tensors that they sent.
    source_seconds : float
        Time in which the training waited for rows to be read, or to be shuffled and joined to
        batches. For tables, streams and other libraries (queries, Lance), all that it waited for.
    storage_seconds : float
        Part of `source_seconds`, in which the threads that read files over a network waited for
        them.
    decode_seconds : float
        Time in which the training waited for files to be decoded. For local files it includes the
        waits for the disk: pyarrow reads and decodes them in one call.
    conversion_seconds : float
        Time in which the training made tensors, or waited for them to be made.
    transform_seconds : float
        Time in which the training was in `transform`, or waited for it (`num_threads`), or for
        `transform_arrow`. With `num_threads` also for the conversion, which these threads do.
    copy_seconds : float
        Time in which the training copied batches, or waited for the host's part of it: to a GPU
        (`device`), to pinned memory, by a sharding. The device's part runs in the background, and
        counts as time of the consumer if that waits for it.
    start_seconds : float
        Time in which the training waited for worker processes to start.
    consumer_seconds : float
        Time between batches: the training itself.
    padding_rows : int
        Rows of batches that are padding (`pad_last`), or repeat a row of another rank.
    values : int
        Values of lists and strings that are padded (``ragged="padded"``), without the padding and
        without those that are read from a device.
    padding_values : int
        The padding of these: see `value_padding`.
    filtered_rows : int
        Rows of this rank that `Loader.filter` dropped.
    skipped_rows : int
        Rows of this rank that were skipped (``on_error="skip"``).
    skipped : tuple of Skipped
        The first 1,000 errors for which rows were skipped, and where the rows are.
    in_use : frozenset of str
        Options that the Loader has, for `advice`.
    """

    batches: int = 0
    rows: int = 0
    bytes: int = 0
    source_seconds: float = 0.0
    conversion_seconds: float = 0.0
    consumer_seconds: float = 0.0
    transform_seconds: float = 0.0
    decode_seconds: float = 0.0
    copy_seconds: float = 0.0
    storage_seconds: float = 0.0
    padding_rows: int = 0
    values: int = 0
    padding_values: int = 0
    filtered_rows: int = 0
    skipped_rows: int = 0
    skipped: tuple[Skipped, ...] = ()
    start_seconds: float = 0.0
    in_use: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    def __sub__(self, earlier: Stats) -> Stats:
        if not isinstance(earlier, Stats):
            return NotImplemented
        names = [field.name for field in fields(self) if field.name not in ("skipped", "in_use")]
        counts = {name: getattr(self, name) - getattr(earlier, name) for name in names}
        skipped = self.skipped[len(earlier.skipped) :]
        return Stats(**counts, skipped=skipped, in_use=self.in_use)

    @property
    def seconds(self) -> float:
        """The time of all parts."""
        return sum(self._parts.values())

    @property
    def batches_per_second(self) -> float:
        """Batches in a second, the training included; 0 if no time has passed."""
        return self._rate(self.batches)

    @property
    def rows_per_second(self) -> float:
        """Rows in a second, the training included; 0 if no time has passed."""
        return self._rate(self.rows)

    @property
    def bytes_per_second(self) -> float:
        """Bytes in a second, the training included; 0 if no time has passed."""
        return self._rate(self.bytes)

    @property
    def row_padding(self) -> float:
        """The share of the batches' rows that is padding, 0 to 1: see `padding_rows`."""
        return self.padding_rows / max(1, self.rows + self.padding_rows)

    @property
    def value_padding(self) -> float:
        """The share of the padded columns that is padding, 0 to 1: what `Buckets` make less.

        See `padding_values`.
        """
        return self.padding_values / max(1, self.values + self.padding_values)

    @property
    def bottleneck(self) -> Part:
        """The part that takes most of the time."""
        seconds = self._parts
        return max(seconds, key=lambda name: seconds[name])

    @property
    def advice(self) -> str:
        """What to do for more batches in a second."""
        seconds = {name: time for name, time in self._parts.items() if name != "consumer"}
        if sum(seconds.values()) <= _WAITS * self.seconds:
            return "the training itself takes the time, and the Loader is not the problem"
        slowest = max(seconds, key=lambda name: seconds[name])
        is_stored = slowest == "source" and 2 * self.storage_seconds >= self.source_seconds
        return advise("storage" if is_stored else slowest, self.in_use)

    @property
    def _parts(self) -> dict[Part, float]:
        return {
            "source": self.source_seconds,
            "decode": self.decode_seconds,
            "conversion": self.conversion_seconds,
            "transform": self.transform_seconds,
            "copy": self.copy_seconds,
            "start": self.start_seconds,
            "consumer": self.consumer_seconds,
        }

    def _rate(self, count: int) -> float:
        return count / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        if not self.seconds:
            return "no batches yet"
        parts = {name: time / self.seconds for name, time in self._parts.items() if time}
        shares = ", ".join(f"{name} {share:.0%}" for name, share in parts.items())
        if self.storage_seconds:
            reading, storage = f"source {parts['source']:.0%}", self.storage_seconds / self.seconds
            shares = shares.replace(reading, f"{reading} (storage {storage:.0%})")
        padding = f", {self.row_padding:.1%} padding" if self.padding_rows else ""
        if self.padding_values:
            padding += f", {self.value_padding:.1%} of padded columns is padding"
        filtered = f", {self.filtered_rows:,} filtered" if self.filtered_rows else ""
        skipped = f", {self.skipped_rows:,} skipped" if self.skipped_rows else ""
        megabytes, each_second = self.bytes / 1e6, self.bytes_per_second / 1e6
        return (
            f"{self.batches:,} batches, {self.rows:,} rows{padding}{filtered}{skipped}, "
            f"{megabytes:,.1f} MB in {self.seconds:.1f} s: "
            f"{self.batches_per_second:,.1f} batches/s, {self.rows_per_second:,.0f} rows/s, "
            f"{each_second:,.1f} MB/s ({shares}); {self.advice}"
        )

    def _repr_html_(self) -> str:
        if not self.seconds:
            return make_table("arrowdl.loader.Stats", [("batches", self)])
        rates = {name: getattr(self, f"{name}_per_second") for name in ("batches", "rows", "bytes")}
        rows = [(name, f"{getattr(self, name):,}, {rate:,.0f}/s") for name, rate in rates.items()]
        parts = [
            (name, f"{time:.3f} s, {time / self.seconds:.0%}")
            for name, time in self._parts.items()
            if time
        ]
        return make_table("arrowdl.loader.Stats", [*rows, *parts, ("advice", self.advice)])


def add_wait(
    stats: Stats,
    seconds: float,
    # what was done meanwhile, at most `seconds` together; the rest is source
    work: Mapping[Work, float],
) -> None:
    """Count a wait for a batch."""
    unexplained = max(0.0, seconds - sum(work.values()))
    storage = work.get("storage", 0.0)
    stats.storage_seconds += storage
    stats.source_seconds += storage + work.get("source", 0.0) + unexplained
    stats.decode_seconds += work.get("decode", 0.0)
    stats.conversion_seconds += work.get("conversion", 0.0)
    stats.transform_seconds += work.get("transform", 0.0)
    stats.copy_seconds += work.get("copy", 0.0)
    stats.start_seconds += work.get("start", 0.0)


def list_spent(stats: Stats) -> tuple[float, ...]:
    """Return the seconds of each of `WORKS`."""
    source = stats.source_seconds - stats.storage_seconds
    parts = stats.decode_seconds, stats.conversion_seconds, stats.transform_seconds
    return source, stats.storage_seconds, *parts, stats.copy_seconds, stats.start_seconds


class Reporter:
    """Reports the counters of an epoch every some seconds, between batches."""

    def __init__(
        self,
        stats: Stats,  # the counters, which go on counting
        seconds: float | None,  # None for no reports
        # takes a copy of the counters. By default, what came since the last report is logged
        report: TakeStats | None,
    ) -> None:
        self._stats = stats
        self._seconds = seconds
        self._report = self._log if report is None else report
        self._last = replace(stats)
        self.name = ""  # which rank reports, before each line of the log; empty for the only one
        # when the next report is due, of ``time.perf_counter``
        self.due = float("inf") if seconds is None else time.perf_counter() + seconds

    def report(self, now: float) -> None:
        """Report, and say when the next report is due; `now` is of ``time.perf_counter``."""
        self.due = now + (self._seconds or 0.0)
        self._report(replace(self._stats))

    def _log(self, stats: Stats) -> None:
        logging.getLogger("arrowdl.loader").info("%s%s", self.name, stats - self._last)
        self._last = stats
