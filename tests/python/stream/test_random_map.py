"""Random models over random streams, beside lists of rows."""

from __future__ import annotations

import random
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

Row = dict[str, Any]


def make_rows(rng: random.Random) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    kind = draw_type(rng, 2)
    batches = []
    first = 0
    for count in rng.choices([0, 1, 2, 5, 17], k=rng.randrange(1, 5)):
        ids = pa.array(range(first, first + count), pa.int64())
        other = lay_out(rng, kind, draw_values(rng, kind, count, 0.2))
        batches.append(pa.record_batch([ids, other], names=["id", "other"]))
        first += count
    return batches[0].schema, batches


class Model:
    """Makes columns of the row's number, of kinds that are drawn, and notes its batches."""

    def __init__(self, rng: random.Random) -> None:
        self.kinds = rng.sample(["number", "bits", "rows", "text", "lists", "pair"], 3)
        self.sizes: list[int] = []
        self.buffer = np.zeros(64)

    def __call__(self, ids: Any) -> Any:
        if len(ids):
            self.sizes.append(len(ids))
        ends = np.concatenate([[0], np.cumsum(ids % 3)])
        self.buffer[: len(ids)] = ids / 2
        made = {
            "number": self.buffer[: len(ids)],
            "bits": ids % 2 == 0,
            "rows": np.stack([ids, -ids, ids], 1),
            "text": [f"{i}" for i in ids],
            "lists": [np.full(i % 3, i) for i in ids],
            "pair": (np.repeat(ids, ids % 3), ends.astype("int64")),
        }
        ids[:] = -1  # its batch is its own
        return {kind: made[kind] for kind in self.kinds}

    def expect(self, i: int) -> Row:
        row = {
            "number": i / 2,
            "bits": i % 2 == 0,
            "rows": [i, -i, i],
            "text": f"{i}",
            "lists": [i] * (i % 3),
            "pair": [i] * (i % 3),
        }
        return {kind: row[kind] for kind in self.kinds}


def check_map(rng: random.Random) -> None:
    schema, batches = make_rows(rng)
    source = [row for batch in batches for row in pa.array(batch.to_struct_array()).to_pylist()]
    keep = rng.choice([None, [], ["id"], ["other", "id"], ["other"]])
    size = rng.choice([None, 1, 2, 3, 16, 64])
    model = Model(rng)
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    stream = arrowdl.from_arrow_stream(reader).map(
        model,
        columns="id",
        keep=keep,
        batch_size=size,
        framework="numpy",
        layout="list",
        prefetch=rng.choice([0, 1, 2, 5]),
    )
    if source == [] and {"text", "lists"} & {*model.kinds}:
        stream.close()  # lists of no values have no type
        return
    arrays = list(stream)
    kept = ["id", "other"] if keep is None else keep
    expected = [{name: row[name] for name in kept} | model.expect(row["id"]) for row in source]
    made = [row for array in arrays for row in pa.array(array).to_pylist()]
    assert repr(made) == repr(expected)  # NaN is not NaN
    assert [len(array) for array in arrays] == model.sizes
    if size is None:
        assert model.sizes == [len(batch) for batch in batches if len(batch)]
    else:
        assert all(count == size for count in model.sizes[:-1])


def test_random_models() -> None:
    check_cases(check_map, 60)
