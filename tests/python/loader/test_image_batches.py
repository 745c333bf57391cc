"""Loaders that decode images: orders, ranks, resumes, workers and skips are those without it."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import arrowdl
import arrowdl.loader._images.batch as batch_of_images
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._encoded.threads import call_in_threads
from arrowdl.loader._images.pillow import open_image
from arrowdl.loader._skipped import RowsError
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


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_batches_may_be_written_to(framework: str) -> None:
    label = np.arange(ROWS)
    table = TABLE.append_column("label", pa.array(label))
    seen: list[int] = []

    def keep(column: pa.Array) -> pa.Array:
        seen.append(column.buffers()[1].address)
        return column

    image = arrowdl.Image((9, 8), backend="pillow")
    for steps in (
        {"image": image},
        [{"image": image}, {"label": keep}],
        [{"image": image}, lambda batch: batch],
    ):
        kept = list(make(table, transform_arrow=steps, framework=framework))
        for number, batch in enumerate(kept):
            np.testing.assert_array_equal(batch["image"], EXPECTED[5 * number : 5 * number + 5])
            batch["image"][:] = 0
            batch["label"][:] = 0
    assert table["label"].to_pylist() == label.tolist()


def test_images_are_not_copied_again() -> None:
    made: list[int] = []
    image = PLAIN.for_loader(arrowdl.Storage(), "numpy")

    class Watched:
        returns_new_memory = True

        def __call__(self, column: pa.Array) -> Any:
            array = image(column)
            made.append(arrowdl.to_numpy(array).ctypes.data)
            return array

    kept = list(make(transform_arrow={"image": Watched()}))
    assert [batch["image"].ctypes.data for batch in kept] == made
    kept = list(make(transform_arrow=[{"image": Watched()}, lambda batch: batch]))
    assert not {batch["image"].ctypes.data for batch in kept} & set(made[5:])


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
    assert "arrowdl-decoding" in names


# ---- images that cannot be decoded

BAD = (2, 9, 10, 23)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    data = [b"damaged" if i in BAD else own for i, own in enumerate(DATA)]
    table = pa.table({"id": TABLE["id"], "image": data})
    for i in range(3):
        pq.write_table(table.slice(8 * i, 8), tmp_path / f"{i}.parquet", row_group_size=3)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "num_workers": 1},
        {"pad_last": True},
        {"framework": "torch", "device": "cpu"},
        {"batch_size": None, "global_batch_size": 6, "splits": 3, "shuffle": True},
    ],
    ids=str,
)
def test_only_rows_that_cannot_be_decoded_are_skipped(
    damaged: Path, options: dict[str, Any]
) -> None:
    given = {**options, "on_error": arrowdl.Skip(10)}
    other = {**given, "columns": ["id"], "transform_arrow": None}
    plain = make(damaged, **other)
    wanted = [int(i) for batch in plain for i in batch["id"][: plain.valid_rows]]
    with make(damaged, **given) as loader:
        pixels = read(loader)
        stats = loader.stats()
    assert list(pixels) == [i for i in wanted if i not in BAD]
    for number, own in pixels.items():
        assert np.abs(own.astype(int) - EXPECTED[number]).max() <= 1
    rows = sorted(
        (Path(entry.path).name, row)
        for entry in stats.skipped
        for start, stop in entry.ranges
        for row in range(start, stop)
    )
    assert rows == [("0.parquet", 2), ("1.parquet", 1), ("1.parquet", 2), ("2.parquet", 7)]
    assert stats.skipped_rows == 4
    assert all("begins with b'damaged'" in entry.error for entry in stats.skipped)


@pytest.mark.parametrize("image", [PLAIN, RANDOM, arrowdl.Image(backend="pillow")], ids=str)
def test_each_image_is_decoded_once(
    damaged: Path, image: arrowdl.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bytes] = []

    def watch(data: Any) -> Any:
        opened.append(bytes(data))
        return open_image(data)

    monkeypatch.setattr(batch_of_images, "open_image", watch)
    calls: list[int] = []

    def count(column: pa.Array) -> pa.Array:
        calls.append(len(column))
        return column

    steps = [{"id": count}, {"image": image}, {"id": count}]
    loader = make(damaged, transform_arrow=steps, batch_size=8, on_error=arrowdl.Skip(10))
    ids = []
    for batch in loader:
        ids += batch["id"].tolist()
    assert ids == [i for i in range(ROWS) if i not in BAD]
    assert calls == [8, 7, 8, 6, 8, 7]
    assert sorted(opened) == sorted([b"damaged" if i in BAD else DATA[i] for i in range(ROWS)])


@pytest.mark.parametrize("size", [(9, 8), None])
def test_what_is_left_of_a_column(size: Any) -> None:
    data = [None, b"x", DATA[2], None, DATA[4], b"y"]
    image = arrowdl.Image(size, backend="pillow")
    with pytest.raises(RowsError) as caught:
        image(pa.array(data))
    assert list(caught.value.errors) == [1, 5]
    assert caught.value.make_rest is not None
    rest = caught.value.make_rest()
    assert pa.array(rest).equals(pa.array(image(pa.array([None, DATA[2], None, DATA[4]]))))
    caught.value.add_note("kept")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert copied.__notes__ == ["kept"]


def test_what_is_left_of_a_column_may_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then skipped, as a batch without a bad row is."""
    monkeypatch.setattr("arrowdl.loader._encoded.join._MOST_VALUES", 5_000)
    image = arrowdl.Image(backend="pillow")
    data = [DATA[0], b"x", DATA[2], DATA[0], DATA[0], b"x"]
    table = pa.table({"id": range(6), "image": data})
    loader = make(table, transform_arrow={"image": image}, batch_size=4, on_error=arrowdl.Skip(5))
    assert [batch["id"][: loader.valid_rows].tolist() for batch in loader] == [[], [4]]
    assert loader.stats().skipped_rows == 5


