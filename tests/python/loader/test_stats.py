"""What a Loader counts and reports."""

from __future__ import annotations

import logging
import re
import time
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl.loader import Stats
from arrowdl.loader._batches.waits import Waits
from arrowdl.loader._clock import READING, Clock
from arrowdl.loader._stats import add_wait
from helpers.options import group

TABLE = pa.table({"id": pa.array(range(100), pa.int64())})


def read(**options: Any) -> arrowdl.Loader:
    loader = arrowdl.Loader(TABLE, 8, framework="numpy", **group(**options))
    list(loader)
    return loader


@pytest.mark.parametrize("prefetch", [0, 2])
def test_parts_are_told_apart(prefetch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    stats = read(transform=lambda batch: batch, prefetch=prefetch).stats()
    # For each batch the clock is read at its begin, when it was read, around transform, and at
    # its end.
    assert stats.transform_seconds == stats.consumer_seconds == 13
    assert stats.conversion_seconds == 26
    assert stats.source_seconds == 14
    assert stats.bottleneck == "conversion"
    assert stats.seconds == 66
    assert stats.rows_per_second == 100 / 66


def test_padding_is_counted() -> None:
    stats = read(pad_last=True).stats()
    assert (stats.rows, stats.padding_rows) == (100, 4)
    assert stats.row_padding == 4 / 104
    assert ", 3.8% padding" in str(stats)
    assert read().stats().padding_rows == 0


def test_the_last_epoch_is_counted_alone() -> None:
    loader = arrowdl.Loader(TABLE, 8, framework="numpy")
    assert loader.stats("last").batches == 0
    list(loader)
    assert loader.stats("last") == loader.stats() == loader.stats(epoch="all")
    batches = iter(loader)
    next(batches)
    assert (loader.stats("last").batches, loader.stats().batches) == (1, 14)
    state = loader.state_dict()
    list(batches)
    assert (loader.stats("last").rows, loader.stats().rows) == (100, 200)
    loader.load_state_dict(state)
    list(loader)
    assert (loader.stats("last").rows, loader.stats().rows) == (92, 292)
    assert loader.stats("last").advice
    html = loader.stats("last")._repr_html_()
    assert "<tr><th>rows</th><td>92, " in html
    assert "<tr><th>advice</th><td>" in html
    assert "no batches yet" in Stats()._repr_html_()
    with pytest.raises(ValueError, match="epoch='first': expected 'all' or 'last'"):
        loader.stats("first")  # type: ignore[arg-type]


def test_a_row_of_another_rank_is_padding() -> None:
    table = TABLE.slice(0, 9)
    loader = arrowdl.Loader(table, 4, framework="numpy", ranks=arrowdl.Ranks(1, 2))
    assert [len(batch["id"]) for batch in loader] == [4, 1]
    assert (loader.stats().rows, loader.stats().padding_rows) == (4, 1)


@pytest.mark.parametrize("filters", [False, True])
def test_padding_of_worker_processes_is_counted(filters: bool) -> None:
    counts = []
    for workers in (0, 2):
        options: dict[str, Any] = {"pad_last": True, "rank": 1, "world_size": 3}
        with arrowdl.Loader(
            TABLE.slice(0, 49), 4, framework="numpy", num_workers=workers, **group(**options)
        ) as loader:
            chain = loader.filter(is_small) if filters else loader
            valid = [(chain.valid_rows, batch["valid"].tolist()) for batch in chain]
            chain.close()
            assert all(mask == [True] * own + [False] * (4 - own) for own, mask in valid)
            stats = chain.stats()
            counts.append((stats.batches, stats.rows, stats.padding_rows, stats.filtered_rows))
    assert counts[0] == counts[1] == ((5, 4, 16, 12) if filters else (5, 16, 4, 0))


def is_small(batch: dict[str, Any]) -> Any:
    return batch["id"] < 21


def test_a_line_for_people() -> None:
    assert str(Stats()) == "no batches yet"
    stats = Stats(1000, 64_000, 5_000_000, 6.0, 1.0, 2.0, 1.0)
    line = str(stats)
    assert line.startswith(
        "1,000 batches, 64,000 rows, 5.0 MB in 10.0 s: 100.0 batches/s, 6,400 rows/s, 0.5 MB/s "
        "(source 60%, conversion 10%, transform 10%, consumer 20%); the training waits for rows: "
    )
    assert stats.bottleneck == "source"


@pytest.mark.parametrize(
    ("seconds", "in_use", "advice", "others"),
    [
        ({"transform": 12, "source": 1, "consumer": 87}, "transform", "Loader is not the pro", ""),
        (
            dict.fromkeys(("source", "decode", "copy", "transform"), 9) | {"consumer": 40},
            "",
            "the training waits for rows",
            "",
        ),
        (
            {"transform": 30, "consumer": 70},
            "transform",
            "waits for transform=: .*transform_arrow=.*num_threads=.*num_workers=",
            "more",
        ),
        (
            {"transform": 30, "consumer": 70},
            "transform_arrow",
            "waits for transform_arrow=: .*num_workers=",
            "transform=|threads|ahead",
        ),
        (
            {"transform": 30, "consumer": 70},
            "transform num_threads",
            "waits for transform=: .*more num_threads=.*num_workers=",
            "ahead",
        ),
        (
            {"transform": 30, "consumer": 70},
            "transform transform_arrow num_workers prefetch",
            "waits for transform= and transform_arrow=: .*more num_workers=",
            "threads|ahead",
        ),
        (
            {"start": 40, "source": 10, "consumer": 50},
            "num_workers prefetch",
            "worker processes to start.*num_threads=",
            "rows",
        ),
        (
            {"source": 40, "consumer": 50},
            "prefetch",
            "waits for rows: read fewer columns",
            "prefetch|shuffle",
        ),
        (
            {"source": 40, "consumer": 50},
            "shuffle",
            "waits for rows: set prefetch=.*the shuffle",
            "cache",
        ),
        (
            {"source": 40, "storage": 30, "consumer": 50},
            "cache",
            "waits for storage: read fewer",
            "Storage.cache",
        ),
        ({"source": 40, "storage": 10, "consumer": 50}, "", "waits for rows", "storage"),
        ({"source": 40, "storage": 30, "consumer": 50}, "", "storage: keep the files nearer", ""),
        ({"decode": 40, "source": 10, "storage": 10}, "", "decoding takes the time", ""),
        ({"copy": 40, "consumer": 50}, "prefetch", "copies to the device .*dtype=", "prefetch"),
        ({"conversion": 40, "consumer": 50}, "", "waits for tensors: .*ragged=", ""),
        ({"conversion": 40, "consumer": 50}, "ragged", "waits for tensors: leave", "ragged"),
    ],
)
def test_advice_is_for_the_part_that_the_training_waits_for(
    seconds: dict[str, float], in_use: str, advice: str, others: str
) -> None:
    stats = Stats(
        **{f"{name}_seconds": time for name, time in seconds.items()},  # type: ignore[arg-type]
        in_use=frozenset(in_use.split()),
    )
    assert re.search(advice, stats.advice), stats.advice
    assert not (others and re.search(others, stats.advice.partition(": ")[2])), stats.advice
    assert stats.advice in str(stats)


def test_advice_knows_the_options_of_the_loader() -> None:
    def keep(batch: Any) -> Any:
        return batch

    for options, names in (
        ({"shuffle": True}, {"shuffle", "prefetch", "ragged"}),
        ({"prefetch": 0, "framework": "torch"}, set()),
        (
            {"transform_arrow": keep, "num_threads": 2, "framework": "torch"},
            {"transform_arrow", "num_threads", "prefetch"},
        ),
        (
            {"ragged": "padded", "num_workers": 1, "prefetch": 0, "framework": "torch"},
            {"num_workers", "prefetch", "ragged"},
        ),
    ):
        given: Any = {"framework": "numpy", **options}
        loader = arrowdl.Loader(TABLE, 8, **group(**given))
        stats = loader.stats()
        assert stats.in_use == (stats - Stats()).in_use == names
        assert loader.map(keep).stats().in_use == {*names, "transform"}
        assert loader.stats().in_use == names


def test_the_start_of_workers_is_told_apart() -> None:
    with read(num_workers=1) as loader:
        first = loader.stats()
        assert first.start_seconds > 0
        list(loader)
        assert (loader.stats() - first).start_seconds == 0
    assert read().stats().start_seconds == 0


def test_stats_are_subtracted() -> None:
    loader = read()
    first = loader.stats() - Stats()
    list(loader)
    between = loader.stats() - first
    assert (between.batches, between.rows) == (13, 100)
    assert first.batches == 13, "a copy"
    before = loader.stats()
    list(loader)
    assert (loader.stats() - before).batches == 13


# ---- waits


def test_work_within_work_is_noted_alone(clock: list[float]) -> None:
    own = Clock()
    with own.measure("decode"):
        clock[0] += 1
        with own.measure("storage"):
            clock[0] += 4
        clock[0] += 2
    assert own.find_overlaps(0, 10) == {"decode": 3, "storage": 4}
    assert own.find_overlaps(0, 10) == {}, "it is forgotten"


def test_reads_of_files_of_ours_are_no_decoding(clock: list[float]) -> None:
    own = Clock()

    def decode() -> Any:
        clock[0] += 1
        with READING, READING:
            clock[0] += 3
        yield "batch"
        clock[0] += 100  # at the end

    batches = own.time(decode())
    assert next(batches) == "batch"
    clock[0] += 50  # no call meanwhile
    assert own.find_overlaps(0, 1000) == {"storage": 3, "decode": 1}
    assert list(batches) == []
    assert own.find_overlaps(0, 100) == {"decode": 46}, "from 54 on"


def test_waits_are_divided_in_proportion(clock: list[float]) -> None:
    one, two = Clock(), Clock()
    with one.measure("decode"), two.measure("storage"):
        clock[0] += 8
        divided = Waits([one, two], None).divide(4, 8, None)
    assert divided == {"decode": 2, "storage": 2}
    message = SimpleNamespace(spent=(1.0, 0.0, 3.0, 0.0, 4.0, 0.0, 0.0))
    divided = Waits([], None).divide(0, 4, message)
    assert (divided["source"], divided["decode"], divided["transform"]) == (0.5, 1.5, 2)
    message.is_first = True
    divided = Waits([], None).divide(0, 20, message)
    assert (divided["source"], divided["transform"], divided["start"]) == (1, 4, 12)
    stats = Stats()
    add_wait(stats, 5.0, {"storage": 1.0, "decode": 2.0, "copy": 0.5})
    assert (stats.source_seconds, stats.storage_seconds) == (2.5, 1.0)
    assert (stats.decode_seconds, stats.copy_seconds, stats.seconds) == (2.0, 0.5, 5.0)
    assert "source 50% (storage 20%), decode 40%" in str(stats)


def test_transform_arrow_is_transform(clock: list[float]) -> None:
    def pass_time(batch: Any) -> Any:
        clock[0] += 2
        return batch

    stats = read(transform_arrow=pass_time, prefetch=0).stats()
    assert stats.transform_seconds == stats.seconds == 26 - 2, "the first is made ahead"


def test_pinning_is_a_copy(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def pass_time(batch: Any) -> Any:
        clock[0] += 3
        return batch

    monkeypatch.setattr("arrowdl.loader._batches.finish.pin", pass_time)
    loader = arrowdl.Loader(TABLE, 50, device="cuda_host")
    list(loader)
    assert (loader.stats().copy_seconds, loader.stats().seconds) == (6, 6)


# ---- reports


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that go on when a test says so."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def test_reports_come_between_batches(clock: list[float]) -> None:
    seen: list[int] = []

    def report(stats: Stats) -> None:
        seen.append(stats.batches)

    loader = arrowdl.Loader(
        TABLE, 8, framework="numpy", progress=arrowdl.Report(every=10, function=report)
    )
    for _ in loader:
        clock[0] += 4
    assert seen == [3, 6, 9, 12]


def test_lines_are_of_what_came_since(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "arrowdl.loader")
    for _ in arrowdl.Loader(TABLE, 8, framework="numpy", progress=arrowdl.Report(every=10)):
        clock[0] += 5
    assert len(caplog.messages) == 6
    assert all(line.startswith("2 batches, 16 rows") for line in caplog.messages)


def test_lines_of_ranks_name_them(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "arrowdl.loader")
    loader = arrowdl.Loader(
        TABLE, 8, framework="numpy", progress=arrowdl.Report(every=10), ranks=arrowdl.Ranks(1, 2)
    )
    for _ in loader:
        clock[0] += 11
    assert all(line.startswith("rank 1 of 2: 1 batches, ") for line in caplog.messages)
    caplog.clear()
    for _ in loader._read_share(0, 3):
        clock[0] += 11
    assert len(caplog.messages) == 3
    assert all(line.startswith("rank 1 of 2, worker 0 of 3: ") for line in caplog.messages)


def test_short_epochs_are_reported_together(clock: list[float]) -> None:
    seen: list[int] = []
    loader = arrowdl.Loader(
        TABLE,
        50,
        framework="numpy",
        progress=arrowdl.Report(every=10, function=lambda stats: seen.append(stats.batches)),
    )
    for _ in range(6):
        for _ in loader:
            clock[0] += 2
    assert seen == [5, 10]


def test_a_report_that_fails_reaches_the_training(clock: list[float]) -> None:
    loader = arrowdl.Loader(
        TABLE, 8, framework="numpy", progress=arrowdl.Report(every=1, function=lambda stats: 1 / 0)
    )
    batches = iter(loader)
    next(batches)
    clock[0] += 5
    with pytest.raises(ZeroDivisionError):
        next(batches)
    assert loader.state_dict()["stages"][-1][-1] == 1, "the batch was returned"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"report_every": 0}, r"Report\.every=0: give seconds"),
        ({"report_every": "1"}, r"Report\.every='1': give seconds"),
        ({"report_every": True}, r"Report\.every=True: give seconds"),
        ({"report_every": float("nan")}, r"Report\.every=nan: give seconds"),
        ({"report_every": 1, "report": 3}, r"Report\.function=3: give a function"),
        ({"report": print}, r"needs Report\.every"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        arrowdl.Loader(TABLE, 8, **group(**options))


@pytest.mark.parametrize("seconds", [np.int64(5), np.float32(5), Fraction(5)])
def test_seconds_of_any_number(seconds: Any, clock: list[float]) -> None:
    seen: list[Stats] = []
    loader = arrowdl.Loader(
        TABLE,
        50,
        framework="numpy",
        progress=arrowdl.Report(every=seconds, function=lambda stats: seen.append(stats)),
    )
    for _ in loader:
        clock[0] += 6
    assert len(seen) == 2


def test_workers_get_no_report() -> None:
    """It need not be picklable."""
    seen: list[Stats] = []
    options: dict[str, Any] = {"report_every": 1e-9, "report": lambda stats: seen.append(stats)}
    with arrowdl.Loader(TABLE, 8, framework="numpy", num_workers=1, **group(**options)) as loader:
        assert len(list(loader)) == len(seen) == 13
