"""Tensors without memory or whole bytes, binary of no width, permuted tensors of varying shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import arrowdl
import jax
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.arrays import as_extension
from helpers.dlpack import MadeTensor
from torch._subclasses.fake_tensor import FakeTensorMode

# ---------------------------------------------------------------- less than a byte

SUB_BYTE = [f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)]


@pytest.mark.parametrize("name", SUB_BYTE)
def test_integers_of_less_than_a_byte(name: str) -> None:
    """torch 2.13 exports them as int8 and uint8, whatever their bits mean."""
    tensor = torch.zeros(4, dtype=torch.uint8).view(getattr(torch, name))
    assert tensor.__dlpack__() is not None
    for given in tensor, {"x": tensor}:
        with pytest.raises(BufferError, match=f"torch.{name} has .* view its bytes as uint8"):
            arrowdl.to_arrow_device(given)
    with pytest.raises(BufferError, match=f"torch.{name} has no Arrow type"):
        arrowdl.to_arrow_device(torch.arange(4), mask=tensor)
    assert arrowdl.to_arrow_device(tensor.view(torch.uint8)).dtype == "uint8"  # the advice


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.bool])
def test_whole_bytes_are_what_they_were(dtype: torch.dtype) -> None:
    for _ in range(2):
        assert arrowdl.to_arrow_device(torch.ones(4, dtype=dtype)).dtype == str(dtype)[6:]


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_the_advice_on_float4_can_be_followed(shape: tuple[int, ...]) -> None:
    """Rows of an odd number of values end within a byte."""
    tensor = jax.numpy.ones(shape).astype("float4_e2m1fn")
    with pytest.raises(BufferError, match=r"a last dimension of 3.* a multiple of 2 .*cast it"):
        arrowdl.to_arrow_device(tensor)
    even = jax.numpy.pad(tensor.astype("float32"), [(0, 0)] * (tensor.ndim - 1) + [(0, 1)])
    for way in (even.astype(tensor.dtype), tensor.astype("float8_e4m3fn")):
        assert arrowdl.to_arrow_device(way).dtype == str(way.dtype)


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_pairs_of_float4_come_back_with_their_bytes(shape: tuple[int, ...]) -> None:
    """torch's element is a byte with two values: DLPack's 4 bits and 2 lanes."""
    codes = torch.arange(6, dtype=torch.uint8).reshape(shape)
    tensor = codes.view(torch.float4_e2m1fn_x2)
    array = arrowdl.to_arrow_device(tensor)
    assert array.dtype == "float4_e2m1fn_x2"
    for back in (torch.from_dlpack(array), arrowdl.to_torch(array), arrowdl.to_torch(array[:])):
        assert back.dtype is torch.float4_e2m1fn_x2
        assert back.data_ptr() == tensor.data_ptr()
        assert torch.equal(back.view(torch.uint8), codes)
    storage = pa.array(array.to("cpu"))
    while isinstance(storage, pa.ExtensionArray):
        storage = storage.storage
    assert b"".join(storage.flatten().to_pylist() if len(shape) > 1 else storage.to_pylist()) == (
        bytes(range(6))
    )


def test_pairs_of_float4_may_have_nulls() -> None:
    codes = torch.arange(6, dtype=torch.uint8)
    mask = torch.tensor([True, False, True, True, True, False])
    array = arrowdl.to_arrow_device(codes.view(torch.float4_e2m1fn_x2), mask=mask)
    filled = arrowdl.to_torch(array, nulls="fill").view(torch.uint8)
    assert filled.tolist() == [0, 0, 2, 3, 4, 0]
    values, valid = arrowdl.to_torch(array, nulls="mask")
    assert torch.equal(valid, mask)
    assert values.dtype is torch.float4_e2m1fn_x2
    with pytest.raises(BufferError, match="float4_e2m1fn_x2"):
        arrowdl.to_torch(array, nulls="nan")
    with pytest.raises(BufferError, match="numpy has no float4_e2m1fn_x2"):
        arrowdl.to_numpy(array, nulls="fill")


def test_numpy_has_a_byte_for_each_value() -> None:
    array = np.array([1, 2, 3], ml_dtypes.float4_e2m1fn)
    assert arrowdl.to_arrow_device(array).dtype == "float4_e2m1fn_padded"
    assert arrowdl.to_arrow_device(array.view(np.uint8)).dtype == "uint8"


# ---------------------------------------------------------------- no memory


def refused(tensor: Any) -> str:
    """What the refusal says; it is the same in a dict and as a mask."""
    said = []
    calls: list[Callable[[], Any]] = [
        lambda: arrowdl.to_arrow_device(tensor),
        lambda: arrowdl.to_arrow_device(tensor, copy=False),
        lambda: arrowdl.to_arrow_device({"x": tensor}),
        lambda: arrowdl.to_arrow_device(torch.arange(3), mask=tensor),
    ]
    for call in calls:
        with pytest.raises(BufferError) as caught:
            call()
        said.append(str(caught.value))
        assert "\n" not in said[-1]
    return said[0]


@pytest.mark.parametrize("transform", ["vmap", "jvp", "grad"])
def test_wrappers_of_torchs_transforms(transform: str) -> None:
    said = []

    def function(tensor: torch.Tensor) -> torch.Tensor:
        said.append(refused(tensor.detach()))
        return tensor.sum()

    run: dict[str, Callable[[], Any]] = {
        "vmap": lambda: torch.vmap(function)(torch.ones(2, 3)),
        "jvp": lambda: torch.func.jvp(function, (torch.ones(3),), (torch.ones(3),)),
        "grad": lambda: torch.func.grad(function)(torch.ones(3)),
    }
    run[transform]()
    assert "has no memory to exchange" in said[0]
    assert "before or after the transform" in said[0]


def test_tensors_that_only_describe_one() -> None:
    with FakeTensorMode():
        fake = torch.empty(3)
    emptied = torch.arange(3.0)
    emptied.untyped_storage().resize_(0)
    functional = torch._to_functional_tensor(torch.arange(3))
    for tensor in fake, emptied, functional, torch._efficientzerotensor(3):
        assert "has no memory to exchange" in refused(tensor)
    assert "on meta" in refused(torch.empty(3, device="meta"))


def test_deleted_and_donated_arrays_of_jax() -> None:
    deleted = jax.numpy.arange(3)
    deleted.delete()
    donated = jax.numpy.arange(3.0)
    jax.jit(lambda array: array + 1, donate_argnums=0)(donated)
    for array in deleted, donated:
        assert "was deleted, or donated to a computation, and has no memory" in refused(array)


@pytest.mark.parametrize("answer", [True, False, None])
def test_other_failures_stay_what_they_were(answer: bool | None) -> None:
    class Failing:
        def __dlpack_device__(self) -> Any:
            raise LookupError("the producer's words")

        def __dlpack__(self, **_: Any) -> Any:
            raise AssertionError

        def is_deleted(self) -> bool:
            if answer is None:
                raise ValueError("not known")
            return answer

    with pytest.raises(BufferError if answer else LookupError):
        arrowdl.to_arrow_device(Failing())


@pytest.mark.parametrize("options", [{}, {"copy": None}, {"copy": True}], ids=str)
def test_strided_tensors_of_devices_are_their_librarys_to_copy(options: dict[str, Any]) -> None:
    """As README says; the copy would be made there, which takes kernels."""
    data = np.arange(12)
    made = MadeTensor(data, (2, 3), strides=(6, 2), device=(14, 0))
    with pytest.raises(BufferError, match="make it contiguous in its own library first"):
        arrowdl.to_arrow_device(made.capsule(), stream=None, **options)
    on_cpu = MadeTensor(data, (2, 3), strides=(6, 2))
    taken = arrowdl.to_arrow_device(on_cpu.capsule(), **options)
    assert np.from_dlpack(taken).tolist() == [[0, 2, 4], [6, 8, 10]]


# ---------------------------------------------------------------- FixedSizeBinary(0)

NO_WIDTH = {
    "rows": pa.array([b"", b"", b""], pa.binary(0)),
    "nulls": pa.array([b"", None, b""], pa.binary(0)),
    "none": pa.array([], pa.binary(0)),
}


@pytest.mark.parametrize("name", NO_WIDTH)
def test_binary_of_no_width_comes_and_goes(name: str) -> None:
    source = NO_WIDTH[name]
    array = arrowdl.from_arrow(source)
    assert array.type == "fixed_size_binary[0]"
    assert (array.shape, array.dtype, array.nbytes > 1) == ((len(source), 0), "uint8", False)
    for back in array, array[:], arrowdl.from_arrow(pa.chunked_array([source, source]))[:3]:
        read = pa.array(back)
        read.validate(full=True)
        assert read.type == source.type
        assert read.to_pylist()[: len(source)] == source.to_pylist()


def test_binary_of_no_width_as_a_tensor() -> None:
    array = arrowdl.from_arrow(NO_WIDTH["rows"])
    assert np.from_dlpack(array).shape == (3, 0)
    assert torch.from_dlpack(array).shape == (3, 0)
    for convert in arrowdl.to_torch, arrowdl.to_numpy, arrowdl.to_jax:
        assert convert(array).shape == (3, 0)
        values, mask = convert(NO_WIDTH["nulls"], nulls="mask")
        assert values.shape == mask.shape == (3, 0)
        assert convert(NO_WIDTH["nulls"], nulls="fill").shape == (3, 0)
    with pytest.raises(BufferError, match="null"):
        np.from_dlpack(arrowdl.from_arrow(NO_WIDTH["nulls"]))


def test_binary_of_no_width_inside_of_others() -> None:
    lists = pa.array([[b"", None], None, [], [b""]], pa.list_(pa.binary(0)))
    fixed = pa.array([[b"", b""], None, [b"", b""], None], pa.list_(pa.binary(0), 2))
    coded = pa.array([b"", None, b"", b""], pa.binary(0)).dictionary_encode()
    table = pa.table({"l": lists, "f": fixed, "d": coded, "i": range(4)})
    batches = [
        arrowdl.from_arrow(table),
        *arrowdl.from_arrow_stream(pa.concat_tables([table] * 3)).rebatch(4),
    ]
    for batch in batches:
        assert pa.array(batch).to_pylist() == table.to_pylist()
    stream = arrowdl.from_arrow_stream(pa.concat_tables([table] * 3)).shuffle(6, seed=3)
    rows = sorted(row["i"] for array in stream for row in pa.array(array).to_pylist())
    assert rows == sorted([*range(4)] * 3)
    values, offsets = arrowdl.to_numpy(lists.drop_null()[-1:])
    assert (values.shape, offsets.tolist()) == ((1, 0), [0, 1])


# ---------------------------------------------------------------- permuted tensors


def permuted(permutation: list[int]) -> arrowdl.DeviceArray:
    """Rows of shape (2, 3) and (1, 2) as they lie."""
    data = pa.array([[0, 1, 2, 3, 4, 5], [7, 8]], pa.list_(pa.int32()))
    shape = pa.array([[2, 3], [1, 2]], pa.list_(pa.int32(), 2))
    storage = pa.StructArray.from_arrays([data, shape], names=["data", "shape"])
    metadata = json.dumps({"permutation": permutation})
    return as_extension(storage, "arrow.variable_shape_tensor", metadata)


@pytest.mark.parametrize("function", [arrowdl.to_numpy, arrowdl.to_jax, arrowdl.to_torch])
def test_a_permutation_is_not_dropped_by_offsets(function: Callable[..., Any]) -> None:
    array = permuted([1, 0])
    for given in array, arrowdl._core.make_struct(["x"], [array]):
        with pytest.raises(BufferError, match=r"permuted .* cannot become \(values, offsets"):
            function(given, ragged="offsets")
    data, offsets = function(array.field("data"), ragged="offsets")  # the advice
    assert (data.tolist(), offsets.tolist()) == ([0, 1, 2, 3, 4, 5, 7, 8], [0, 6, 8])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_permuted_row_in_its_logical_order() -> None:
    rows = arrowdl.to_torch(permuted([1, 0])).unbind()
    assert [row.tolist() for row in rows] == [[[0, 3], [1, 4], [2, 5]], [[7], [8]]]


@pytest.mark.parametrize("function", [arrowdl.to_numpy, arrowdl.to_jax])
def test_a_permutation_that_permutes_nothing(function: Callable[..., Any]) -> None:
    for ragged in "jagged", "offsets":
        values, offsets, shapes = function(permuted([0, 1]), ragged=ragged)
        assert values.tolist() == [0, 1, 2, 3, 4, 5, 7, 8]
        assert (offsets.tolist(), shapes.tolist()) == ([0, 6, 8], [[2, 3], [1, 2]])