def test_a_function_that_calls_an_image_is_called_again() -> None:
    """What it makes of the pixels is not what `Image` returned to it."""

    def invert(column: pa.Array) -> np.ndarray:
        return 255 - arrowdl.to_numpy(PLAIN(column))

    table = pa.table({"id": range(4), "image": [DATA[0], b"x", DATA[2], DATA[3]]})
    loader = make(table, transform_arrow={"image": invert}, batch_size=4, on_error=arrowdl.Skip(1))
    pixels = read(loader)
    assert list(pixels) == [0, 2, 3]
    for i, own in pixels.items():
        np.testing.assert_array_equal(own, 255 - EXPECTED[i])


def test_other_columns_of_a_batch_with_a_bad_row() -> None:
    columns = {
        "word": pa.array(["a", "b", "a", "c"]).dictionary_encode(),
        "view": pa.array(["a", "b", "c", "d"], pa.string_view()),
        "list": pa.array([[1], [2, 3], None, [4]]),
    }
    data = [DATA[0], b"x", DATA[2], DATA[3]]
    table = pa.table({"id": range(4), "image": data, **columns})
    seen: list[Any] = []

    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch.drop_columns(["image"]))
        return batch.select(["id", "image", "word"])

    loader = make(table, transform_arrow=[{"image": PLAIN}, keep], on_error=arrowdl.Skip(1))
    assert list(read(loader)) == [0, 2, 3]
    assert seen[0].to_pylist() == [table.drop_columns(["image"]).to_pylist()[i] for i in (0, 2, 3)]


def test_two_columns_with_bad_rows() -> None:
    data = [b"x" if i in (1, 5) else own for i, own in enumerate(DATA[:8])]
    other = [b"y" if i in (1, 2) else own for i, own in enumerate(DATA[:8])]
    table = pa.table({"id": range(8), "image": data, "other": other})
    steps = {"image": PLAIN, "other": PLAIN}
    loader = make(table, transform_arrow=steps, batch_size=4, on_error=arrowdl.Skip(10))
    assert list(read(loader)) == [0, 3, 4, 6, 7]
    assert loader.stats().skipped_rows == 3


