"""`Loader(device="cuda")`: batches that are copied while the model works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrowdl import debug
from helpers.gpu import Spin, settle, torch
from helpers.options import group

pytestmark = pytest.mark.cuda

ROWS = 20_000
BATCH = 512
BLOCK = 64 << 10
"""Bytes of pinned memory that a batch of this table goes through."""

TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "x": pa.array(np.arange(ROWS) / 7, pa.float32()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 8), pa.float32()), 8),
        "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
    }
)

RAGGED = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "tokens": pa.array([list(range(i % 9)) for i in range(ROWS)], pa.list_(pa.int32())),
    }
)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loader") / "table.parquet"
    pq.write_table(TABLE, path, row_group_size=3_000)
    return path


@pytest.fixture(params=["table", "parquet"])
def source(request: pytest.FixtureRequest, parquet: Path) -> Any:
    return TABLE if request.param == "table" else parquet


@pytest.fixture(autouse=True)
def _pinned_memory() -> Iterator[None]:
    """None of it is there before a test, which may bound it."""
    arrowdl.config.staging_limit = 0
    arrowdl.config.staging_limit = 256 << 20
    yield
    arrowdl.config.staging_limit = 256 << 20


def read_all(loader: arrowdl.Loader) -> dict[str, list[Any]]:
    """The rows of all batches, which have to lie on the GPU."""
    columns: dict[str, list[Any]] = {}
    for batch in loader:
        for name, tensor in batch.items():
            assert tensor.is_cuda
            columns.setdefault(name, []).extend(tensor.tolist())
    return columns


def read_once(loader: arrowdl.Loader) -> None:
    """An epoch, after which no memory has to be pinned any more, which may wait for the GPU."""
    for batch in loader:
        del batch
    torch.cuda.synchronize()
    settle(debug.live_objects())


# ---------------------------------------------------------------- values


@pytest.mark.sanitize
@pytest.mark.parametrize("prefetch", [0, 2])
def test_batches_are_pyarrows_own_reading(source: Any, prefetch: int) -> None:
    expected = (TABLE if source is TABLE else pq.read_table(source)).to_pydict()
    loader = arrowdl.Loader(source, BATCH, device="cuda", prefetch=prefetch)
    assert read_all(loader) == expected


def test_batches_of_worker_processes(parquet: Path) -> None:
    loader = arrowdl.Loader(parquet, BATCH, device="cuda", num_workers=1)
    assert read_all(loader) == TABLE.to_pydict()
    assert read_all(loader) == TABLE.to_pydict()


@pytest.mark.sanitize
def test_rows_by_their_numbers(source: Any) -> None:
    """Rows of the host are copied to the GPU; rows of the GPU are gathered there."""
    here = arrowdl.Loader(source, BATCH).map_dataset()
    there = arrowdl.Loader(source, BATCH, device="cuda").map_dataset()
    batches = [arrowdl.from_arrow(b).to("cuda") for b in TABLE.to_batches(max_chunksize=7_000)]
    on_device = arrowdl.Loader(batches, BATCH).map_dataset()
    order = torch.randperm(ROWS)
    for rows in (
        order[:1000],
        order[:1000].cuda(),
        [3, 3, -1],
        slice(6_990, 7_010),
        range(9, 0, -3),
    ):
        expected = here[rows]
        for dataset in (there, on_device):
            batch = dataset[rows]
            for name, tensor in expected.items():
                assert batch[name].is_cuda
                assert torch.equal(batch[name].cpu(), tensor)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_shuffle_is_the_one_of_the_host(source: Any, workers: int) -> None:
    there = arrowdl.Loader(source, BATCH, shuffle=True, seed=7, device="cuda", num_workers=workers)
    here = arrowdl.Loader(source, BATCH, shuffle=True, seed=7)
    epochs = set()
    for _ in range(2):
        ids: list[int] = []
        for batch, expected in zip(there, here, strict=True):
            for name, tensor in expected.items():
                assert torch.equal(batch[name].cpu(), tensor)
            ids += batch["id"].tolist()
        assert sorted(ids) == list(range(ROWS))
        epochs.add(tuple(ids))
    assert len(epochs) == 2


@pytest.mark.sanitize
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": BATCH, "bucket_by": "tokens"},
        {"batch_tokens": 2_000},
        {"batch_tokens": 2_000, "bucket_by": "tokens", "shuffle": True},
    ],
)
@pytest.mark.parametrize("is_on_device", [False, True])
def test_steps_by_length_are_those_of_the_host(is_on_device: bool, options: Any) -> None:
    """Rows are copied as whole batches, or are in device memory, where they are sorted."""
    options = {"ragged": "padded", **options}
    batches = [arrowdl.from_arrow(batch) for batch in RAGGED.to_batches(max_chunksize=3_000)]
    there = (
        arrowdl.Loader([batch.to("cuda") for batch in batches], **group(**options))
        if is_on_device
        else arrowdl.Loader(RAGGED, **group(device="cuda", **options))
    )
    here = arrowdl.Loader(RAGGED, **group(**options))
    for batch, expected in zip(there, here, strict=True):
        assert torch.equal(batch["id"].cpu(), expected["id"])
        for tensor, own in zip(batch["tokens"], expected["tokens"], strict=True):
            assert tensor.is_cuda
            assert torch.equal(tensor.cpu(), own)


@pytest.mark.sanitize
@pytest.mark.parametrize("prefetch", [0, 2])
def test_ragged_batches_are_pyarrows_own_reading(prefetch: int) -> None:
    padded = arrowdl.Loader(RAGGED, BATCH, device="cuda", prefetch=prefetch, ragged="padded")
    rows = []
    for batch in padded:
        values, lengths = batch["tokens"]
        assert values.is_cuda
        assert lengths.is_cuda
        for row, length in zip(values.tolist(), lengths.tolist(), strict=True):
            rows.append(row[:length])
            assert not any(row[length:])
    assert rows == RAGGED["tokens"].to_pylist()
    jagged = arrowdl.Loader(RAGGED, BATCH, device="cuda", prefetch=prefetch)
    nested = [row.tolist() for batch in jagged for row in batch["tokens"].cpu().unbind()]
    assert nested == rows


def test_batches_of_jax(jax: Any, source: Any) -> None:
    names = ["id", "x", "vector"]
    loader = arrowdl.Loader(source, BATCH, columns=names, framework="jax", device="cuda")
    batches = list(loader)
    for name in names:
        assert {device.platform for b in batches for device in b[name].devices()} == {"gpu"}
        made = np.concatenate([np.asarray(batch[name]) for batch in batches])
        column = TABLE[name].combine_chunks()
        expected = column.flatten().to_numpy().reshape(-1, 8) if name == "vector" else column
        assert np.array_equal(made, np.asarray(expected))


# ---------------------------------------------------------------- order


@pytest.mark.parametrize("workers", [0, 1])
def test_nobody_waits_for_the_model(parquet: Path, workers: int) -> None:
    loader = arrowdl.Loader(parquet, BATCH, device="cuda", num_workers=workers)
    read_once(loader)
    batches = iter(loader)
    next(batches)["x"].sum().item()  # its kernel is loaded
    model = torch.cuda.current_stream()
    spin = Spin(model)
    seen = []
    for _ in range(4):
        batch = next(batches)
        seen.append(batch["x"].sum())
        del batch
    assert spin.is_running(), "the loop has waited"
    assert not model.query()
    expected = TABLE["x"].to_numpy()[BATCH : 5 * BATCH].reshape(4, BATCH).sum(1, dtype="f8")
    assert [total.item() for total in seen] == pytest.approx(expected.tolist(), rel=1e-4)
    batches.close()


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_the_next_batches_are_copied_while_the_model_works(
    parquet: Path, side: Any, workers: int, ragged: bool
) -> None:
    source = RAGGED if ragged else parquet
    loader = arrowdl.Loader(source, BATCH, device="cuda", num_workers=workers, ragged="offsets")
    read_once(loader)
    batches = iter(loader)
    next(batches)
    spin = Spin(torch.cuda.default_stream())
    with torch.cuda.stream(side):
        kept = [next(batches) for _ in range(4)]  # more than were there before
    side.synchronize()  # comes after the copies, and not after the model
    assert spin.is_running(), "the copies have waited for the model"
    assert [batch["id"][0].item() for batch in kept] == [BATCH * i for i in range(1, 5)]
    batches.close()


def test_nobody_waits_for_the_model_of_jax(jax: Any, parquet: Path) -> None:
    @jax.jit
    def work(x: Any) -> Any:
        return jax.lax.fori_loop(0, 1000, lambda _, y: y @ x, x)

    eye = jax.numpy.eye(2048)
    work(eye).block_until_ready()
    loader = arrowdl.Loader(parquet, BATCH, columns=["id", "x"], framework="jax", device="cuda")
    read_once(loader)
    batches = iter(loader)
    next(batches)
    busy = work(eye)
    kept = [next(batches) for _ in range(4)]
    assert not busy.is_ready(), "the loop has waited"
    assert [int(batch["id"][0]) for batch in kept] == [BATCH * i for i in range(1, 5)]
    batches.close()


def test_nobody_waits_for_a_copy_of_pageable_memory(side: Any) -> None:
    array = arrowdl.from_arrow(TABLE["x"].combine_chunks())
    array.to("cuda").synchronize()
    settle(debug.live_objects())  # what it went through is in the pool again
    spin = Spin(side)
    copied = array.to("cuda", stream=side)
    assert spin.is_running()
    assert not copied.is_ready()
    assert torch.from_dlpack(copied).tolist() == TABLE["x"].to_pylist()


# ---------------------------------------------------------------- pinned memory


@pytest.mark.parametrize("workers", [0, 1])
def test_pinned_memory_is_used_again(parquet: Path, workers: int) -> None:
    arrowdl.config.staging_limit = 8 * BLOCK
    loader = arrowdl.Loader(parquet, BATCH, device="cuda", num_workers=workers)
    for _ in range(2):
        read_once(loader)
        assert BLOCK <= debug.staging_bytes() <= 9 * BLOCK, f"for {ROWS // BATCH} batches"


@pytest.mark.parametrize("mebibytes", [3, 4, 9, 33])
def test_large_arrays_go_block_by_block(mebibytes: int) -> None:
    values = np.random.default_rng(7).integers(0, 255, (mebibytes << 20) + 17, np.uint8)
    for limit in 0, 8 << 20, 256 << 20:
        arrowdl.config.staging_limit = limit
        copied = torch.from_dlpack(arrowdl.from_arrow(pa.array(values)).to("cuda"))
        assert np.array_equal(copied.cpu().numpy(), values)


def test_the_limit_holds_while_a_stream_is_behind(side: Any) -> None:
    arrowdl.config.staging_limit = 8 << 20
    values = np.arange(8 << 20, dtype=np.int32)
    array = arrowdl.from_arrow(pa.array(values))
    Spin(side, 0.05)
    copied = array.to("cuda", stream=side)  # four times what may be pinned
    assert debug.staging_bytes() <= 8 << 20
    assert np.array_equal(torch.from_dlpack(copied).cpu().numpy(), values)


def test_pinned_memory_of_torch_goes_as_it_is() -> None:
    tensor = torch.arange(1000, dtype=torch.float32).pin_memory()
    copied = arrowdl.to_arrow_device(tensor).to("cuda")
    assert torch.from_dlpack(copied).tolist() == tensor.tolist()
    assert debug.staging_bytes() == 0


def test_nothing_is_pinned_on_request() -> None:
    copied = arrowdl.from_arrow(TABLE["x"].combine_chunks()).to("cuda", pin_memory=False)
    assert torch.from_dlpack(copied).tolist() == TABLE["x"].to_pylist()
    assert debug.staging_bytes() == 0


def test_batches_that_fail_and_rows_that_are_filtered(parquet: Path) -> None:
    """The rows that are left, and a row in place of a batch that has none."""

    def fail(batch: dict[str, Any]) -> dict[str, Any]:
        if (batch["id"] == 10).any():
            raise ZeroDivisionError("bad")
        return batch

    for source in (parquet, [arrowdl.from_arrow(b).to("cuda") for b in TABLE.to_batches()]):
        loader = arrowdl.Loader(
            source,
            BATCH,
            device=None if isinstance(source, list) else "cuda",
            transform=fail,
            on_error=arrowdl.Skip(BATCH),
        ).filter(lambda batch: batch["id"] % 3 == 0)
        ids = [i for batch in loader for i in batch["id"][: loader.valid_rows].tolist()]
        assert ids == [i for i in TABLE["id"].to_pylist()[BATCH:] if i % 3 == 0]
        assert loader.stats().skipped_rows == BATCH


def test_packed_blocks() -> None:
    pack = arrowdl.Pack("tokens", 64, "best_fit", add=["position_ids", "segment_ids"])
    options = {"columns": ["tokens"], "shuffle": True, "pack": pack}
    read = read_all(arrowdl.Loader(RAGGED, 16, **group(device="cuda", **options)))
    expected = [
        batch["tokens"].tolist() for batch in arrowdl.Loader(RAGGED, 16, **group(**options))
    ]
    assert read["tokens"] == [block for blocks in expected for block in blocks]
    assert len(read["position_ids"]) == len(read["segment_ids"]) == len(read["tokens"])
