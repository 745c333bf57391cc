"""Files, and sources of a mixture, whose times have other units: `dtype=` names one for all."""

from __future__ import annotations

import datetime
import io
import re
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from helpers.options import group

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
STEPS = {"ns": 1_000, "us": 1, "ms": 1, "s": 1}  # of the values of a file: whole microseconds
ROWS = 6
US = {"t": "timestamp[us]"}


def make_table(unit: str, start: int, tz: str | None = None) -> pa.Table:
    """Times from `start` on in a unit, one of which is null, over values that are not zero."""
    values = (np.arange(start, start + ROWS) * STEPS[unit]).astype(np.int64)
    column = pa.Array.from_buffers(
        pa.timestamp(unit, tz),
        ROWS,
        [pa.py_buffer(b"\x37"), pa.py_buffer(values)],  # row 3 is null
    )
    return pa.table({"t": column, "id": range(start, start + ROWS)})


def list_expected(units: list[str]) -> dict[int, int]:
    """Microseconds by the ids of the files that `write` writes; 0 for nulls."""
    return {
        100 * i + row: 0 if row == 3 else (100 * i + row) * STEPS[unit] * 10**6 // UNITS[unit]
        for i, unit in enumerate(units)
        for row in range(ROWS)
    }


def write(folder: Path, units: list[str], kind: str = "parquet", tz: str | None = None) -> None:
    for i, unit in enumerate(units):
        table = make_table(unit, 100 * i, tz)
        path = folder / f"{i}.{'parquet' if kind in ('parquet', 'polars') else 'arrow'}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=4)
        elif kind == "polars":  # it has no seconds
            pl.from_arrow(table).write_parquet(path)
        else:
            feather.write_feather(table, path, compression=kind)


def read(source: Any, **options: Any) -> dict[int, int]:
    """Return the times of a Loader by their ids."""
    given = {"framework": "numpy", "nulls": "fill", "dtype": US, **options}
    rows: dict[int, int] = {}
    for batch in arrowdl.Loader(source, 4, **group(**given)):
        rows |= dict(zip(batch["id"].tolist(), batch["t"].tolist(), strict=True))
    return rows


@pytest.mark.parametrize("kind", ["parquet", "polars", "uncompressed", "lz4"])
@pytest.mark.parametrize("units", [["ns", "us", "ms"], ["us", "ns"]], ids=str)
@pytest.mark.parametrize("tz", [None, "UTC"])
def test_files(tmp_path: Path, kind: str, units: list[str], tz: str | None) -> None:
    write(tmp_path, units, kind, tz)
    expected = list_expected(units)
    for options in (
        {},
        {"shuffle": True, "seed": 1},
        {"dtype": "timestamp[us]"},
        {"dtype": {"t": pa.timestamp("us")}},
        {"on_error": "skip"},
        {"memory_map": False},
        {"stack": {"t": ["t"]}, "dtype": "timestamp[us]"},
    ):
        rows = read(tmp_path, **options)
        assert rows == {i: [time] if "stack" in options else time for i, time in expected.items()}
    assert read(tmp_path, dtype={"t": "timestamp[ns]"}) == {
        i: n * 1000 for i, n in expected.items()
    }
    if kind in ("parquet", "polars"):
        files = [io.BytesIO(path.read_bytes()) for path in sorted(tmp_path.iterdir())]
        assert read(files) == expected
        assert read(tmp_path, decoder="polars") == expected
    taken = arrowdl.Loader(tmp_path, 4, framework="numpy", nulls="mask", dtype=US).map_dataset()
    values, mask = taken[[ROWS + 1, 3]]["t"]
    assert (values[0], mask.tolist()) == (expected[101], [True, False])


