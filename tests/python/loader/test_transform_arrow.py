"""transform_arrow=: a function of each Arrow record batch, before it becomes tensors."""

from __future__ import annotations

import threading
import traceback
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from helpers.options import group

ROWS = 20
TABLE = pa.table({"id": range(ROWS), "text": [f"w{i} w{i % 3}" for i in range(ROWS)]})


def tokenise(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Importable, for worker processes."""
    words = [[int(word[1:]) for word in text.split()] for text in batch["text"].to_pylist()]
    return pa.record_batch(
        {"id": batch["id"], "tokens": pa.array(words, pa.list_(pa.int32())), "n": [2] * len(batch)}
    )


def load(function: Any, source: Any = TABLE, **options: Any) -> list[dict[str, Any]]:
    return list(
        arrowdl.Loader(
            source,
            4,
            framework="numpy",
            transform_arrow=function,
            **group(**{"ragged": "padded", **options}),
        )
    )


def read(batches: list[dict[str, Any]]) -> list[int]:
    for batch in batches:
        expected = [[i, i % 3] for i in batch["id"].tolist()]
        assert batch["tokens"][0].tolist() == expected
        assert batch["n"].tolist() == [2] * len(expected)
    return [i for batch in batches for i in batch["id"].tolist()]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefetch": 0},
        {"shuffle": True, "seed": 3},
        {"shuffle": True, "seed": 3, "prefetch": 0},
        {"num_workers": 2},
        {"device": "cpu"},
        {"pad_last": True},
        {"rank": 1, "world_size": 2},
        {"source": lambda: iter(TABLE.to_batches())},
    ],
)
def test_the_batches_are_those_without_it(options: dict[str, Any]) -> None:
    plain = {key: value for key, value in options.items() if key != "source"}
    source = options.get("source", TABLE)
    others = arrowdl.Loader(source, 4, columns=["id"], framework="numpy", **group(**plain))
    wanted = [i for batch in others for i in batch["id"].tolist()]
    assert read(load(tokenise, source, **plain)) == wanted


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_in_the_middle(workers: int) -> None:
    def make() -> arrowdl.Loader:
        return arrowdl.Loader(
            TABLE,
            3,
            framework="numpy",
            ragged="padded",
            shuffle=True,
            transform_arrow=tokenise,
            num_workers=workers,
        )

    loader = make()
    whole = read(list(loader))
    loader.set_epoch(0)
    iterator = iter(loader)
    first = [next(iterator), next(iterator)]
    resumed = make()
    resumed.load_state_dict(loader.state_dict())
    assert read(first) + read(list(resumed)) == whole


def test_it_is_called_with_the_rows_of_a_batch_in_order() -> None:
    seen = []

    def note(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert isinstance(batch, pa.RecordBatch)
        seen.append(batch["id"].to_pylist())
        return batch.select(["id"])

    batches = load(note, shuffle=True)
    assert seen == [batch["id"].tolist() for batch in batches]


def test_it_runs_ahead_in_another_thread() -> None:
    threads = []
    is_ahead = threading.Event()

    def note(batch: pa.RecordBatch) -> pa.RecordBatch:
        threads.append(threading.get_ident())
        if len(threads) == 3:
            is_ahead.set()
        return batch

    iterator = iter(arrowdl.Loader(TABLE, 4, ragged="offsets", transform_arrow=note, prefetch=2))
    next(iterator)
    assert is_ahead.wait(60)
    assert threads[2] != threading.get_ident()
    list(iterator)


@pytest.mark.parametrize(
    "made",
    [
        lambda b: pa.table({"x": pc.multiply(b["id"], 2)}),
        lambda b: {"x": pc.multiply(b["id"], 2)},
        lambda b: {"x": [2 * i for i in b["id"].to_pylist()]},
        lambda b: {"x": 2 * b["id"].to_numpy()},
        lambda b: {"x": pa.chunked_array([pc.multiply(b["id"], 2)])},
        lambda b: arrowdl.to_arrow_device({"x": 2 * b["id"].to_numpy()}),
    ],
)
def test_what_it_may_return(made: Any) -> None:
    assert [batch["x"].tolist() for batch in load(made)][1] == [8, 10, 12, 14]


def test_tensors_of_several_dimensions() -> None:
    batch = load(lambda b: {"image": np.zeros((len(b), 2, 3), np.uint8)})[0]
    assert batch["image"].shape == (4, 2, 3)


def test_batches_may_be_written_to() -> None:
    kept = np.arange(4)
    for batch in load(lambda b: {"id": b["id"], "twice": b["id"], "kept": kept}):
        before = batch["twice"].tolist()
        batch["id"][:] = 0
        batch["kept"][:] = 0
        assert batch["twice"].tolist() == before
    assert kept.tolist() == [0, 1, 2, 3]
    assert TABLE["id"].to_pylist() == list(range(ROWS))


@pytest.mark.parametrize(
    ("function", "kind", "match"),
    [
        (lambda b: b[:3], ValueError, "returned 3 rows for a batch of 4: return as many"),
        (lambda b: {"x": [1]}, ValueError, 'returned 1 rows in the column "x" for a batch of 4'),
        (lambda b: None, TypeError, "returned NoneType: return a pyarrow.RecordBatch"),
        (lambda b: b["id"], TypeError, "returned an array of int64"),
        (
            lambda b: {"x": b["id"].cast(pa.int64() if b["id"][0].as_py() else pa.int32())},
            ValueError,
            r'for batch 1 of epoch 0 \(rank 0\) than .*: "x" is int64, and was int32',
        ),
        (
            lambda b: {"x": pa.array([str(i) for i in b["id"].to_pylist()]).dictionary_encode()},
            ValueError,
            r'dictionary column "x", .*: give vocabulary=\{"x": \[...\]\}',
        ),
    ],
)
def test_what_it_may_not_return(function: Any, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        load(function)


@pytest.mark.parametrize("options", [{}, {"prefetch": 0}, {"device": "cpu"}, {"num_workers": 1}])
def test_its_own_errors(options: dict[str, Any]) -> None:
    with pytest.raises(KeyError, match="missing") as caught:
        load(fail_late, **options)
    assert "in transform_arrow, with batch 2 of epoch 0 (rank 0)" in str(caught.value.__notes__)
    text = "".join(traceback.format_exception(caught.value))
    assert "in fail_late" in text


def fail_late(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch["id"][0].as_py() == 8:
        raise KeyError("missing")
    return batch


def test_the_batch_of_a_worker_and_of_a_resumed_epoch_is_named() -> None:
    loader = arrowdl.Loader(TABLE, 4, ragged="offsets", transform_arrow=fail_late, prefetch=0)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    resumed = arrowdl.Loader(TABLE, 4, ragged="offsets", transform_arrow=fail_late)
    resumed.load_state_dict(state)
    with pytest.raises(KeyError) as caught:
        list(resumed)
    assert "with batch 2 of epoch 0" in str(caught.value.__notes__)


def test_options_name_the_columns_that_it_makes() -> None:
    ragged = {"tokens": arrowdl.Padded(-1)}
    batch = load(tokenise, dtype={"n": "float32"}, ragged=ragged, columns=["id", "text"])[0]
    assert batch["n"].dtype == "f4"
    with pytest.raises(ValueError, match='nulls= names "text", and the columns are'):
        load(tokenise, nulls={"text": "fill"})


def test_a_dictionary_column_with_a_vocabulary() -> None:
    def encode(batch: pa.RecordBatch) -> Any:
        words = [text.split()[1] for text in batch["text"].to_pylist()]
        return {"id": batch["id"], "word": pa.array(words).dictionary_encode()}

    loader = arrowdl.Loader(
        TABLE, 4, transform_arrow=encode, vocabulary={"word": ["w2", "w1", "w0"]}, shuffle=True
    )
    for batch in loader:
        assert batch["word"].tolist() == [2 - i % 3 for i in batch["id"].tolist()]
    assert loader.vocabulary("word").to_pylist() == ["w2", "w1", "w0"]
