"""Loaders that decode images: orders, ranks, resumes, workers and skips are those without it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._images.threads import call_in_threads
from helpers.images import draw, encode
from helpers.options import group

ROWS = 24
DATA = [encode(draw(i, height=20 + i), "JPEG") for i in range(ROWS)]
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int32()), "image": DATA})
PLAIN = arrowdl.Image((9, 8), backend="pillow")
RANDOM = arrowdl.Image((9, 8), backend="pillow", crop="random", flip=True)
EXPECTED = arrowdl.to_numpy(PLAIN(pa.array(DATA)))


def make(source: Any = TABLE, image: arrowdl.Image = PLAIN, **options: Any) -> arrowdl.Loader:
    given = {"batch_size": 5, "framework": "numpy", "transform_arrow": {"image": image}, **options}
    return arrowdl.Loader(source, **group(**given))


def read(loader: arrowdl.Loader) -> dict[int, np.ndarray]:
    """The pixels of valid rows by their ids, in the order of an epoch."""
    pixels = {}
    for batch in loader:
        for i in range(loader.valid_rows):
            pixels[int(batch["id"][i])] = np.asarray(batch["image"][i]).copy()
    return pixels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        pq.write_table(TABLE.slice(8 * i, 8), tmp_path / f"{i}.parquet", row_group_size=3)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "prefetch": 0},
        {"num_threads": 2},
        {"device": "cpu"},
        {"framework": "torch"},
        {"framework": "jax"},
        {"writable": False, "shuffle": True},
        {"rank": 1, "world_size": 2},
        {"pad_last": True},
        {"on_error": "skip"},
        {"batch_size": None, "global_batch_size": 6, "splits": 3, "shuffle": True},
    ],
    ids=str,
)
def test_the_order_is_that_without_it(folder: Path, options: dict[str, Any]) -> None:
    loader = make(folder, **options)
    other = {**options, "columns": ["id"], "transform_arrow": None}
    plain = make(folder, **other)
    wanted = [int(i) for batch in plain for i in batch["id"][: plain.valid_rows]]
    pixels = read(loader)
    assert list(pixels) == wanted
    for number, own in pixels.items():
        np.testing.assert_array_equal(own, EXPECTED[number])


def test_draws_are_the_same_in_each_run_and_with_any_number_of_workers(folder: Path) -> None:
    given = {"batch_size": None, "global_batch_size": 6, "splits": 2, "shuffle": True, "seed": 3}
    first = read(make(folder, RANDOM, **given))
    assert any((pixels != EXPECTED[i]).any() for i, pixels in first.items())
    for options in ({}, {"num_workers": 2}, {"prefetch": 0}):
        with make(folder, RANDOM, **given, **options) as loader:
            again = read(loader)
            assert list(again) == list(first)
            for i, pixels in again.items():
                np.testing.assert_array_equal(pixels, first[i])
            later = read(loader)
    assert any((pixels != first[i]).any() for i, pixels in later.items())


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_resumed_epoch_has_the_same_pixels(folder: Path, ranks: int) -> None:
    options = {"batch_size": None, "global_batch_size": 4, "splits": 2, "shuffle": True}

    def open_rank(rank: int) -> arrowdl.Loader:
        return make(folder, RANDOM, rank=rank, world_size=ranks, **options)

    for rank in range(ranks):
        loader = open_rank(rank)
        whole = read(loader)
        loader.set_epoch(0)
        batches = iter(loader)
        for _ in range(2):
            next(batches)
        resumed = open_rank(rank)
        resumed.load_state_dict(loader.state_dict())
        rest = read(resumed)
        assert list(rest) == list(whole)[2 * 4 // ranks :]
        for i, pixels in rest.items():
            np.testing.assert_array_equal(pixels, whole[i])


def test_sizes_of_their_own() -> None:
    image = arrowdl.Image(backend="pillow")
    for batch in make(image=image, framework="torch"):
        for i, pixels in zip(batch["id"].tolist(), batch["image"].unbind(), strict=True):
            assert pixels.shape == (3, 20 + i, 31)
    values, offsets, shapes = next(iter(make(image=image, framework="jax")))["image"]
    assert shapes.tolist() == [[3, 20 + i, 31] for i in range(5)]
    assert offsets[-1] == len(values)


def test_other_steps_follow() -> None:
    def halve(column: pa.Array) -> np.ndarray:
        return arrowdl.to_numpy(column) // 2

    batch = next(iter(make(transform_arrow=[{"image": PLAIN}, {"image": halve}])))
    np.testing.assert_array_equal(batch["image"], EXPECTED[:5] // 2)


def test_batches_may_be_written_to() -> None:
    kept = [batch["image"] for batch in make()]
    for pixels in kept:
        pixels[:] = 0
    assert list(read(make())) == list(range(ROWS))


def test_map_datasets_and_torch_datasets(folder: Path) -> None:
    dataset = make(folder, framework="torch").map_dataset()
    np.testing.assert_array_equal(dataset[[20, 3]]["image"], EXPECTED[[20, 3]])
    np.testing.assert_array_equal(dataset[7]["image"], EXPECTED[7])
    batches = list(make(folder, framework="torch").torch_dataset())
    np.testing.assert_array_equal(np.concatenate([b["image"] for b in batches]), EXPECTED)


@pytest.mark.parametrize("policy", ["fill", "mask", "raise"])
def test_null_images(policy: str) -> None:
    table = pa.table({"id": range(4), "image": [DATA[0], None, DATA[2], DATA[3]]})
    loader = make(table, batch_size=2, nulls={"image": policy})
    if policy == "raise":
        with pytest.raises(BufferError, match=r'field "image": .* has nulls'):
            list(loader)
        return
    first, second = (batch["image"] for batch in loader)
    if policy == "mask":
        (first, mask), (second, _) = first, second
        assert mask[:, 0, 0, 0].tolist() == [True, False]
    np.testing.assert_array_equal(first[0], EXPECTED[0])
    assert policy == "mask" or not first[1].any()
    np.testing.assert_array_equal(second, EXPECTED[2:4])


def test_images_of_a_batch_are_decoded_in_several_threads() -> None:
    names: set[str] = set()
    barrier = threading.Barrier(3)

    def work(number: int) -> None:
        names.add(threading.current_thread().name)
        if number < 3:
            barrier.wait(60)

    call_in_threads(work, 10, 3)
    assert "arrowdl-images" in names
