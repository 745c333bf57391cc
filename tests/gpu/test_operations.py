"""Operations on the GPU: rows gathered, lists split and padded, tensors made dense."""

from __future__ import annotations

from typing import Any

import arrowdl
import pyarrow as pa
import pytest
from arrowdl import _core
from helpers.gpu import torch

pytestmark = [pytest.mark.cuda, pytest.mark.sanitize]

ROWS = range(3000)
COLUMNS = {
    "int": pa.array([None if i % 5 == 0 else i for i in ROWS], pa.int32()),
    "flag": pa.array([i % 3 == 0 for i in ROWS]),
    "pair": pa.array([[i, -i] for i in ROWS], pa.list_(pa.int16(), 2)),
    "list": pa.array([None if i % 7 == 0 else [i] * (i % 5) for i in ROWS]),
    "nested": pa.array([[[i] * (i % 3), None] for i in ROWS], pa.list_(pa.list_(pa.int64()))),
    "text": pa.array(["abc"[: i % 4] for i in ROWS]),
}
TABLE = pa.RecordBatch.from_pydict(COLUMNS)


def read(array: arrowdl.DeviceArray) -> Any:
    assert not _core.is_host_readable(array.device)
    return pa.array(array.to("cpu")).to_pylist()


def test_chunks_are_joined() -> None:
    there = arrowdl.from_arrow(TABLE).to("cuda")
    rows = TABLE.to_struct_array().to_pylist()
    assert read(_core.concatenate([there[7:], there[:7]])) == rows[7:] + rows[:7]


def test_rows_are_shuffled_as_on_the_cpu() -> None:
    def shuffle(array: Any) -> Any:
        return list(_core.chain([array]).shuffle(2000, 5).rebatch(300))

    here = arrowdl.from_arrow(TABLE)
    expected = [pa.array(array).to_pylist() for array in shuffle(here)]
    assert [read(array) for array in shuffle(here.to("cuda"))] == expected


def test_packed_blocks_are_copied() -> None:
    tokens = pa.record_batch({"tokens": [[i] * (i % 5) for i in ROWS]})

    def pack(array: arrowdl.DeviceArray) -> arrowdl.DeviceStream:
        return _core.chain([array]).pack("tokens", 64, "best_fit")

    here = arrowdl.from_arrow(tokens)
    expected = [pa.array(array).to_pylist() for array in pack(here)]
    assert [read(array) for array in pack(here).to("cuda")] == expected
    with pytest.raises(BufferError, match="cannot pack sequences"):
        pack(here.to("cuda"))


@pytest.mark.parametrize("name", ["list", "text"])
def test_lists_are_padded(name: str) -> None:
    here = arrowdl.to_torch(COLUMNS[name], ragged="padded", nulls="fill")
    there = arrowdl.from_arrow(COLUMNS[name]).to("cuda")
    made = arrowdl.to_torch(there, ragged="padded", nulls="fill")
    for one, other in zip(made, here, strict=True):
        assert one.is_cuda
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0)


def test_bools_of_gathered_lists_are_0_and_1() -> None:
    odd = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2, 0, -1, 1, 64], pa.int8()))
    views = pa.ListViewArray.from_arrays(
        pa.array([3, 0], pa.int32()), pa.array([2, 3], pa.int32()), odd
    )
    values, _ = arrowdl.to_torch(arrowdl.from_arrow(views).to("cuda"), ragged="offsets")
    assert values.view(torch.uint8).tolist() == [1, 1, 1, 0, 1]


def copy_whole(view: Any) -> Any:
    """The same view of a copy of the whole memory on the GPU."""
    whole = view
    while whole._base is not None:
        whole = whole._base
    there = whole.cuda()
    return there.as_strided(view.shape, view.stride(), view.storage_offset())


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128", "bool"])
def test_strided_tensors_and_masks(dtype: str) -> None:
    values = torch.arange(6000).reshape(60, 100).to(getattr(torch, dtype))
    valid = torch.arange(60) % 7 != 0
    for view in (values[:, ::3], values.T[:60], values[:, :1].expand(60, 5)):
        expected = pa.array(arrowdl.to_arrow_device(view, mask=valid))
        made = arrowdl.to_arrow_device(copy_whole(view), mask=valid.cuda())
        assert pa.array(made.to("cpu")).equals(expected)


def test_columns_are_stacked() -> None:
    columns = {"a": COLUMNS["int"], "b": pa.array(list(ROWS), pa.int32())}
    batch = pa.RecordBatch.from_pydict(columns)
    here = arrowdl.to_torch(batch, stack=True, nulls="mask")
    there = arrowdl.to_torch(arrowdl.from_arrow(batch).to("cuda"), stack=True, nulls="mask")
    torch.testing.assert_close(there[1].cpu(), here[1])
    torch.testing.assert_close(there[0].cpu().where(here[1], 0), here[0].where(here[1], 0))


def test_nulls_are_counted() -> None:
    there = arrowdl.from_arrow(COLUMNS["int"]).to("cuda")
    assert there[3:2000].null_count == COLUMNS["int"][3:2000].null_count


def test_what_no_kernel_does_goes_through_the_host() -> None:
    here = arrowdl.from_arrow(TABLE)
    made = arrowdl.to_torch(here.to("cuda")["int"], nulls="fill", dtype="float32")
    expected = arrowdl.to_torch(here["int"], nulls="fill", dtype="float32")
    assert made.is_cuda
    assert torch.equal(made.cpu(), expected)
    codes = [pa.array([word]).dictionary_encode() for word in "ab"]
    there = [arrowdl.from_arrow(one).to("cuda") for one in codes]
    assert read(_core.concatenate(there)) == ["a", "b"]
    offsets = arrowdl.from_arrow(pa.array([0, 2, 3], pa.int32())).to("cuda")
    lists = _core.make_list(arrowdl.from_arrow(pa.array([1, 2, 3])).to("cuda"), offsets)
    assert read(lists) == [[1, 2], [3]]
