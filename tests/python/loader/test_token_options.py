"""`Tokens` and `Buckets` with other options, and what they refuse."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._epoch.lengths import LengthsSource
from helpers.options import group

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]


def make_table(lengths: list[int] = LENGTHS, start: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, start + len(lengths)), pa.int64()),
            "tokens": pa.array([[i] * n for i, n in enumerate(lengths)], pa.list_(pa.int64())),
            "text": ["x" * n for n in lengths],
        }
    )


def make_long(rows: int = 300) -> pa.Table:
    draw = random.Random(5)
    return make_table([draw.choice([1, 2, 3, 10, 40]) for _ in range(rows)])


def make(source: Any, *sizes: int, **options: Any) -> arrowdl.Loader:
    options = {"framework": "numpy", "ragged": "offsets", **options}
    return arrowdl.Loader(source, *sizes, **group(**options))


def read(loader: Any) -> list[list[int]]:
    return [batch["id"][: loader.valid_rows].tolist() for batch in loader]


def test_a_budget_of_tokens() -> None:
    loader = make(make_table(), batch_tokens=15)
    steps = read(loader)
    assert steps == [[0, 1, 2, 3, 4], [5, 6], [7, 8, 9], [10, 11], [12], [13], [14, 15]]
    assert len(loader) == 7


def test_a_padded_budget() -> None:
    """Rows times the longest of them."""
    loader = make(make_table(), batch_tokens=15, ragged="padded")
    assert read(loader)[:4] == [[0, 1, 2], [3, 4], [5], [6, 7]]


def test_rows_in_buckets() -> None:
    steps = read(make(make_table(), 4, bucket_by="tokens"))
    assert steps == [[1, 3, 6, 0], [9, 15, 2, 4], [8, 10, 7, 13], [11, 5, 12, 14]]
    shuffled = read(make(make_table(), 4, bucket_by="tokens", shuffle=True, seed=1))
    assert sorted(map(sorted, shuffled)) != sorted(map(sorted, steps)), "ties are shuffled, too"
    for step in shuffled:
        lengths = sorted(LENGTHS[i] for i in step)
        assert lengths in [sorted(LENGTHS[i] for i in other) for other in steps]


def test_text_is_sorted_by_its_bytes() -> None:
    table = make_table().select(["id", "text"])
    assert read(make(table, 4, bucket_by="text"))[0] == [1, 3, 6, 0]


def test_windows_are_sorted_one_by_one() -> None:
    """The last rows, which are fewer than a batch, stay where they are."""
    steps = read(make(make_table(), 3, bucket_by="tokens", buffer_size=7))
    assert steps[-1] == [15]
    assert sorted(itertools.chain(*steps)) == list(range(16))
    for start in range(0, 12, 6):
        own = sorted(itertools.chain(*steps[start // 3 : start // 3 + 2]))
        assert own == list(range(start, start + 6)), "a window is of whole batches"


def test_widths_count() -> None:
    """Rows are cut to max_length, and a padded batch is a multiple wide."""
    table = make_long()
    options = {"ragged": {"tokens": "padded"}, "max_length": {"tokens": 20}, "pad_to_multiple": 8}
    loader = make(table, batch_tokens=100, shuffle=True, bucket_by="tokens", **options)
    sizes = [batch["tokens"][0].shape for batch in loader]
    assert max(rows * width for rows, width in sizes) <= 100
    assert {width for _, width in sizes} <= {8, 16, 24}
    assert any(width == 24 and rows == 4 for rows, width in sizes), "as many as fit"


@pytest.mark.parametrize("column", ["tokens", "n"])
def test_widths_count_by_a_column_of_lengths(column: str) -> None:
    """They are the lengths before the rows are cut, of the only column that is padded."""
    lengths = [3, 40, 7, 5, 12, 1]
    table = make_table(lengths).append_column("n", pa.array(lengths))
    options: dict[str, Any] = {"ragged": {"tokens": "padded"}, "max_length": {"tokens": 8}}
    loader = make(table, batch_tokens=16, token_column=column, **options)
    assert [batch["tokens"][0].shape for batch in loader] == [(2, 8), (2, 7), (2, 8)]
    loader = make(table, batch_tokens=16, bucket_by=column, **options)
    shapes = [batch["tokens"][0].shape for batch in loader]
    assert max(rows * width for rows, width in shapes) <= 16
    both = table.append_column("others", table["tokens"])
    options["ragged"] = {"tokens": "padded", "others": "padded"}
    with pytest.raises(ValueError, match="row 1 of the source has 40 tokens"):
        list(make(both, batch_tokens=16, token_column="n", **options))


def test_rows_without_tokens_are_bounded() -> None:
    table = make_table([0] * 25)
    assert [len(step) for step in read(make(table, batch_tokens=10))] == [10, 10, 5]


def test_each_rank_has_its_own_budget_by_default() -> None:
    """One sequence for each rank."""
    table = make_long()
    ranks = [make(table, batch_tokens=60, rank=i, world_size=3) for i in range(3)]
    steps = list(zip(*ranks, strict=True))
    assert len(steps) == len(ranks[0])
    for step in steps[:-1]:
        assert len({len(batch["id"]) for batch in step}) == 1, "equally many rows"
    for step in steps:
        assert all(batch["tokens"][0].size <= 60 for batch in step)
    for loader in ranks:
        assert loader.state_dict() == ranks[0].state_dict()
    state = make_state(ranks[0], 3)
    assert state["splits"] == 3
    other = make(table, batch_tokens=90, rank=0, world_size=2)
    with pytest.raises(ValueError, match=r"splits=3, and this Loader has Ranks.splits=2"):
        other.load_state_dict(state)
    other = make(table, batch_tokens=180, splits=3, rank=0, world_size=1)
    other.load_state_dict(state)
    assert len(read(other)) == len(steps) - 3


def make_state(loader: Any, steps: int) -> dict[str, Any]:
    for _ in itertools.islice(loader, steps):
        pass
    state: dict[str, Any] = loader.state_dict()
    return state


def test_another_budget_for_the_rest_of_an_epoch() -> None:
    table = make_long()
    loader = make(table, global_batch_tokens=400, splits=4, shuffle=True)
    seen = list(itertools.chain(*itertools.islice((b["id"].tolist() for b in loader), 3)))
    state = loader.state_dict()
    for budget, steps in ((200, 2), (800, 3), (200, None)):
        loader = make(table, global_batch_tokens=budget, splits=4, shuffle=True)
        loader.load_state_dict(state)
        for batch in itertools.islice(loader, steps):
            seen += batch["id"].tolist()
        state = loader.state_dict()
    assert sorted(seen) == list(range(300))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"bucket_by": None}, r"of batching=Buckets\('tokens'\), .* has steps of nothing more: "),
        (
            {"global_batch_tokens": 800},
            "steps of 400 tokens of all ranks, and .* of 800 tokens ",
        ),
        ({"buffer_size": 128}, r"window=16, and this Loader has steps of Buckets\.window=32: "),
        ({"ragged": "padded"}, "steps of rows without padding, and .* steps of padded rows"),
        ({"splits": 2}, r"splits=4, and this Loader has Ranks\.splits=2"),
        (
            {"global_batch_tokens": None, "global_batch_size": 16},
            "has steps of .*16 rows of all",
        ),
        (
            {"global_batch_tokens": None, "bucket_by": None, "batch_size": 4, "splits": None},
            r"steps of batching=Buckets\('tokens'\), .* has steps of a number of rows: ",
        ),
    ],
)
def test_a_state_of_other_steps(changed: dict[str, Any], text: str) -> None:
    options = {"global_batch_tokens": 400, "splits": 4, "bucket_by": "tokens", "buffer_size": 64}
    state = make_state(make(make_long(), shuffle=True, **options), 3)
    options = {"token_column": "tokens", **options, **changed}
    if options["global_batch_tokens"] is None:
        del options["token_column"]
    with pytest.raises(ValueError, match=text):
        make(make_long(), shuffle=True, **options).load_state_dict(state)


def test_a_damaged_state() -> None:
    loader = make(make_long(), batch_tokens=400)
    state = make_state(loader, 2)
    for key, value, text in (
        ("stages", [[400, 99]], "99 steps of 400 tokens were read, and the rows are enough for"),
        ("stages", [[400, -1]], "has -1 for batches"),
        ("splits", None, "steps of tokens have splits"),
        ("steps", 5, r"steps of 5, and this Loader has steps of Tokens\(column="),
    ):
        with pytest.raises(ValueError, match=text):
            loader.load_state_dict({**state, key: value})


def test_a_state_that_counts_steps_itself() -> None:
    """torchdata counts the steps since it asked for a state."""
    table = make_long()
    steps = read(make(table, batch_tokens=100))
    loader = make(table, batch_tokens=100)
    loader.load_state_dict(
        {"worker": make_state(make(table, batch_tokens=100), 2), "_steps_since_snapshot": 3}
    )
    assert read(loader) == steps[5:]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_go_on(copied: Any) -> None:
    options = {"batch_tokens": 100, "bucket_by": "tokens", "shuffle": True, "buffer_size": 64}
    loader = make(make_long(), **options)
    whole = read(make(make_long(), **options))
    make_state(loader, 4)
    twin = make(make_long(), **options)
    twin.load_state_dict(loader.state_dict())
    assert read(copied(twin)) == whole[4:]


def test_lengths_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(make_long(), tmp_path / "0.parquet", row_group_size=50)
    calls = []
    before = LengthsSource._read
    monkeypatch.setattr(LengthsSource, "_read", lambda self: calls.append(1) or before(self))
    loader = make(tmp_path, batch_tokens=100, shuffle=True)
    assert not calls
    lengths = [len(loader)]
    for _ in range(3):
        assert len(read(loader)) == lengths[-1]
        lengths.append(len(loader))
    assert len(read(loader.map(dict))) == lengths[-1]
    assert calls == [1]
    assert len(set(lengths)) > 1, "an epoch's order decides on its number of steps"


def test_batches_may_be_written_to(tmp_path: Path) -> None:
    """A batch of a single sequence is a slice, unless it may be written to."""
    table = make_long()
    feather.write_feather(table, tmp_path / "0.arrow", compression="uncompressed")
    for source in (table, tmp_path):
        for options in ({"batch_tokens": 100}, {"batch_size": 10, "bucket_by": "tokens"}):
            loader = make(source, **options)
            seen = []
            for batch in loader:
                seen += batch["id"].tolist()
                batch["id"] += 1000
                batch["tokens"][0][:] = -1
            assert sorted(seen) == list(range(300))
            first = next(iter(loader))
            assert first["id"].max() < 300
            assert first["tokens"][0].min() >= 0
    assert table["tokens"][1][0].as_py() == 1


def test_equal_lengths_stay_in_order_and_are_copied() -> None:
    table = make_table([3] * 20)
    batch = next(iter(make(table, 5, bucket_by="tokens")))
    assert batch["id"].tolist() == [0, 1, 2, 3, 4]
    batch["id"] += 1
    assert table["id"][0].as_py() == 0


def test_transforms_and_threads() -> None:
    table = make_long()
    options: dict[str, Any] = {"batch_tokens": 100, "token_column": "tokens"}
    steps = read(make(table, **options))

    def rename(rows: pa.RecordBatch) -> dict[str, Any]:
        return {"id": rows["id"]}

    assert read(make(table, transform_arrow=rename, **options)) == steps
    assert read(make(table, transform=dict.copy, num_threads=2, **options)) == steps


def test_worker_processes(tmp_path: Path) -> None:
    pq.write_table(make_long(), tmp_path / "0.parquet", row_group_size=50)
    options = {"shuffle": True, "bucket_by": "tokens", "ragged": "padded", "buffer_size": 64}
    for size in ({"batch_tokens": 200}, {"batch_size": 8}):
        alone = make(tmp_path, **size, **options)
        steps = read(alone)
        with make(tmp_path, num_workers=2, **size, **options) as loader:
            assert read(loader) == steps
            ours, theirs = loader.stats(), alone.stats()
            assert (ours.values, ours.padding_values) == (theirs.values, theirs.padding_values)
            state = make_state(loader, 3)
            again = read(make_at(alone, 1))
            resumed = make(tmp_path, **size, **options)
            resumed.load_state_dict(state)
            assert read(resumed) == again[3:]


def test_a_planned_loader_is_sent_to_worker_processes(tmp_path: Path) -> None:
    """The steps that `len` has found hold what is read, which cannot be sent."""
    pq.write_table(make_long(), tmp_path / "0.parquet", row_group_size=50)
    options: dict[str, Any] = {"batch_tokens": 200, "shuffle": True}
    steps = read(make(tmp_path, **options))
    with make(tmp_path, num_workers=2, **options) as loader:
        assert len(loader) == len(steps)
        assert read(loader) == steps


def make_at(loader: arrowdl.Loader, epoch: int) -> arrowdl.Loader:
    loader.set_epoch(epoch)
    return loader


def test_workers_of_a_data_loader(tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    table = make_long()
    options: dict[str, Any] = {"batch_tokens": 200, "bucket_by": "tokens", "shuffle": True}
    loader = make(table, framework="torch", columns=["id", "tokens"], **options)
    steps = [batch["id"].tolist() for batch in loader]
    loader.set_epoch(0)
    found = DataLoader(loader.torch_dataset(), batch_size=None, num_workers=2)
    assert [batch["id"].tolist() for batch in found] == steps


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{"batch_tokens": 10}, {"batch_size": 1, "num_threads": 2}])
def test_a_data_loader_says_which_rows_are_of_the_rank(
    options: dict[str, Any], workers: int
) -> None:
    """Ranks that lack a row repeat one, and a budget of tokens has no `pad_last` to tell."""
    from torch.utils.data import DataLoader

    table = make_table([10] * 7)
    seen, repeated = [], 0
    for rank in range(4):
        loader = make(table, framework="torch", rank=rank, world_size=4, **options)
        batches = DataLoader(
            loader.torch_dataset(valid_rows=True), batch_size=None, num_workers=workers
        )
        for batch, valid in batches:
            seen += batch["id"][:valid].tolist()
            repeated += len(batch["id"]) - valid
        with pytest.raises(TypeError, match="valid_rows=1: expected"):
            loader.torch_dataset(valid_rows=1)  # type: ignore[arg-type]
    assert sorted(seen) == list(range(7))
    assert repeated > 0


def make_mixture(weights: Any = None, size: int | None = 16, **options: Any) -> arrowdl.Loader:
    draw = random.Random(1)
    sources = {
        name: make_table([draw.randrange(50) for _ in range(rows)], start)
        for name, start, rows in (("a", 0, 150), ("b", 1000, 250))
    }
    options = {"splits": 4, "shuffle": True, "buffer_size": 128, **options}
    options = {"framework": "numpy", "ragged": "offsets", "bucket_by": "tokens", **options}
    weights = weights or {"a": 1, "b": 2}
    return arrowdl.Loader.mix(sources, weights=weights, **group(global_batch_size=size, **options))


def read_mixture(
    ranks: int, state: Any = None, steps: int | None = None, **options: Any
) -> tuple[list[list[int]], Any]:
    loaders = [make_mixture(rank=i, world_size=ranks, **options) for i in range(ranks)]
    for loader in loaders if state else ():
        loader.load_state_dict(state)
    read = []
    for step in itertools.islice(zip(*loaders, strict=True), steps):
        parts = [b["id"][: loader.valid_rows] for b, loader in zip(step, loaders, strict=True)]
        read.append(np.concatenate(parts).tolist())
    return read, loaders[0].state_dict()


@pytest.mark.parametrize("weights", [{"a": 1, "b": 2}, {0: {"a": 1, "b": 2}, 5: {"a": 3, "b": 1}}])
@pytest.mark.parametrize("stop", ["first", "all"])
def test_mixtures_in_buckets(stop: str, weights: Any) -> None:
    """A resume reads a window again, on other ranks."""
    options = {"stop": stop, "weights": weights}
    whole, _ = read_mixture(1, **options)
    for steps in (0, 3, 5, 8):
        first, state = read_mixture(2, steps=steps, **options)
        second, state = read_mixture(4, state, 4, **options)
        third, _ = read_mixture(1, state, **options)
        assert first + second + third == whole


def test_other_weights_within_a_window() -> None:
    _, state = read_mixture(1, steps=3)
    with pytest.raises(ValueError, match=r"weights change within a window .* up to row 32"):
        make_mixture({"a": 1, "b": 9}).load_state_dict(state)
    _, state = read_mixture(1, steps=8)  # a window has eight steps
    make_mixture({"a": 1, "b": 9}).load_state_dict(state)


def test_an_endless_mixture_in_buckets() -> None:
    assert len(read_mixture(1, steps=100, stop="repeat")[0]) == 100


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"batch_tokens": 8},
            r"row 5 of the source has 9 tokens in \"tokens\", and each of the 1 sequences may give "
            r"8 to a step \(batch_size=Tokens\(8\), Ranks.splits=1\): give batch_size=Tokens\(9\) "
            r"or more or cut",
        ),
        (
            {"global_batch_tokens": 32},
            r"of the 8 sequences may give 4 .* ranks=Ranks\(global_batch_size=Tokens\(72\)\) ",
        ),
        (
            {"batch_tokens": 9, "ragged": "padded", "pad_to_multiple": 4},
            r"has 9 tokens, 12 with padding, .* batch_size=Tokens\(12\)",
        ),
        ({"batch_tokens": 20, "splits": 4}, r"batch_size=Tokens\(36\) or more, fewer splits, or"),
    ],
)
def test_a_row_that_is_longer_than_the_budget(options: dict[str, Any], text: str) -> None:
    loader = make(make_table(), columns=["id", "tokens"], **options)
    with pytest.raises(ValueError, match=text):
        next(iter(loader))
    with pytest.raises(ValueError, match=text):
        len(loader)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_tokens": 0}, ValueError, r"Tokens\.number=0: expected an int of at least 1"),
        ({"batch_tokens": 9, "pad_last": True}, ValueError, "pad_last=True pads to a number of"),
        ({"batch_size": 4, "bucket_by": 3}, TypeError, r"Buckets\.column=3: give the name of a"),
        (
            {"batch_tokens": 9, "token_column": "tokens", "bucket_by": "text"},
            ValueError,
            "counted and sorted by the same column",
        ),
        ({"batch_size": 4, "bucket_by": "x"}, ValueError, '"x" is not one of the columns'),
        ({"batch_tokens": 9, "columns": ["id"]}, ValueError, "counts the items of a column of"),
        (
            {"batch_tokens": 9, "splits": 4, "rank": 0, "world_size": 3},
            ValueError,
            "splits=4 cannot be divided among 3 ranks",
        ),
        (
            {"batch_size": 3, "bucket_by": "text", "splits": 2},
            ValueError,
            "splits=2 does not divide a global batch of",
        ),
    ],
)
def test_what_does_not_fit_together(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        next(iter(make(make_table(), **options)))


def test_a_batch_size_that_is_none() -> None:
    with pytest.raises(ValueError, match="batches have different numbers of rows"):
        _ = make(make_table(), batch_tokens=99).batch_size


def test_several_columns_of_lists() -> None:
    table = make_table()
    table = table.append_column("labels", table["tokens"])
    with pytest.raises(
        ValueError, match=r"\['tokens', 'labels'\]: name one as Tokens\(column=...\)"
    ):
        make(table, batch_tokens=99)
    assert read(make(table, batch_tokens=15, token_column="labels")) == read(
        make(make_table(), batch_tokens=15)
    )


@pytest.mark.parametrize("options", [{"batch_tokens": 99}, {"batch_size": 4, "bucket_by": "text"}])
def test_streams(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"is a stream, .* give the Loader a table of its rows"):
        make(make_table().to_reader, **options)


@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("bucket", ["tokens", None])
@pytest.mark.parametrize("ragged", ["padded", "offsets"])
def test_mixtures_with_a_budget(stop: str, bucket: str | None, ragged: str) -> None:
    options = {"stop": stop, "ragged": ragged, "size": None, "bucket_by": bucket}
    options |= {"global_batch_tokens": 1200, "token_column": "tokens"}
    for batch in make_mixture(**options):
        assert batch["tokens"][0].size <= 1200
    whole, _ = read_mixture(1, **options)
    assert len(whole) == len(make_mixture(**options))
    plain, _ = read_mixture(1, stop=stop)
    assert sorted(itertools.chain(*whole)) == sorted(itertools.chain(*plain))
    assert len(whole) > 7
    for steps in (0, 2, 4):
        first, state = read_mixture(2, steps=steps, **options)
        second, state = read_mixture(4, state, 3, **options)
        third, _ = read_mixture(1, state, **options)
        assert first + second + third == whole


SCHEDULE = {0: {"a": 1, "b": 0}, 2: {"a": 0, "b": 1}, 4: {"a": 1, "b": 1}}


@pytest.mark.parametrize("stop", ["first", "all", "repeat"])
@pytest.mark.parametrize("bucket", ["tokens", None])
def test_weights_of_a_budget_change_at_a_step(stop: str, bucket: str | None) -> None:
    options: dict[str, Any] = {"stop": stop, "size": None, "bucket_by": bucket, "buffer_size": 32}
    options |= {"global_batch_tokens": 480, "token_column": "tokens", "weights": SCHEDULE}
    most = 40 if stop == "repeat" else None
    whole, _ = read_mixture(1, steps=most, **options)
    if stop != "repeat":
        assert len(whole) == len(make_mixture(**options))
    sources = [{i >= 1000 for i in step} for step in whole]
    assert sources[:2] == [{False}, {False}]
    if bucket is None:
        assert sources[2:4] == [{True}, {True}]
        assert sources[4] == {False, True}
    else:  # rows that are sorted together keep their weights
        first = sources.index({True})
        assert 2 <= first < 6
        assert {False, True} in sources[first:]
    if stop == "all":
        assert set(itertools.chain(*whole)) == {*range(150), *range(1000, 1250)}
    for steps in (0, 1, 2, 3, 5):
        first_part, state = read_mixture(2, steps=steps, **options)
        second, state = read_mixture(4, state, 3, **options)
        left = None if most is None else most - steps - 3
        third, _ = read_mixture(1, state, left, **options)
        assert first_part + second + third == whole


@pytest.mark.parametrize("bucket", ["tokens", None])
def test_other_weights_of_a_budget_hold_from_a_resume_on(bucket: str | None) -> None:
    options: dict[str, Any] = {"stop": "repeat", "size": None, "bucket_by": bucket}
    options |= {"global_batch_tokens": 480, "token_column": "tokens", "buffer_size": 32}
    before, state = read_mixture(1, steps=3, weights={"a": 1, "b": 0}, **options)
    assert not any(i >= 1000 for step in before for i in step)
    found = [
        read_mixture(ranks, state, 12, weights={"a": 0, "b": 1}, **options)[0] for ranks in (1, 2)
    ]
    assert found[0] == found[1]
    is_b = [all(i >= 1000 for i in step) for step in found[0]]
    assert all(is_b[4:])
    assert bucket is not None or all(is_b)
    ids = list(itertools.chain(*before, *(step for step in found[0])))
    of_a = [i for i in ids if i < 1000]
    assert len(set(of_a)) == len(of_a), "none is read twice"


def test_another_budget_within_a_schedule() -> None:
    """Weights change at a step, whatever budgets the steps before it had."""
    weights = {0: {"a": 1, "b": 0}, 4: {"a": 0, "b": 1}}
    options: dict[str, Any] = {"stop": "repeat", "size": None, "bucket_by": None}
    options |= {"token_column": "tokens", "weights": weights}
    steps, state = read_mixture(1, steps=2, global_batch_tokens=480, **options)
    for ranks, budget, more in ((2, 960, 1), (4, 480, 3)):
        found, state = read_mixture(ranks, state, more, global_batch_tokens=budget, **options)
        steps += found
    assert [{i >= 1000 for i in step} for step in steps] == [{False}] * 4 + [{True}] * 2
    ids = list(itertools.chain(*steps))
    assert len(set(ids)) == len(ids)
    assert [phase[1] for phase in state["phases"]] == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "weights", [{"a": 1, "b": 1}, {0: {"a": 1, "b": 1}, 2**30: {"a": 0, "b": 1}}]
)
def test_a_schedule_that_no_epoch_reaches(weights: Any) -> None:
    options: dict[str, Any] = {"size": None, "bucket_by": None, "token_column": "tokens"}
    for stop in ("first", "all"):
        loader = make_mixture(weights, stop=stop, global_batch_tokens=480, **options)
        assert len(loader) > 20
        assert len(loader) == len(read(loader))


@pytest.mark.parametrize(
    "options",
    [
        {"pack": arrowdl.Pack("tokens", 8), "batch_size": 2},
        {"batch_tokens": 20, "token_column": "tokens"},
        {"batch_size": 4, "bucket_by": "tokens"},
    ],
)
@pytest.mark.parametrize("more", [{}, {"on_error": "skip"}, {"rank": 1, "world_size": 2}])
def test_a_filter_that_leaves_no_row(
    tmp_path: Path, options: dict[str, Any], more: dict[str, Any]
) -> None:
    pq.write_table(make_long(), tmp_path / "0.parquet", row_group_size=50)
    loader = make(tmp_path, columns=["id", "tokens"], filter=ds.field("id") < 0, **options, **more)
    assert (len(loader), list(loader)) == (0, [])
    loader.load_state_dict(loader.state_dict())
    assert loader.epoch == 1


def test_an_endless_budget() -> None:
    options: dict[str, Any] = {"stop": "repeat", "size": None, "bucket_by": None}
    options |= {"global_batch_tokens": 480, "token_column": "tokens"}
    steps, state = read_mixture(2, steps=100, **options)
    assert all(steps)
    rest, _ = read_mixture(1, state, 5, **options)
    assert rest == read_mixture(1, steps=105, **options)[0][100:]
    with pytest.raises(TypeError, match="it never ends"):
        len(make_mixture(**options))
    assert "a, b, global batches of 480 tokens" in repr(make_mixture(**options))
    with make_mixture(num_workers=2, **options) as loader:
        assert read(Slice(loader, 20)) == steps[:20]


class Slice:
    """The first batches of a Loader."""

    def __init__(self, loader: Any, count: int) -> None:
        self.loader, self.count = loader, count

    @property
    def valid_rows(self) -> int:
        return int(self.loader.valid_rows)

    def __iter__(self) -> Any:
        return itertools.islice(self.loader, self.count)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_tokens": 99}, TypeError, r"give ranks=Ranks\(global_batch_size=\.\.\.\)"),
        ({"size": None}, TypeError, r"or its tokens, Tokens\(\.\.\.\)"),
    ],
)
def test_budgets_that_no_mixture_has(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make_mixture(**options)


def test_a_row_of_a_mixture_that_is_too_long() -> None:
    loader = make_mixture(size=None, global_batch_tokens=120)
    with pytest.raises(ValueError, match=r"row \d+ of \"[ab]\" has 49 tokens in \"tokens\""):
        next(iter(loader))


def test_map_datasets_have_rows_by_their_numbers() -> None:
    dataset = make(make_table(), batch_tokens=15, bucket_by="tokens").map_dataset()
    assert dataset[[3, 1]]["id"].tolist() == [3, 1]


def test_repr() -> None:
    loader = make(make_table(), batch_tokens=15, bucket_by="tokens")
    assert 'batches of 15 tokens, bucketed by "tokens", for numpy' in repr(loader)
    loader = make(make_table(), global_batch_tokens=160, token_column="tokens")
    assert "global batches of 160 tokens from 8 sequences for numpy" in repr(loader)


def test_a_mixture_with_a_budget_in_another_process() -> None:
    options: dict[str, Any] = {"size": None, "global_batch_tokens": 1200}
    whole, _ = read_mixture(1, **options)
    loader = make_mixture(num_workers=2, **options)
    with loader:
        assert read(loader) == whole
    copied = pickle.loads(pickle.dumps(make_mixture(**options)))
    assert read(copied) == whole


@pytest.mark.parametrize("sizes", [{"batch_tokens": 100}, {"batch_size": 8}])
@pytest.mark.parametrize("may_go_on", [False, True])
def test_workers_divide_what_a_state_leaves(sizes: dict[str, int], may_go_on: bool) -> None:
    """As workers of a DataLoader do, with a state from before them or one of theirs."""
    options = {"bucket_by": "tokens", "shuffle": True, "buffer_size": 64, **sizes}
    whole = read(make(make_long(), **options))
    state = make_state(make(make_long(), **options), 4)
    shares = []
    for worker in range(3):
        loader = make(make_long(), **options)
        loader.load_state_dict(state)
        share = loader._read_share(worker, 3, may_go_on=may_go_on)
        shares.append([batch["id"].tolist() for batch in share])
    turns = sorted(shares, key=len, reverse=True) if not may_go_on else shares[1:] + shares[:1]
    steps = [step for turn in itertools.zip_longest(*turns) for step in turn if step is not None]
    assert sorted(map(tuple, steps)) == sorted(map(tuple, whole[4:]))
    if not may_go_on:
        assert steps == whole[4:]
