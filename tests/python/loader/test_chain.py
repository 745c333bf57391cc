"""`Loader.map` and `Loader.filter`: rows that are dropped, and what stays as it is."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.options import group
from helpers.ranks import Ranks

ROWS = 100
OPTIONS: dict[str, Any] = {"framework": "numpy"}


def make_table() -> pa.Table:
    ids = pa.array(range(ROWS), pa.int64())
    lists = [list(range(i % 3)) for i in range(ROWS)]
    return pa.table({"id": ids, "list": lists, "name": [f"row {i}" for i in range(ROWS)]})


def is_even(batch: dict[str, Any]) -> Any:
    return batch["id"] % 2 == 0


def is_third(batch: dict[str, Any]) -> Any:
    return (batch["id"] % 3 == 0).tolist()


def double(batch: dict[str, Any]) -> dict[str, Any]:
    return {"id": batch["id"], "twice": batch["id"] * 2}


def read(loader: Any) -> list[list[int]]:
    return [batch["id"][: loader.valid_rows].tolist() for batch in loader]


def flatten(steps: list[list[int]]) -> list[int]:
    return [i for step in steps for i in step]


def test_maps_follow_the_transform() -> None:
    order = []

    def note(name: str) -> Any:
        return lambda batch: order.append(name) or batch

    loader = arrowdl.Loader(make_table(), ROWS, transform=note("transform"), **group(**OPTIONS))
    mapped = loader.map(note("first")).map(note("second"))
    next(iter(mapped))
    assert order == ["transform", "first", "second"]
    order.clear()
    next(iter(loader))
    assert order == ["transform"], "the first Loader has not changed"
    assert mapped.stats().transform_seconds > 0


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
@pytest.mark.parametrize("is_mapped", [False, True])
def test_a_filter_drops_rows(framework: Any, is_mapped: bool) -> None:
    table = make_table().select(["id"] if is_mapped or framework == "jax" else ["id", "list"])
    loader = arrowdl.Loader(table, 10, framework=framework, dtype={"id": "int32"})
    chain = (loader.map(double) if is_mapped else loader).filter(is_even)
    assert len(chain) == 10
    for number, batch in enumerate(chain):
        expected = list(range(10 * number, 10 * number + 10, 2))
        assert batch["id"].tolist() == expected
        assert chain.valid_rows == 5
        if is_mapped:
            assert batch["twice"].tolist() == [2 * i for i in expected]
    stats = chain.stats()
    assert (stats.rows, stats.filtered_rows, stats.padding_rows) == (50, 50, 0)
    assert "50 filtered" in str(stats)


@pytest.mark.parametrize("ragged", ["jagged", "padded", "offsets"])
def test_ragged_columns_before_a_map(ragged: Any) -> None:
    loader = arrowdl.Loader(make_table(), 10, ragged=ragged, columns=["id", "list"])
    filtered = loader.filter(is_third)
    expected = arrowdl.Loader(make_table().take(list(range(0, 10, 3))), 4, ragged=ragged)
    batch, wanted = next(iter(filtered)), next(iter(expected))
    assert batch["id"].tolist() == wanted["id"].tolist() == [0, 3, 6, 9]
    if ragged == "jagged":
        assert [row.tolist() for row in batch["list"].unbind()] == [[], [], [], []]
        later = filtered.map(dict).filter(lambda batch: batch["id"] > 3)
        assert [len(row) for row in next(iter(later))["list"].unbind()] == [0, 0]
    else:
        for own, other in zip(batch["list"], wanted["list"], strict=True):
            assert own.tolist() == other.tolist()


def test_batches_without_a_row_repeat_one() -> None:
    loader = arrowdl.Loader(make_table(), 10, columns=["id"], **group(**OPTIONS))
    for chain in (loader, loader.map(double)):
        filtered = chain.filter(lambda batch: batch["id"] < 15)
        batches = [(filtered.valid_rows, batch["id"].tolist()) for batch in filtered]
        assert batches[:4] == [
            (10, list(range(10))),
            (5, list(range(10, 15))),
            (0, [20]),
            (0, [30]),
        ]
        assert len(batches) == 10
        again = filtered.filter(is_even)
        assert flatten(read(again)) == list(range(0, 15, 2))


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
@pytest.mark.parametrize("is_mapped", [False, True])
def test_padded_batches_keep_their_shape(framework: Any, is_mapped: bool) -> None:
    loader = arrowdl.Loader(
        make_table().select(["id"]), 16, framework=framework, pad_last=True, dtype="int32"
    )
    chain = (loader.map(dict) if is_mapped else loader).filter(lambda b: b["id"] % 20 < 3)
    expected = [i for i in range(ROWS) if i % 20 < 3]
    own = []
    for batch in chain:
        assert batch["id"].shape == batch["valid"].shape == (16,)
        valid = batch["valid"].tolist()
        assert valid == [True] * chain.valid_rows + [False] * (16 - chain.valid_rows)
        own += batch["id"].tolist()[: chain.valid_rows]
    assert own == expected
    assert chain.stats().filtered_rows == ROWS - len(expected)


class Pair(NamedTuple):
    id: Any
    label: Any


def test_batches_of_any_structure() -> None:
    def change(batch: dict[str, Any]) -> Any:
        ids = batch["id"]
        nested = {"x": np.stack([ids, ids], axis=1), "step": 3, "kind": "a", "none": None}
        return [Pair(ids, ids + 1), nested, [f"name {i}" for i in ids.tolist()]]

    loader = arrowdl.Loader(make_table().select(["id"]), 4, **group(**OPTIONS))
    chain = loader.map(change).filter(lambda batch: batch[0].id % 4 != 1)
    pair, nested, names = next(iter(chain))
    assert isinstance(pair, Pair)
    assert (pair.id.tolist(), pair.label.tolist()) == ([0, 2, 3], [1, 3, 4])
    assert nested["x"].tolist() == [[0, 0], [2, 2], [3, 3]]
    assert (nested["step"], nested["kind"], nested["none"]) == (3, "a", None)
    assert names == ["name 0", "name 2", "name 3"]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_wrong_masks_and_batches_are_errors(on_error: Any) -> None:
    table = make_table().select(["id", "list"])
    loader = arrowdl.Loader(table, 10, **group(on_error=on_error, **OPTIONS))
    for mask, kind, message in [
        (lambda batch: True, TypeError, "returned bool: return a bool for each row"),
        (lambda batch: batch["id"], TypeError, "returned ndarray of int64"),
        (lambda batch: [True], ValueError, "returned 1 bools for a batch of 10 rows"),
        (lambda batch: None, TypeError, "returned NoneType"),
    ]:
        with pytest.raises(kind, match=message):
            next(iter(loader.filter(mask)))
    with pytest.raises(TypeError, match=r"tensor of shape .* call filter\(\) before the map"):
        next(iter(loader.map(dict).filter(is_even)))
    with pytest.raises(TypeError, match=r"map\(3\): give a function of one batch"):
        loader.map(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="filter"):
        loader.filter("id")  # type: ignore[arg-type]


def test_errors_come_with_their_batch() -> None:
    def fail(batch: dict[str, Any]) -> Any:
        if 20 in batch["id"]:
            raise ZeroDivisionError("bad")
        return batch

    chain = arrowdl.Loader(make_table(), 10, **group(**OPTIONS)).filter(is_even).map(fail)
    batches = iter(chain)
    assert [next(batches)["id"][0] for _ in range(2)] == [0, 10]
    with pytest.raises(ZeroDivisionError, match="bad"):
        next(batches)
    assert chain.state_dict()["stages"][-1][-1] == 2


def read_in_two(make: Any, ranks: int, workers: int, stop: int) -> list[Any]:
    """The steps up to `stop` on some ranks, and those after it on four divided by their number."""
    first, state = Ranks(make, ranks, workers).read(stop)
    rest = Ranks(make, 4 // ranks, workers)
    rest.load(state)
    later, _ = rest.read()
    return first + later


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("splits", [None, 4])
def test_steps_ranks_and_states(shuffle: bool, splits: int | None) -> None:
    options = {"shuffle": shuffle, "buffer_size": 40, "splits": splits, "columns": ["id"]}

    def make(**rank: int) -> Any:
        size = 12 // rank["world_size"]
        loader = arrowdl.Loader(make_table(), size, **group(**options, **OPTIONS, **rank))
        return loader.filter(is_third)

    expected = list(range(0, ROWS, 3))
    alone, _ = Ranks(make, 1, 0).read()
    assert sorted(flatten(alone)) == expected
    for ranks, workers, stop in [(1, 2, 0), (2, 0, 3), (4, 2, 2), (2, 1, 5)]:
        resumed = read_in_two(make, ranks, workers, stop)
        assert sorted(flatten(resumed)) == expected
        if splits is not None:
            assert resumed == alone


def is_rare(batch: dict[str, Any]) -> Any:
    return batch["id"] % 40 == 7


def require_rare(batch: dict[str, Any]) -> dict[str, Any]:
    assert is_rare(batch).all(), f"map() got rows that filter() has dropped: {batch['id']}"
    return {"id": batch["id"], "twice": batch["id"] * 2}


def copy_rows(batch: Any) -> Any:
    return batch


RARE = [7, 47, 87]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("splits", [None, 4])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"pad_last": True},
        {"transform": dict, "columns": ["id"]},
        {"transform_arrow": copy_rows},
        {"num_threads": 2},
    ],
    ids=["plain", "padded", "transform", "arrow", "threads"],
)
def test_a_map_gets_no_row_that_was_dropped(
    shuffle: bool, splits: int | None, on_error: Any, more: dict[str, Any]
) -> None:
    options = {"shuffle": shuffle, "buffer_size": 40, "splits": splits, "on_error": on_error}

    def make(**rank: int) -> Any:
        size = 12 // rank["world_size"]
        table = make_table().select(["id", "list"])
        loader = arrowdl.Loader(table, size, **group(**options, **OPTIONS, **more, **rank))
        return loader.filter(is_rare).map(require_rare).filter(is_rare).map(require_rare)

    alone = Ranks(make, 1, 0)
    steps, _ = alone.read()
    assert sorted(flatten(steps)) == RARE
    stats = alone.loaders[0].stats()
    assert (stats.rows, stats.filtered_rows, stats.skipped_rows) == (3, ROWS - 3, 0)
    for ranks, workers, stop in [(1, 2, 0), (2, 0, 3), (4, 2, 2), (4, 0, 1)]:
        resumed = read_in_two(make, ranks, workers, stop)
        assert sorted(flatten(resumed)) == RARE
        if splits is not None:
            assert resumed == steps


def test_the_row_that_stands_in_is_the_same_after_a_resume() -> None:
    def make(rank: int = 0, world_size: int = 1) -> Any:
        loader = arrowdl.Loader(
            make_table().select(["id"]),
            **group(
                global_batch_size=4,
                splits=4,
                shuffle=True,
                rank=rank,
                world_size=world_size,
                **OPTIONS,
            ),
        )
        return loader.filter(is_rare).map(require_rare)

    loader = make()
    ids = {int(batch["id"][0]) for batch in loader if not loader.valid_rows}
    assert len(ids) == 1
    loader = make(rank=1, world_size=2)
    list(zip(range(10), loader, strict=False))
    resumed = make(rank=3, world_size=4)
    resumed.load_state_dict(loader.state_dict())
    assert {int(batch["id"][0]) for batch in resumed if not resumed.valid_rows} == ids


def test_a_map_after_a_filter_of_other_sources() -> None:
    table = make_table().select(["id"])
    mixed = {"a": table, "b": table.slice(0, 20)}
    weights = {"a": 3, "b": 1}
    loader = arrowdl.Loader.mix(
        mixed, weights=weights, stop="all", **group(global_batch_size=2, splits=2, **OPTIONS)
    )
    read_ids = flatten(read(loader.filter(is_rare).map(require_rare)))
    assert set(read_ids) == set(RARE)
    endless = arrowdl.Loader.mix(
        mixed, weights=weights, stop="repeat", **group(global_batch_size=2, splits=2, **OPTIONS)
    )
    chain = endless.filter(is_rare).map(require_rare)
    assert {7, 47, 87} == {i for _, b in zip(range(200), chain, strict=False) for i in b["id"]}
    tokens = make_table().append_column("tokens", pa.array([[i] * 4 for i in range(ROWS)]))
    budget = {"batch_tokens": 12, "token_column": "tokens", "bucket_by": "tokens", "splits": 2}
    bucketed = arrowdl.Loader(tokens, columns=["id", "tokens"], **group(**budget, **OPTIONS))
    assert sorted(flatten(read(bucketed.filter(is_rare).map(require_rare)))) == RARE
    pack = arrowdl.Pack("tokens", 4)
    blocks = arrowdl.Loader(tokens, 2, columns=["tokens"], **group(pack=pack, **OPTIONS))

    def starts_rare(batch: dict[str, Any]) -> Any:
        return batch["tokens"][:, 0] % 40 == 7

    def check(batch: dict[str, Any]) -> dict[str, Any]:
        assert starts_rare(batch).all()
        return batch

    chain = blocks.filter(starts_rare).map(check)
    assert [int(b["tokens"][0, 0]) for b in chain if chain.valid_rows] == RARE


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_stream_shows_a_row_before_it_stands_in(on_error: Any) -> None:
    """It is not read twice at once: a row of an earlier batch is kept."""
    table = make_table().select(["id"])
    loader = arrowdl.Loader(table.slice(4).to_reader, 4, **group(on_error=on_error, **OPTIONS))
    assert flatten(read(loader.filter(is_rare).map(require_rare))) == RARE
    loader = arrowdl.Loader(table.to_reader, 4, **group(on_error=on_error, **OPTIONS))
    chain = loader.filter(is_rare).map(require_rare)
    with pytest.raises(ValueError, match="no row of the first batches of the stream, and the map"):
        next(iter(chain))
    assert flatten(read(loader.filter(is_rare))) == RARE, "without a map it needs none"


def test_a_filter_that_keeps_nothing() -> None:
    table = make_table().select(["id"])
    for options in ({}, {"on_error": "skip"}, {"shuffle": True}, {"num_threads": 2}):
        loader = arrowdl.Loader(table, 10, **group(**options, **OPTIONS))
        nothing = loader.filter(lambda batch: batch["id"] < 0)
        assert [nothing.valid_rows for _ in nothing] == [0] * 10
        with pytest.raises(ValueError, match=r"filter\(\) keeps no row of the epoch, and the map"):
            next(iter(nothing.map(double)))
    mixed = arrowdl.Loader.mix(
        {"a": table}, weights={"a": 1}, **group(global_batch_size=8, splits=1, **OPTIONS)
    )
    with pytest.raises(ValueError, match="keeps no row of the epoch"):
        next(iter(mixed.filter(lambda batch: batch["id"] < 0).map(double)))


def test_a_row_that_stands_in_is_one_for_which_no_function_fails() -> None:
    def fail(batch: dict[str, Any]) -> dict[str, Any]:
        if 7 in batch["id"]:
            raise ZeroDivisionError("bad")
        return require_rare(batch)

    loader = arrowdl.Loader(make_table().select(["id"]), 10, **group(on_error="skip", **OPTIONS))
    chain = loader.filter(is_rare).map(fail)
    ids = [(chain.valid_rows, batch["id"].tolist()) for batch in chain]
    assert ids == [(int(i in (4, 8)), [87 if i == 8 else 47]) for i in range(10)]
    assert (chain.stats().skipped_rows, chain.stats().filtered_rows) == (10, 88)
    strict = arrowdl.Loader(make_table().select(["id"]), 10, **group(**OPTIONS))
    with pytest.raises(ZeroDivisionError):
        next(iter(strict.filter(is_rare).map(fail)))


def test_the_rest_of_a_batch_is_that_of_a_filter_for_the_whole_batch() -> None:
    """A filter may compare the rows of a batch: alone, none is above their mean."""
    loader = arrowdl.Loader(
        make_table().select(["id"]), 10, **group(rank=1, world_size=3, **OPTIONS)
    )
    chain = loader.filter(lambda batch: batch["id"] > batch["id"].mean()).map(double)
    assert sum(chain.valid_rows for _ in chain) == 16


def test_a_chain_is_a_loader() -> None:
    loader = arrowdl.Loader(make_table(), 10, columns=["id"], **group(**OPTIONS))
    batches = iter(loader)
    next(batches)
    chain = loader.map(double).filter(is_even)
    assert flatten(read(copy.copy(chain))) == list(range(0, ROWS, 2)), "as copies of a Loader do"
    loader.load_state_dict(loader.state_dict())
    chain = loader.filter(is_even)
    assert flatten(read(chain)) == list(range(10, ROWS, 2)), "at the Loader's position"
    assert loader.epoch == 0
    assert chain.epoch == 1
    chain.load_state_dict(loader.state_dict())
    assert repr(chain) == repr(loader)
    threads = arrowdl.Loader(make_table(), 10, columns=["id"], num_threads=2, **group(**OPTIONS))
    assert flatten(read(threads.map(double).filter(is_even))) == list(range(0, ROWS, 2))
    assert flatten(read(threads.map(double))) == list(range(ROWS))


def test_where_a_chain_cannot_be() -> None:
    loader = arrowdl.Loader(make_table(), 10, columns=["id"], **group(**OPTIONS))
    with pytest.raises(TypeError, match=r"filter\(\) drops rows"):
        loader.filter(is_even).map_dataset()
    assert loader.map(double).map_dataset()[[3, 1]]["twice"].tolist() == [6, 2]
    weights = {"a": 1}
    with pytest.raises(ValueError, match=r"has map\(\) or filter\(\): call it on what Loader.mix"):
        arrowdl.Loader.mix(
            {"a": loader.map(double)}, weights=weights, ranks=arrowdl.Ranks(global_batch_size=8)
        )
    mixed = arrowdl.Loader.mix(
        {"a": loader},
        weights=weights,
        stop="all",
        **group(global_batch_size=8, splits=4, **OPTIONS),
    )
    assert sorted(flatten(read(mixed.filter(is_even)))) == list(range(0, ROWS, 2))


def test_global_arrays_need_batches_of_one_size() -> None:
    """Processes that drop other numbers of rows would not agree on the shape of an array."""
    import jax

    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    options: dict[str, Any] = {"framework": "jax", "sharding": sharding, "dtype": "int32"}
    table = make_table().select(["id"])
    loader = arrowdl.Loader(table, 10, **group(**options))
    message = r"a sharding, .* the same number of rows .* {} of some: give pad_last=True"
    with pytest.raises(ValueError, match=message.format(r"filter\(\) drops rows")):
        loader.map(dict).filter(is_even)
    with pytest.raises(ValueError, match=message.format("on_error='skip' drops rows")):
        arrowdl.Loader(table, 10, **group(on_error="skip", **options))
    assert len(list(loader.map(dict))) == 10
    ranks: dict[str, Any] = {"rank": 0, "world_size": 3}
    for source in (table, table.to_reader):
        uneven = arrowdl.Loader(source, 10, **group(**ranks, **options))
        with pytest.raises(ValueError, match=r"in the last step .* some may have fewer"):
            next(iter(uneven))
    for more in ({"pad_last": True}, {"drop_last": True}):
        next(iter(arrowdl.Loader(table, 10, **group(**more, **ranks, **options))))
    next(iter(arrowdl.Loader(table[:90], 10, **group(**ranks, **options))))
    chain = arrowdl.Loader(table, 10, pad_last=True, **group(on_error="skip", **options)).filter(
        is_even
    )
    assert {batch["id"].shape for batch in chain} == {(10,)}


def test_batches_may_be_written_to() -> None:
    table = make_table().select(["id"])

    def change(batch: dict[str, Any]) -> dict[str, Any]:
        batch["id"] += 1
        return batch

    chain = arrowdl.Loader(table, 10, **group(**OPTIONS)).filter(is_even).map(change)
    assert flatten(read(chain)) == list(range(1, ROWS, 2))
    assert table["id"].to_pylist() == list(range(ROWS))


def test_streams() -> None:
    def make(**rank: int) -> Any:
        loader = arrowdl.Loader(
            make_table().select(["id"]).to_reader, 4, **group(**OPTIONS, **rank)
        )
        return loader.filter(is_even)

    for ranks in (1, 3):
        steps, _ = Ranks(make, ranks, 0).read()
        assert sorted(flatten(steps)) == list(range(0, ROWS, 2))
