"""Loaders that decode audio: orders, ranks, resumes, workers and skips are those without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.audio import RATE, encode, play
from helpers.options import group
from helpers.stores import MemoryStore

ROWS = 24
KINDS = ("WAV", "FLAC", "OGG", "MP3")
DATA = [
    encode(play(i, 0.1 + 0.02 * i, 1 + i % 2, rate), KINDS[i % 4], rate=rate)
    for i, rate in enumerate([RATE, 8_000, 44_100] * 8)
]
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int32()), "audio": DATA})
AUDIO = arrowdl.Audio(RATE, backend="soundfile")
EXPECTED = pa.array(AUDIO(pa.array(DATA))).to_pylist()
BAD = (2, 9, 10, 23)


def make(source: Any = TABLE, **options: Any) -> arrowdl.Loader:
    given = {
        **{"batch_size": 5, "framework": "numpy", "ragged": "offsets"},
        **{"transform_arrow": {"audio": AUDIO}, **options},
    }
    return arrowdl.Loader(source, **group(**given))


def read(loader: arrowdl.Loader) -> dict[int, list[float]]:
    """The samples of valid rows by their ids, in the order of an epoch."""
    rows = {}
    for batch in loader:
        values, offsets = (part.tolist() for part in batch["audio"])
        for i in range(loader.valid_rows):
            rows[int(batch["id"][i])] = values[offsets[i] : offsets[i + 1]]
    return rows


def write(folder: Path, data: list[bytes]) -> Path:
    table = pa.table({"id": TABLE["id"], "audio": data})
    for i in range(3):
        pq.write_table(table.slice(8 * i, 8), folder / f"{i}.parquet", row_group_size=3)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, DATA)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    return write(tmp_path, [own[:-999] if i in BAD else own for i, own in enumerate(DATA)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {
            "shuffle": True,
            "num_workers": 2,
            "batch_size": None,
            "global_batch_size": 6,
            "splits": 2,
        },
        {"num_threads": 2},
        {"framework": "torch"},
        {"framework": "jax"},
        {"rank": 1, "world_size": 2},
        {"pad_last": True},
    ],
    ids=str,
)
def test_the_order_is_that_without_it(folder: Path, options: dict[str, Any]) -> None:
    plain = make(folder, **{**options, "columns": ["id"], "transform_arrow": None})
    wanted = [int(i) for batch in plain for i in batch["id"][: plain.valid_rows]]
    with make(folder, **options) as loader:
        rows = read(loader)
    assert list(rows) == wanted
    assert all(own == EXPECTED[i] for i, own in rows.items())


def test_a_resumed_epoch_has_the_same_samples(folder: Path) -> None:
    loader = make(folder, shuffle=True)
    whole = read(loader)
    loader.set_epoch(0)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    resumed = make(folder, shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    rest = read(resumed)
    assert list(rest) == list(whole)[10:]
    assert all(own == whole[i] for i, own in rest.items())


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_padded_and_cut(framework: str) -> None:
    padded = arrowdl.Padded(0.5, max_length=3_000, multiple=64)
    for batch in make(framework=framework, ragged=padded):
        samples, lengths = (np.asarray(part) for part in batch["audio"])
        assert samples.dtype == np.float32
        for i, own, length in zip(batch["id"].tolist(), samples, lengths, strict=True):
            assert own[:length].tolist() == EXPECTED[i][:3_000]
            assert length == min(3_000, len(EXPECTED[i]))
            assert (own[length:] == 0.5).all()


def test_channels_stay_apart() -> None:
    audio = arrowdl.Audio(RATE, mono=False, backend="soundfile")
    options: dict[str, Any] = {"transform_arrow": {"audio": audio}, "ragged": "jagged"}
    for batch in make(framework="torch", **options):
        for i, own in zip(batch["id"].tolist(), batch["audio"].unbind(), strict=True):
            assert own.shape == (1 + i % 2, len(EXPECTED[i]))
            np.testing.assert_allclose(own.mean(0), EXPECTED[i], atol=1e-6)
    values, offsets, shapes = next(iter(make(framework="jax", **options)))["audio"]
    assert shapes.tolist() == [[1 + i % 2, len(EXPECTED[i])] for i in range(5)]
    assert offsets[-1] == len(values)


def test_what_batches_will_have() -> None:
    loader = make(ragged=arrowdl.Padded(0.0), framework="torch")
    samples, lengths = loader.schema["audio"]
    assert str(samples) == "torch.float32 (None, None), nulls: raise"
    assert str(lengths) == "torch.int64 (None,)"
    assert "transform_arrow" in str(loader.explain())
    assert len(next(iter(loader))["audio"]) == 2


@pytest.mark.parametrize("options", [{}, {"shuffle": True, "num_workers": 1}], ids=str)
def test_only_rows_that_cannot_be_decoded_are_skipped(
    damaged: Path, options: dict[str, Any]
) -> None:
    with make(damaged, on_error=arrowdl.Skip(10), **options) as loader:
        rows = read(loader)
        stats = loader.stats()
    assert sorted(rows) == [i for i in range(ROWS) if i not in BAD]
    assert all(own == EXPECTED[i] for i, own in rows.items())
    assert {
        (Path(entry.path).name, row)
        for entry in stats.skipped
        for start, stop in entry.ranges
        for row in range(start, stop)
    } == {("0.parquet", 2), ("1.parquet", 1), ("1.parquet", 2), ("2.parquet", 7)}
    with pytest.raises(
        ValueError, match=r"row . of the batch: cannot decode the audio: "
    ) as caught:
        list(make(damaged))
    assert f"row 2 of the batch is row 2 of '{damaged / '0.parquet'}'" in caught.value.__notes__


def test_paths_of_a_store() -> None:
    store = MemoryStore({f"b/{i}": data for i, data in enumerate(DATA)})
    table = pa.table({"id": TABLE["id"], "audio": [f"b/{i}" for i in range(ROWS)]})
    rows = read(make(table, filesystem=store.open()))
    assert list(rows) == list(range(ROWS))
    assert all(own == EXPECTED[i] for i, own in rows.items())


def test_batches_may_be_kept_and_written_to() -> None:
    kept = list(make())
    for batch in kept:
        batch["audio"][0][:] = 0
    assert all(own == EXPECTED[i] for i, own in read(make()).items())
