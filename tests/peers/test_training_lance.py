"""Loader over versions of Lance 14 datasets."""

from __future__ import annotations

import math
import pickle
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import arrowdl
import lance
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from arrowdl.loader._libraries import lance as source_of_lance
from helpers.random_cases import check_cases
from helpers.tables import (
    check_epochs,
    check_inspected,
    check_versions,
    make_loader,
    read_ids,
    read_rows,
)


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_of_lance, "_UNIT_ROWS", 10)


PAIR = pa.struct({"a": pa.int64(), "b": pa.list_(pa.int64())})


def make_table(start: int, rows: int) -> pa.Table:
    ids = range(start, start + rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([None if i % 5 == 0 else f"text {i}" for i in ids], pa.string()),
            "pair": pa.array([{"a": i, "b": [i] * (i % 3)} for i in ids], PAIR),
        }
    )


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Versions: 1 of 100 rows, 2 with 20 appended, 3 with every third row deleted."""
    path = str(tmp_path / "rows.lance")
    made = lance.write_dataset(make_table(0, 100), path, max_rows_per_file=30)
    made = lance.write_dataset(make_table(100, 20), path, mode="append")
    made.delete("id % 3 = 0")
    return made


def test_the_commands_read_its_folder(dataset: Any, capsys: pytest.CaptureFixture[str]) -> None:
    check_inspected(dataset.uri, 80, "Lance dataset", capsys)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_version_is_read_as_lance_does(dataset: Any, version: int) -> None:
    chosen = dataset.checkout_version(version)
    expected = chosen.to_table().to_pylist()
    assert len(expected) == [100, 120, 80][version - 1]
    assert read_rows(chosen) == expected
    check_epochs(chosen, [row["id"] for row in expected])


def test_tags_and_branches(dataset: Any) -> None:
    dataset.tags.create("first", 1)
    assert read_rows(dataset.checkout_version("first")) == make_table(0, 100).to_pylist()
    branch = dataset.create_branch("own", 1)
    lance.write_dataset(make_table(500, 7), branch, mode="append")
    branch = lance.dataset(branch.uri)
    assert read_ids(make_loader(branch, 5)) == [*range(100), *range(500, 507)]
    assert len(read_rows(dataset)) == 80


def test_default_scan_options_are_read_as_a_stream(dataset: Any) -> None:
    chosen = lance.dataset(dataset.uri, default_scan_options={"filter": "id < 10"})
    assert read_ids(make_loader(chosen, 5)) == [1, 2, 4, 5, 7, 8]


def test_columns_and_fields(dataset: Any) -> None:
    rows = read_rows(dataset, ["pair.a", "id"])
    assert rows == [{"pair.a": i, "id": i} for i in range(120) if i % 3]
    with pytest.raises(ValueError, match='"y" is not one column'):
        arrowdl.Loader(dataset, 8, columns=["y"])


@pytest.mark.parametrize(
    "filter", ["id > 57 and id < 110", (ds.field("id") > 57) & (ds.field("id") < 110)]
)
def test_filter(dataset: Any, filter: Any) -> None:
    expected = [i for i in range(58, 110) if i % 3]
    loader = make_loader(dataset, filter=filter)
    assert read_ids(loader) == expected
    assert len(loader) == -(-len(expected) // 7)
    with pytest.raises(TypeError, match="SQL string"):
        make_loader(dataset, filter=3)


X = ds.field("x")
OF_FLOATS = [
    X > 1,
    X < 0.0,
    X >= 0.0,
    ~(X < 3),
    X.isin([0.0]),
    X.isin([float("nan")]),
    X.is_null(nan_is_null=True),
    (ds.field("id") > 2) & ~(X > 3),
    ds.field("pair", "a") > 3,
]


@pytest.mark.parametrize("filter", OF_FLOATS, ids=str)
def test_filters_keep_the_rows_that_arrow_keeps(filter: Any, tmp_path: Path) -> None:
    """Lance orders NaN and zeros; beside durations, it takes no expressions."""
    nan = float("nan")
    values = [3.0, nan, -0.0, 0.0, None, math.copysign(nan, -1.0), 2.0, 1e300]
    table = make_table(0, 8).append_column("x", pa.array(values))
    times = table.append_column("d", pa.array(range(8), pa.duration("s")))
    expected = table.filter(filter)["id"].to_pylist()
    for rows, name in ((table, "a.lance"), (times, "b.lance")):
        made = lance.write_dataset(rows, tmp_path / name, max_rows_per_file=3)
        assert read_ids(make_loader(made, filter=filter)) == expected
    few = lance.dataset(made.uri, default_scan_options={"filter": "id < 5"})
    kept = [i for i in expected if i < 5]
    assert read_ids(make_loader(few, filter=filter)) == kept


@pytest.mark.parametrize("filter", ["id > 1000", ds.field("id") > 1000])
def test_a_filter_that_keeps_nothing(
    dataset: Any, filter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert list(make_loader(dataset, filter=filter)) == []
    rows, fragments = dataset.count_rows(), len(dataset.get_fragments())
    assert f"{filter} keeps none of {rows} rows in {fragments} files" in caplog.text


UNRELATED = {
    "large_list": pa.array([[1], [2], [3]], pa.large_list(pa.int64())),
    "duration": pa.array([1, 2, 3], pa.duration("us")),
    "time64": pa.array([1, 2, 3], pa.time64("us")),
}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, None) for name in UNRELATED),
        *((name, {"batch_size": 2}) for name in UNRELATED),
    ],
)
def test_an_expression_that_lance_refuses_is_evaluated_by_arrow(
    name: str, options: dict[str, Any] | None, tmp_path: Path
) -> None:
    """Lance 14 converts an expression with the types of columns that it neither names nor reads."""
    table = pa.table({"id": [1, 2, 3], name: UNRELATED[name]})
    lance.write_dataset(table, tmp_path / "rows.lance")
    dataset = lance.dataset(tmp_path / "rows.lance", default_scan_options=options)
    for filter in (ds.field("id") > 1, "id > 1"):
        loader = arrowdl.Loader(dataset, 2, columns=["id"], filter=filter)
        assert [batch["id"].tolist() for batch in loader] == [[2, 3]]


def test_datasets_scanners_and_fragments_are_streams(dataset: Any) -> None:
    expected = dataset.to_table()
    assert pa.table(arrowdl.from_arrow_stream(dataset)).equals(expected)
    scanner = dataset.scanner(columns=["id"], filter="id > 57")
    streamed = pa.table(arrowdl.from_arrow_stream(scanner))
    assert streamed.equals(dataset.to_table(columns=["id"], filter="id > 57"))
    fragment = dataset.get_fragments()[0]
    assert pa.table(arrowdl.from_arrow_stream(fragment)).equals(fragment.to_table())
    with pytest.raises(TypeError, match=r"to_torch\(\) cannot read .*from_arrow_stream\(dataset\)"):
        arrowdl.to_torch(dataset)


def test_a_state_belongs_to_a_version(dataset: Any) -> None:
    check_versions(lambda: dataset.checkout_version(1), lambda: dataset, "version 1", "version 3")


def test_writers_do_not_change_the_version_that_is_read(dataset: Any) -> None:
    expected = [row["id"] for row in dataset.to_table().to_pylist()]
    loader = make_loader(dataset, 3)
    batches = iter(loader)
    ids = next(batches)["id"].tolist()
    dataset.delete("id > 20")
    lance.write_dataset(make_table(1000, 50), dataset.uri, mode="append")
    dataset.optimize.compact_files()
    ids += [i for batch in batches for i in batch["id"].tolist()]
    assert ids == expected
    assert read_ids(loader) == expected, "the next epoch too"


def test_a_version_whose_files_are_removed_is_an_error(dataset: Any) -> None:
    loader = make_loader(dataset, 3)
    dataset.optimize.compact_files()
    lance.write_dataset(make_table(1000, 50), dataset.uri, mode="overwrite")
    lance.dataset(dataset.uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    with pytest.raises((OSError, RuntimeError), match="Not found") as caught:
        read_ids(loader)
    assert any("version 3" in note for note in caught.value.__notes__)


def test_a_pickle_reads_the_same_version(dataset: Any) -> None:
    loader = make_loader(dataset.checkout_version(2), 3, shuffle=True)
    dataset.optimize.compact_files()
    copied = pickle.loads(pickle.dumps(loader))
    assert read_ids(copied) == read_ids(loader)


def test_workers(dataset: Any) -> None:
    with make_loader(dataset, 9, shuffle=True, num_workers=1) as loader:
        assert sorted(read_ids(loader)) == [i for i in range(120) if i % 3]


def test_rows_by_number(dataset: Any) -> None:
    rows = make_loader(dataset).map_dataset()
    assert [int(rows[i]["id"]) for i in (79, 0, 40)] == [119, 1, 61]


def test_dictionaries(tmp_path: Path) -> None:
    names = pa.array(["a", "b", "c", "a"] * 10).dictionary_encode()
    table = pa.table({"id": range(40), "name": names})
    made = lance.write_dataset(table, str(tmp_path / "rows.lance"), max_rows_per_file=15)
    assert read_rows(made) == table.to_pylist()
    loader = arrowdl.Loader(made, 40, framework="numpy", vocabulary={"name": ["c", "b", "a"]})
    assert next(iter(loader))["name"].tolist() == [2, 1, 0, 2] * 10


def test_a_dataset_without_rows(dataset: Any) -> None:
    dataset.delete("true")
    assert read_rows(dataset) == []
    assert read_ids(make_loader(dataset)) == []


def test_a_password_in_the_location_is_not_named(dataset: Any) -> None:
    dataset._uri = "s3://me:secret@bucket/rows.lance?token=secret"
    opened = source_of_lance.LanceSource(dataset, None, None)
    assert opened.files.snapshot == "Lance dataset 's3://bucket/rows.lance', version 3"


def check_random_versions(random: random.Random, path: str) -> None:
    start = random.randrange(1, 60)
    made = lance.write_dataset(
        make_table(0, start), path, max_rows_per_file=random.randrange(5, 40)
    )
    for _ in range(random.randrange(1, 6)):
        kind = random.choice(["append", "delete", "update", "merge", "add column", "compact"])
        if kind == "append":
            rows = random.randrange(1, 30)
            new = make_table(start, rows)
            made = lance.write_dataset(new.select(made.schema.names[:3]), path, mode="append")
            start += rows
        elif kind == "delete":
            made.delete(f"id % {random.randrange(2, 9)} = 1")
        elif kind == "update":
            made.update({"text": "'new'"}, f"id % {random.randrange(2, 9)} = 2")
        elif kind == "merge":
            new = make_table(start - 3, 6)
            names = [name for name in new.column_names if name in made.schema.names]
            merge = made.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            if made.schema.names == names:
                merge.execute(new)
                start += 3
        elif kind == "add column" and "more" not in made.schema.names:
            made.add_columns({"more": "id * 2"})
        else:
            made.optimize.compact_files(target_rows_per_fragment=random.randrange(5, 80))
        made = lance.dataset(path)
    for version in random.choices([found["version"] for found in made.versions()], k=2):
        chosen = made.checkout_version(version)
        expected = chosen.to_table().to_pylist()
        assert read_rows(chosen) == expected
        ranks = [make_loader(chosen, 4, shuffle=True, rank=r, world_size=2) for r in range(2)]
        ids = [i for loader in ranks for i in read_ids(loader)]
        assert sorted(ids) == sorted(row["id"] for row in expected)


def test_random_versions(tmp_path: Path) -> None:
    paths = (str(tmp_path / f"{i}.lance") for i in range(10**9))
    check_cases(lambda random: check_random_versions(random, next(paths)), 10)


@pytest.mark.parametrize(
    "options", [{"batch_size": 4}, {"filter": "id < 15"}, {"with_row_id": True}, {"limit": 20}]
)
def test_default_scan_options_with_columns_and_filters(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    rows = 20
    table = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "t": pa.array(range(rows), pa.time64("us")),
            "st": [{"x": i} for i in range(rows)],
        }
    )
    lance.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=8)
    dataset = lance.dataset(tmp_path / "a.lance", default_scan_options=options)
    ids = range(15 if "filter" in options else rows)
    for filter in (None, "id > 10", ds.field("id") > 10):
        kept = [i for i in ids if filter is None or i > 10]
        for columns in (["id"], ["st.x"], ["t"], ["t", "st.x", "id"]):
            loader = arrowdl.Loader(dataset, 6, columns=columns, filter=filter, framework="numpy")
            batches = list(loader)
            assert list(batches[0]) == columns
            for column in columns:
                assert [i for batch in batches for i in batch[column].tolist()] == kept