@pytest.mark.parametrize("kind", ["parquet", "lz4"])
def test_filters_compare_times(tmp_path: Path, kind: str) -> None:
    write(tmp_path, ["ns", "us", "ms"], kind)
    expected = list_expected(["ns", "us", "ms"])
    for unit, most in (("us", 103), ("ns", 2_500), ("ms", 202)):
        bound = pa.scalar(most, pa.timestamp(unit))
        for keeps, compared in (
            (pc.field("t") <= bound, int.__le__),
            (pc.field("t") > bound, int.__gt__),
        ):
            wanted = {
                i: time
                for i, time in expected.items()
                if i % 100 != 3 and compared(time * 1_000, most * 10**9 // UNITS[unit])
            }
            assert read(tmp_path, filter=keeps) == wanted


def test_states(tmp_path: Path) -> None:
    write(tmp_path, ["ns", "us", "ms"])

    def make() -> Any:
        return arrowdl.Loader(
            tmp_path, 4, shuffle=True, seed=3, framework="numpy", nulls="fill", dtype=US
        )

    loader = make()
    batches = iter(loader)
    before = [next(batches)["t"].tolist() for _ in range(2)]
    resumed = make()
    resumed.load_state_dict(loader.state_dict())
    rest = [batch["t"].tolist() for batch in resumed]
    assert before + rest == [batch["t"].tolist() for batch in make()]


def test_workers_and_batches_that_are_written_to(tmp_path: Path) -> None:
    write(tmp_path, ["ns", "us"], "uncompressed")
    mixed = mix({"0": tmp_path / "0.arrow", "1": tmp_path / "1.arrow"}, num_workers=1)
    rows: dict[int, int] = {}
    for batch in mixed:
        rows |= dict(zip(batch["id"].tolist(), batch["t"].tolist(), strict=True))
    assert rows == read(tmp_path, num_workers=1) == list_expected(["ns", "us"])
    loader = arrowdl.Loader(tmp_path, 4, framework="numpy", nulls="fill", dtype=US)
    for _ in range(2):
        for batch in loader:
            rows |= dict(zip(batch["id"].tolist(), batch["t"].tolist(), strict=True))
            batch["t"] += 1
        assert rows == list_expected(["ns", "us"])


def test_plans(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write(data, ["ns", "us"])
    plan = arrowdl.Loader(data, 4, dtype=US).plan()
    assert read(data, plan=plan) == list_expected(["ns", "us"])


@pytest.mark.parametrize("kind", ["parquet", "uncompressed", "lz4", "objects"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_times_that_do_not_fit(tmp_path: Path, kind: str, on_error: str) -> None:
    write(tmp_path, ["ns", "s"], "parquet" if kind == "objects" else kind)
    source: Any = tmp_path
    if kind == "objects":
        source = [io.BytesIO(path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    with pytest.raises(ValueError, match=r'"t" of .* timestamp\[ns\].*lose data'):
        read(source, dtype={"t": "timestamp[ms]"}, on_error=on_error)
    late = pa.table({"t": pa.array([2**40], pa.timestamp("s")), "id": [0]})
    pq.write_table(late, tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r'"t" of .* timestamp\[m?s\].*out of bounds'):
        read(
            [tmp_path / "0.parquet", tmp_path / "2.parquet"]
            if kind == "parquet"
            else [io.BytesIO(feather_bytes(table)) for table in (make_table("ns", 0), late)],
            dtype={"t": "timestamp[ns]"},
            on_error=on_error,
        )


@pytest.mark.parametrize("kind", ["parquet", "lz4"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_filters_on_times_that_do_not_fit(tmp_path: Path, kind: str, on_error: str) -> None:
    write(tmp_path, ["ns", "s"], kind)
    keeps = pc.field("t") > pa.scalar(-5, pa.timestamp("s"))
    with pytest.raises(ValueError, match=r'"t" of .*0\..* timestamp\[ns\].*lose data'):
        read(tmp_path, dtype={"t": "timestamp[ms]"}, filter=keeps, on_error=on_error)


def feather_bytes(table: pa.Table) -> bytes:
    file = io.BytesIO()
    feather.write_feather(table, file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("one", "other", "dtype"),
    [
        (pa.timestamp("ns"), pa.timestamp("us"), None),
        (pa.timestamp("ns"), pa.timestamp("us"), {"id": "timestamp[us]"}),
        (pa.timestamp("ns"), pa.timestamp("us"), "duration[us]"),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us"), "timestamp[us]"),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Paris"), "timestamp[us]"),
        (pa.timestamp("ns", "UTC"), pa.date32(), "timestamp[us]"),
        (pa.duration("s"), pa.duration("ns"), "timestamp[us]"),
        (pa.duration("s"), pa.int64(), "duration[us]"),
        (pa.timestamp("s"), pa.duration("s"), "timestamp[us]"),
        (pa.time32("s"), pa.time64("us"), "timestamp[us]"),
    ],
    ids=str,
)
def test_other_types_are_refused(tmp_path: Path, one: Any, other: Any, dtype: Any) -> None:
    for i, type in enumerate((one, other)):
        table = pa.table({"t": pa.nulls(2, type), "id": [0, 1]})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    named = " ".join(map(str, (one, other)))
    advised = next((unit for unit in ("timestamp", "duration") if named.count(unit) == 2), None)
    is_advised = advised is not None and "tz=" not in named
    advice = re.escape(f'dtype={{"t": "{advised}[us]"}}') if is_advised else "pyarrow"
    with pytest.raises(ValueError, match=rf'has other types than.*"t" is.*{advice}'):
        arrowdl.Loader(tmp_path, 2, dtype=dtype)
    sources = {str(i): tmp_path / f"{i}.parquet" for i in range(2)}
    with pytest.raises(ValueError, match=rf'"1" has "t" of.*{advice}'):
        mix(sources, dtype=dtype)


def test_dates_and_durations(tmp_path: Path) -> None:
    days = [datetime.date(1969, 12, 31), None]
    kinds = [
        ("t", days, pa.date32()),
        ("t", [5, None], pa.timestamp("ms")),
        ("t", days, pa.date64()),
    ]
    for i, (name, values, type) in enumerate(kinds):
        table = pa.table({name: pa.array(values, type), "id": [2 * i, 2 * i + 1]})
        pq.write_table(table, tmp_path / f"{i}.parquet")
        feather.write_feather(table, tmp_path / f"{i}.arrow")
    day = -86_400 * 10**6
    expected = {0: day, 1: 0, 2: 5_000, 3: 0, 4: day, 5: 0}
    for kind in ("parquet", "arrow"):
        assert read(sorted(tmp_path.glob(f"*.{kind}"))) == expected
        sources = {str(i): path for i, path in enumerate(sorted(tmp_path.glob(f"*.{kind}")))}
        assert read_mixed(sources) == expected
    for i, unit in enumerate(("s", "ns")):
        table = pa.table({"t": pa.array([10**9 * (i + 1)], pa.duration(unit)), "id": [i]})
        pq.write_table(table, tmp_path / f"{i}.pq")
    assert read(sorted(tmp_path.glob("*.pq")), dtype="duration[ms]") == {0: 10**12, 1: 2_000}


def test_nested_times(tmp_path: Path) -> None:
    for i, unit in enumerate(("ns", "us")):
        times = pa.timestamp(unit)
        lists = pa.array([[1_000], [2_000, 3_000]], pa.list_(times))
        structs = pa.array([{"t": 4_000}, None], pa.struct([("t", times)]))
        table = pa.table({"l": lists, "s": structs})
        pq.write_table(table, tmp_path / f"{i}.parquet")
    sources: list[Any] = [tmp_path, [io.BytesIO(path.read_bytes()) for path in tmp_path.iterdir()]]
    for source in sources:
        given: Any = {"framework": "numpy", "nulls": "fill", "dtype": "timestamp[us]"}
        batches = list(arrowdl.Loader(source, 2, **given))
        values = sorted(batch["l"][0].tolist() for batch in batches)
        assert values == [[1, 2, 3], [1_000, 2_000, 3_000]]
        structs = sorted(batch["s"]["t"].tolist() for batch in batches)
        assert structs == [[4, 0], [4_000, 0]]
    mixed = mix({"0": tmp_path / "0.parquet", "1": tmp_path / "1.parquet"}, dtype="timestamp[us]")
    assert sorted(x for batch in mixed for x in batch["s"]["t"].tolist()) == [0, 0, 4, 4_000]


def mix(sources: dict[str, Any], **options: Any) -> Any:
    given = {"framework": "numpy", "nulls": "fill", "dtype": US, "stop": "all", **options}
    ranks = arrowdl.Ranks(global_batch_size=4, splits=2)
    return arrowdl.Loader.mix(sources, dict.fromkeys(sources, 1), ranks=ranks, **group(**given))


def read_mixed(sources: dict[str, Any], **options: Any) -> dict[int, int]:
    rows: dict[int, int] = {}
    for batch in mix(sources, **options):
        for i, time in zip(batch["id"].tolist(), batch["t"].tolist(), strict=True):
            assert rows.setdefault(i, time) == time
    return rows


@pytest.mark.parametrize("units", [["ns", "us", "ms"], ["us", "ns", "us"]], ids=str)
@pytest.mark.parametrize("tz", [None, "Europe/Paris"])
def test_mixtures(tmp_path: Path, units: list[str], tz: str | None) -> None:
    write(tmp_path, units, tz=tz)
    write(tmp_path, units, "uncompressed", tz)
    expected = list_expected(units)
    frame = pl.from_arrow(make_table(units[1], 100, tz))
    sources = {"files": tmp_path / "0.parquet", "frame": frame, "mapped": tmp_path / "2.arrow"}
    assert read_mixed(sources) == expected
    assert read_mixed(sources, shuffle=True, seed=2, origin="from") == expected
    assert read_mixed(sources, dtype="timestamp[us]") == expected
    assert read_mixed(sources, on_error="skip") == expected
    assert read_mixed(sources, dtype={"t": "timestamp[ns]"}) == {
        i: time * 1_000 for i, time in expected.items()
    }
    own = {**sources, "frame": arrowdl.Loader(frame, 2, shuffle=True)}
    assert read_mixed(own) == expected
    filtered = {name: tmp_path / f"{i}.parquet" for i, name in enumerate(sources)}
    bound = pa.scalar(1, pa.timestamp("us", tz))
    kept = {i: time for i, time in expected.items() if i % 100 != 3 and time > 1}
    assert read_mixed(filtered, filter=pc.field("t") > bound) == kept
    masked = mix(sources, nulls="mask", transform_arrow=lambda batch: batch)
    rows = [batch["t"] for batch in masked]
    assert all(mask[values == 0].sum() <= 1 for values, mask in rows)

    loader = mix(sources, shuffle=True)
    batches = iter(loader)
    before = [next(batches)["t"].tolist() for _ in range(2)]
    resumed = mix(sources, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    every = [batch["t"].tolist() for batch in mix(sources, shuffle=True)]
    assert before + [batch["t"].tolist() for batch in resumed] == every


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_times_of_mixtures_that_do_not_fit(on_error: str) -> None:
    fine = pa.table({"t": pa.array([1, 2, 3_000, None], pa.timestamp("ns")), "id": range(4)})
    late = pa.table({"t": pa.array([1, None, 2**40, 4], pa.timestamp("s")), "id": range(4)})
    for dtype, shown in (("timestamp[us]", "1, which"), ("timestamp[ns]", f"{2**40}, which")):
        with pytest.raises(ValueError, match=rf"{shown} timestamp.*choose another for ..t..,"):
            list(mix({"fine": fine, "late": late}, dtype=dtype, on_error=on_error))