@pytest.mark.parametrize("bad", [range(4), range(4, 8), range(12)])
def test_batches_without_a_row_that_can_be_decoded(bad: range) -> None:
    data = [b"x" if i in bad else own for i, own in enumerate(DATA[:12])]
    table = pa.table({"id": range(12), "image": data})
    loader = make(table, batch_size=4, on_error=arrowdl.Skip(12))
    if len(bad) == 12:
        with pytest.raises(ValueError, match="cannot decode the image") as caught:
            list(loader)
        assert "found no row for which the transform does not fail" in str(caught.value.__notes__)
        return
    assert list(read(loader)) == [i for i in range(12) if i not in bad]
    assert loader.stats().skipped_rows == 4


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_resumed_epoch_skips_the_same_rows(damaged: Path, ranks: int) -> None:
    given = {"batch_size": None, "global_batch_size": 6, "splits": 2, "shuffle": True}

    def open_rank(rank: int, world_size: int) -> arrowdl.Loader:
        options = {**given, "on_error": arrowdl.Skip(10), "rank": rank, "world_size": world_size}
        return make(damaged, RANDOM, **options)

    whole = [read(open_rank(rank, ranks)) for rank in range(ranks)]
    assert sorted(i for own in whole for i in own) == [i for i in range(ROWS) if i not in BAD]
    for rank in range(ranks):
        loader = open_rank(rank, ranks)
        batches = iter(loader)
        first = [int(i) for _ in range(2) for i in next(batches)["id"]]
        resumed = open_rank(rank, ranks)
        resumed.load_state_dict(loader.state_dict())
        rest = read(resumed)
        assert first + list(rest) == list(whole[rank])
        for i, pixels in rest.items():
            np.testing.assert_array_equal(pixels, whole[rank][i])


def find_note(loader: Any, index: Any = None) -> tuple[str, list[str]]:
    with pytest.raises(ValueError, match=r"row . of the batch") as caught:
        list(loader) if index is None else loader[index]
    return str(caught.value), caught.value.__notes__


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"rank": 1, "world_size": 2}])
def test_an_error_names_the_file_and_the_row(damaged: Path, options: dict[str, Any]) -> None:
    text, notes = find_note(make(damaged, batch_size=4, **options))
    expected = (2, "0.parquet", 2) if "rank" not in options else (3, "2.parquet", 7)
    assert text.startswith(f"row {expected[0]} of the batch: cannot decode the image: ")
    named = f"row {expected[0]} of the batch is row {expected[2]} of '{damaged / expected[1]}'"
    assert named in notes


def test_an_error_of_a_shuffled_or_resumed_epoch_names_the_row(damaged: Path) -> None:
    order = [
        int(i)
        for batch in make(damaged, shuffle=True, columns=["id"], transform_arrow=None)
        for i in batch["id"]
    ]
    first = next(i for i in order if i in BAD)
    _, notes = find_note(make(damaged, shuffle=True))
    assert any(
        note.endswith(f"is row {first % 8} of '{damaged / f'{first // 8}.parquet'}'")
        for note in notes
    )
    loader = make(damaged, batch_size=2, on_error=arrowdl.Skip(10))
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    resumed = make(damaged, batch_size=2)
    resumed.load_state_dict(loader.state_dict())
    assert f"row 1 of the batch is row 1 of '{damaged / '1.parquet'}'" in find_note(resumed)[1]


def test_other_sources_name_the_row(damaged: Path) -> None:
    table = pq.read_table(damaged)
    assert "row 2 of the batch is row 2 of the source" in find_note(make(table))[1]
    stream = make(lambda: table.to_reader())
    assert find_note(stream)[1][-1] == "in transform_arrow, with batch 0 of epoch 0 (rank 0)"
    dataset = make(damaged).map_dataset()
    for index, note in (
        ([0, 9], f"row 1 of the batch is row 1 of '{damaged / '1.parquet'}'"),
        (slice(20, 24), f"row 3 of the batch is row 7 of '{damaged / '2.parquet'}'"),
        (-1, f"row 0 of the batch is row 7 of '{damaged / '2.parquet'}'"),
    ):
        assert note in find_note(dataset, index)[1]
