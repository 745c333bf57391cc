"""Every kind of producer that there is, as it is today and as its elders were."""

from __future__ import annotations

import array
import ctypes
import enum
from typing import Any

import arrowdl
import jax
import jax.numpy as jnp
import nanoarrow as na
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tvm_ffi
from helpers.capsules import capsule_name, make_capsule, rename_capsule
from helpers.dlpack import READ_ONLY, DLPackVersion, MadeTensor
from helpers.optional import torch
from helpers.processes import run_python


def values_of(tensor: Any, **options: Any) -> list[Any]:
    return pa.array(arrowdl.to_arrow_device(tensor, **options)).to_pylist()


# ---------------------------------------------------------------- numpy


def test_numpy_read_only_arrays_are_taken():
    values = np.arange(3)
    values.flags.writeable = False
    array = arrowdl.to_arrow_device(values, copy=False)
    assert np.from_dlpack(array).ctypes.data == values.ctypes.data


@pytest.mark.parametrize(
    "values",
    [
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, [("a", "i4")]),
        np.arange(3, dtype=np.dtype("i4").newbyteorder()),
        np.array(["text"]),
        np.array([None]),
        np.zeros(2, np.void(4).dtype),
    ],
    ids=lambda values: values.dtype.str,
)
def test_numpy_arrays_that_are_no_tensors_have_another_way(values):
    with pytest.raises(BufferError):
        values.__dlpack__(max_version=(1, 3))
    with pytest.raises(BufferError, match=r"^a NumPy array of .*(cast it|pass|change it)"):
        arrowdl.to_arrow_device(values)


def test_numpy_longdouble_is_refused_by_whoever_comes_first():
    with pytest.raises(BufferError, match=r'long doubles.*astype\("float64"\)'):
        arrowdl.to_arrow_device(np.zeros(2, np.longdouble))


def test_numpy_masked_arrays_are_refused_with_advice():
    """numpy's own `__dlpack__` drops the mask."""
    values = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert np.from_dlpack(values).tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match=r"mask=~numpy\.ma\.getmaskarray"):
        arrowdl.to_arrow_device(values)
    assert values_of(values.data, mask=~np.ma.getmaskarray(values)) == [1, None, 3]


# ---------------------------------------------------------------- torch


def test_torch_goes_through_the_exchange_api_and_not_its_method(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("the method was called")

    monkeypatch.setattr(torch.Tensor, "__dlpack__", fail)
    assert values_of(torch.arange(3)) == [0, 1, 2]


def test_torch_requires_grad_is_refused_with_advice():
    tensor = torch.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match=r"requires grad.*detach\(\)"):
        arrowdl.to_arrow_device(tensor)
    assert values_of(tensor.detach()) == [1, 1]
    with pytest.raises(BufferError, match="requires grad"):
        arrowdl.to_arrow_device(tensor * 2)


def test_torch_parameter_is_a_tensor_that_requires_grad():
    with pytest.raises(BufferError, match="requires grad"):
        arrowdl.to_arrow_device(torch.nn.Parameter(torch.ones(2)))
    assert values_of(torch.nn.Parameter(torch.ones(2), requires_grad=False)) == [1, 1]


def test_torch_conjugate_bit_is_refused_with_advice():
    tensor = torch.tensor([1 + 2j]).conj()
    assert tensor.is_conj()
    with pytest.raises(BufferError, match=r"conjugate bit.*resolve_conj\(\)"):
        arrowdl.to_arrow_device(tensor)
    assert values_of(tensor.resolve_conj()) == [[1, -2]]


def test_torch_negative_bit_is_refused_with_advice():
    tensor = torch.tensor([1 + 2j]).conj().imag
    assert tensor.is_neg()
    assert torch.from_dlpack(tensor).tolist() == [2.0]  # torch's own method, sign lost
    with pytest.raises(BufferError, match=r"negative bit.*resolve_neg\(\)"):
        arrowdl.to_arrow_device(tensor)
    assert values_of(tensor.resolve_neg()) == [-2.0]


def sparse(layout: torch.layout) -> torch.Tensor:
    block = {"blocksize": (2, 2)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}
    return torch.eye(4).to_sparse(layout=layout, **block)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(
    "layout",
    [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc],
    ids=str,
)
def test_torch_sparse_layouts_are_refused_in_torch_words(layout):
    with pytest.raises(BufferError, match=r"layout other than torch\.strided"):
        arrowdl.to_arrow_device(sparse(layout))


def test_torch_mkldnn_layout_is_refused():
    with pytest.raises(BufferError, match=r"layout other than torch\.strided"):
        arrowdl.to_arrow_device(torch.zeros(2, 3).to_mkldnn())


def test_torch_fake_tensors_are_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(3)
    with pytest.raises(BufferError, match="no memory"):
        arrowdl.to_arrow_device(fake)


def test_torch_meta_tensors_are_refused():
    with pytest.raises(BufferError, match="meta"):
        arrowdl.to_arrow_device(torch.zeros(3, device="meta"))


def test_torch_tensors_under_a_transform_are_refused():
    def convert(row):
        arrowdl.to_arrow_device(row)
        return row

    with pytest.raises((BufferError, RuntimeError, ValueError)):
        torch.func.vmap(convert)(torch.zeros(2, 3))


def test_torch_subclasses_are_tensors():
    class Labelled(torch.Tensor):
        pass

    tensor = torch.arange(3).as_subclass(Labelled)
    assert values_of(tensor) == [0, 1, 2]


def test_torch_subclass_without_memory_of_its_own_is_refused():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError

    with pytest.raises((BufferError, ValueError)):
        arrowdl.to_arrow_device(Wrapper(torch.zeros(3)))


def test_torch_class_is_no_tensor():
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device(torch.Tensor)


# ---------------------------------------------------------------- jax


def test_jax_hands_out_legacy_capsules_which_are_taken():
    values = jnp.arange(4, dtype=jnp.float32)
    capsule = values.__dlpack__()
    assert capsule_name(capsule) == "dltensor"
    assert values_of(capsule) == [0, 1, 2, 3]


def test_jax_computation_in_flight_is_waited_for():
    values = jax.jit(lambda x: (x @ x).sum(axis=1))(jnp.ones((500, 500)))
    assert values_of(values) == [250_000.0] * 500


@pytest.mark.slow
def test_jax_sharded_arrays_are_refused_in_jax_words():
    said = run_python(
        """
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax, jax.numpy as jnp, numpy as np, pyarrow as pa
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        import arrowdl

        devices = jax.devices()
        assert len(devices) == 4
        x = jnp.arange(8.0)
        sharded = jax.device_put(x, NamedSharding(Mesh(devices, "i"), PartitionSpec("i")))
        try:
            arrowdl.to_arrow_device(sharded)
        except BufferError as error:
            print("BufferError", error)
        # Any of its CPUs is the one CPU.
        second = jax.device_put(x, devices[2])
        array = arrowdl.to_arrow_device(second)
        assert pa.array(array).to_pylist() == list(range(8))
        print(array.device)
        """
    )
    assert said.startswith("BufferError ")
    assert 'Device("cpu", 0)' in said


@pytest.mark.parametrize("name", ["int4", "uint4", "int2"])
def test_jax_integers_that_it_does_not_export_are_taken_by_their_bytes(name):
    tensor = jnp.zeros(4, name)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no DLPack equivalent"):
        tensor.__dlpack__()
    assert arrowdl.to_arrow_device(tensor).dtype == name


class Refuses:
    def __init__(self, dtype, error):
        self.dtype, self.error = dtype, error

    def __dlpack__(self, **_):
        raise self.error


class RefusesWithView(Refuses):
    """Its view has a byte for each value, as ml_dtypes' numpy arrays."""

    size = 4

    def view(self, dtype):
        assert dtype == "uint8"
        return np.zeros(4, np.uint8)


def test_refusals_pass_unchanged():
    error = RuntimeError("no DLPack equivalent")
    cases = [Refuses("int4", error), Refuses("float32", error), RefusesWithView("float32", error)]
    cases += [RefusesWithView("int4_padded", error), RefusesWithView("int4", OSError("other"))]
    for producer in cases:
        with pytest.raises(type(producer.error)) as caught:
            arrowdl.to_arrow_device(producer)
        assert caught.value is producer.error
    with pytest.raises(BufferError, match="bytes that is not packed"):
        arrowdl.to_arrow_device(RefusesWithView("int4", error))


# ---------------------------------------------------------------- tvm-ffi


def test_tvm_ffi_tensors_are_taken():
    base = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    tensor = tvm_ffi.from_dlpack(base)
    array = arrowdl.to_arrow_device(tensor, copy=False)
    assert np.from_dlpack(array).tolist() == base.tolist()
    assert np.from_dlpack(array).ctypes.data == base.ctypes.data


def test_tvm_ffi_takes_arrays_by_our_exchange_api():
    base = torch.arange(6.0).reshape(2, 3)
    tensor = tvm_ffi.from_dlpack(arrowdl.to_arrow_device(base))
    assert tuple(tensor.shape) == (2, 3)
    back = torch.from_dlpack(tensor)
    assert back.data_ptr() == base.data_ptr()
    assert back.tolist() == base.tolist()


# ---------------------------------------------------------------- pyarrow, nanoarrow, DeviceArray


def test_pyarrow_arrays_are_shared():
    base = pa.array([1, 2, 3], pa.int16())
    array = arrowdl.to_arrow_device(base[1:])
    assert pa.array(array).equals(base[1:])
    assert pa.array(array).buffers()[1].address == base.buffers()[1].address


def test_pyarrow_tensors_are_tensors():
    base = np.arange(6.0).reshape(2, 3)
    array = arrowdl.to_arrow_device(pa.Tensor.from_numpy(base))
    assert np.from_dlpack(array).tolist() == base.tolist()


def test_arrow_data_is_taken_as_arrow_data():
    """What its tensor could not say stays: nulls, strings, units."""
    for data in (pa.array([1, None]), pa.array(["a"]), pa.array([1], pa.timestamp("s", "UTC"))):
        assert pa.array(arrowdl.to_arrow_device(data)).equals(data)


@pytest.mark.parametrize(
    "make",
    [pa.py_buffer, na.c_buffer, memoryview, lambda data: data],
    ids=["pyarrow", "nanoarrow", "memoryview", "array"],
)
def test_buffers_are_tensors(make):
    base = array.array("f", [1.5, 2.5, 3.5])
    result = arrowdl.to_arrow_device(make(base), copy=False)
    assert np.from_dlpack(result).ctypes.data == base.buffer_info()[0]
    if result.dtype != "float32":  # pyarrow's buffers are bytes
        assert np.from_dlpack(result).tobytes() == base.tobytes()
    else:
        assert np.from_dlpack(result).tolist() == base.tolist()


def test_a_buffer_is_held_while_its_array_lives():
    base = bytearray(b"abc")
    result = arrowdl.to_arrow_device(base)
    with pytest.raises(BufferError):
        base.append(0)
    del result
    base.append(0)


def test_a_buffer_of_many_dimensions_keeps_its_strides():
    base = np.arange(12, dtype="int32").reshape(3, 4)
    result = arrowdl.to_arrow_device(memoryview(base)[::2])
    assert np.from_dlpack(result).tolist() == base[::2].tolist()


def test_a_buffer_of_a_foreign_format_is_refused():
    with pytest.raises(BufferError, match="format"):
        arrowdl.to_arrow_device(memoryview(np.zeros(2, ">i4")))


def test_nanoarrow_buffers_are_tensors():
    base = np.arange(5, dtype=np.float32)
    view = na.c_array(base).view().buffer(1)
    array = arrowdl.to_arrow_device(view, copy=False)
    assert pa.array(array).to_pylist() == base.tolist()
    assert np.from_dlpack(array).ctypes.data == base.ctypes.data


def test_device_arrays_are_tensors():
    base = torch.arange(6.0).reshape(2, 3)
    array = arrowdl.to_arrow_device(arrowdl.to_arrow_device(base), layout="list")
    assert pa.array(array).type == pa.list_(pa.float32(), 3)
    assert np.from_dlpack(array).ctypes.data == base.data_ptr()


# ---------------------------------------------------------------- every `__dlpack__` there was


class Producer:
    """Hands out hand-made tensors; `calls` is what it was called with."""

    device: Any = (1, 0)
    versioned = False

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.made: list[MadeTensor] = []

    def __dlpack_device__(self) -> Any:
        return self.device

    def hand_out(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        made = MadeTensor(np.arange(3, dtype=np.int32), versioned=self.versioned)
        self.made.append(made)
        return made.capsule()


class Bare(Producer):
    def __dlpack__(self):
        return self.hand_out()


class StreamOnly(Producer):  # cupy, pytorch and jax of before 2024
    def __dlpack__(self, stream=None):
        return self.hand_out(stream=stream)


class StreamKeyword(Producer):
    def __dlpack__(self, *, stream=None):
        return self.hand_out(stream=stream)


class VersionOnly(Producer):
    versioned = True

    def __dlpack__(self, *, max_version=None):
        return self.hand_out(max_version=max_version)


class CopyOnly(Producer):
    def __dlpack__(self, *, stream=None, copy=None):
        return self.hand_out(stream=stream, copy=copy)


class Everything(Producer):
    versioned = True

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.hand_out(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


class Anything(Producer):
    versioned = True

    def __dlpack__(self, **keywords):
        return self.hand_out(**keywords)


class NoDevice(Producer):
    """As nanoarrow's buffers once were: no `__dlpack_device__` to ask."""

    __dlpack_device__ = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "__dlpack_device__":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def __dlpack__(self):
        return self.hand_out()


VINTAGES = [
    Bare,
    StreamOnly,
    StreamKeyword,
    VersionOnly,
    CopyOnly,
    Everything,
    Anything,
    NoDevice,
]


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("vintage", VINTAGES)
def test_every_vintage_is_asked_in_its_own_words(vintage, copy):
    producer = vintage()
    array = arrowdl.to_arrow_device(producer, copy=copy)
    assert pa.array(array).to_pylist() == [0, 1, 2]
    assert len(producer.calls) == 1  # a call that raised TypeError never got this far
    assert producer.made[0].released == (1 if copy else 0)
    del array
    assert producer.made[0].released == 1


def test_the_newest_producer_is_told_all_it_can_use():
    producer = Everything()
    arrowdl.to_arrow_device(producer, copy=False)
    assert producer.calls == [
        {"stream": None, "max_version": (1, 3), "dl_device": None, "copy": False}
    ]
    producer = Everything()
    arrowdl.to_arrow_device(producer)
    assert producer.calls[0]["copy"] is None


@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize(
    "options", [{}, {"layout": "list"}, {"mask": np.ones(3, bool)}, {"stream": None}], ids=repr
)
def test_a_producer_is_asked_for_what_the_documentation_says(options, copy):
    """copy=True is arrowdl's to do, and on the CPU there is no stream or device to ask for."""
    producer = Anything()
    arrowdl.to_arrow_device(producer, copy=copy, **options)
    refusal = {"copy": False} if copy is False else {}
    assert producer.calls == [{"max_version": (1, 3), **refusal}]


def test_keywords_are_dropped_one_at_a_time():
    asked = []

    class Stubborn(Producer):
        def __dlpack__(self, **keywords):
            asked.append(set(keywords))
            if keywords:
                raise TypeError("no such keyword")
            return self.hand_out()

    arrowdl.to_arrow_device(Stubborn(), copy=False)
    assert asked == [{"max_version", "copy"}, {"copy"}, set()]


def test_a_type_error_that_no_keyword_explains_is_the_producers():
    class Broken(Producer):
        def __dlpack__(self, **_):
            raise TypeError("I have no elements of this type")

    with pytest.raises(TypeError, match="I have no elements of this type"):
        arrowdl.to_arrow_device(Broken())


@pytest.mark.parametrize("error", [BufferError, RuntimeError, ValueError, AssertionError, KeyError])
def test_errors_of_a_producer_pass_unchanged_at_once(error):
    raised = error("my own words")
    calls = []

    class Refusing(Producer):
        def __dlpack__(self, **keywords):
            calls.append(keywords)
            raise raised

    with pytest.raises(error) as caught:
        arrowdl.to_arrow_device(Refusing())
    assert caught.value is raised
    assert len(calls) == 1


def test_an_error_of_dlpack_device_passes_unchanged():
    class Lost(Bare):
        def __dlpack_device__(self):
            raise RuntimeError("no idea where")

    with pytest.raises(RuntimeError, match="no idea where"):
        arrowdl.to_arrow_device(Lost())


@pytest.mark.parametrize("result", [None, 42, "dltensor", object()])
def test_a_result_that_is_no_capsule_is_a_type_error(result):
    class Odd(Producer):
        def __dlpack__(self, **_):
            return result

    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        arrowdl.to_arrow_device(Odd())


class DeviceEnum(enum.IntEnum):
    CPU = 1


class DeviceIndex:
    def __index__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "index"


@pytest.mark.parametrize(
    "device",
    [(1, 0), (1, None), (DeviceEnum.CPU, 0), (DeviceIndex(), 0), (1, -1), (1, 5), (True, False)],
    ids=repr,
)
def test_devices_as_producers_write_the_cpu(device):
    producer = Bare()
    producer.device = device
    assert values_of(producer) == [0, 1, 2]


@pytest.mark.parametrize(
    "device", [None, 1, (1,), (1, 0, 0), [1, 0], ("cpu", 0), (1.0, 0), (None, None)], ids=repr
)
def test_devices_of_the_wrong_shape_are_type_errors(device):
    producer = Bare()
    producer.device = device
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device(producer)
    assert producer.calls == []


@pytest.mark.parametrize(
    ("device", "error", "said"),
    [
        ((0, 0), ValueError, "0"),
        ((-1, 0), ValueError, "-1"),
    ],
)
def test_an_unknown_device_is_refused_before_its_memory_is_asked_for(device, error, said):
    producer = Bare()
    producer.device = device
    with pytest.raises(error, match=said):
        arrowdl.to_arrow_device(producer)
    assert producer.calls == []


@pytest.mark.parametrize(
    "device", [(2, 0), (10, 1), (14, 0), (8, 0), (17, 3), (18, 0), (21, 0), (99, 7)]
)
def test_memory_of_a_runtime_that_is_not_there_passes_as_metadata(device):
    """No runtime in the process, no work that could be pending."""
    made = MadeTensor(np.arange(3), device=device)

    class Foreign(Producer):
        def __dlpack_device__(self):
            return device

        def __dlpack__(self, **_):
            return made.capsule()

    array = arrowdl.to_arrow_device(Foreign())
    assert (tuple(array.device), array.sync_event, len(array)) == (device, None, 3)
    assert array.is_ready()
    assert array.__dlpack_device__() == device
    with pytest.raises(BufferError, match=r"cannot keep memory for a stream|is not a stream"):
        array.record_stream(5)
    del array
    assert made.released == 1


@pytest.mark.parametrize("device", [(2**31, 0), (1, 2**40), (2**70, 0)])
def test_device_numbers_beyond_their_type_are_refused(device):
    producer = Bare()
    producer.device = device
    with pytest.raises((ValueError, OverflowError)):
        arrowdl.to_arrow_device(producer)


@pytest.mark.parametrize(("device", "error"), [((2, 0), BufferError), ((99, 0), BufferError)])
def test_the_device_in_the_capsule_counts_and_not_the_one_that_was_told(device, error):
    made = MadeTensor(np.arange(3), device=device)

    class Liar(Producer):
        def __dlpack__(self, **_):
            return made.capsule()

    with pytest.raises(error):
        arrowdl.to_arrow_device(Liar())
    assert made.released == 1


@pytest.mark.parametrize("device", [3, 11, 13])
def test_memory_that_the_host_can_read_keeps_its_device(device):
    made = MadeTensor(np.arange(3), device=(device, 0))
    array = arrowdl.to_arrow_device(made.capsule(), copy=False)
    assert tuple(array.device) == (device, 0)
    assert np.from_dlpack(array).tolist() == [0, 1, 2]
    schema, host = array.__arrow_c_array__()
    assert pa.Array._import_from_c_capsule(schema, host).to_pylist() == [0, 1, 2]


# ---------------------------------------------------------------- raw capsules


@pytest.mark.parametrize("versioned", [True, False])
def test_raw_capsules_are_taken_and_renamed(versioned):
    made = MadeTensor(np.arange(3), versioned=versioned)
    capsule = made.capsule()
    name = capsule_name(capsule)
    array = arrowdl.to_arrow_device(capsule)
    assert capsule_name(capsule) == f"used_{name}"
    del capsule
    assert made.released == 0
    assert pa.array(array).to_pylist() == [0, 1, 2]
    del array
    assert made.released == 1


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_raw_capsules_of_real_libraries_are_taken(library):
    tensor = {"numpy": np, "torch": torch, "jax": jnp}[library].arange(3)
    assert values_of(tensor.__dlpack__()) == [0, 1, 2]


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_is_good_for_one_consumer(versioned):
    made = MadeTensor(np.arange(3), versioned=versioned)
    capsule = made.capsule()
    array = arrowdl.to_arrow_device(capsule)
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.to_arrow_device(capsule)
    assert made.released == 0
    del array
    assert made.released == 1


@pytest.mark.parametrize(
    ("consume", "produce"),
    [
        (torch.from_dlpack, lambda: torch.arange(3).__dlpack__()),
        (torch.from_dlpack, lambda: torch.arange(3).__dlpack__(max_version=(1, 0))),
    ],
)
def test_a_capsule_that_another_library_consumed_is_refused(consume, produce):
    capsule = produce()
    kept = consume(capsule)
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.to_arrow_device(capsule)
    assert kept.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "name",
    ["dltensor_versioned2", "Dltensor", "my_dltensor", "used_used_dltensor", "dltensor\x01"],
)
def test_capsules_of_a_name_like_dlpacks_are_type_errors(name):
    made = MadeTensor(np.arange(3))
    capsule = made.capsule(name)
    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        arrowdl.to_arrow_device(capsule)
    assert made.released == 0
    del capsule
    assert made.released == 1


@pytest.mark.parametrize("name", ["arrow_schema", "arrow_array", "dlpack_exchange_api", "", "x"])
def test_capsules_of_other_kinds_are_type_errors(name):
    made = MadeTensor(np.arange(3))
    capsule = made.capsule(name)
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device(capsule)
    del capsule
    assert made.released == 1


def test_a_capsule_renamed_by_its_consumer_is_left_alone():
    made = MadeTensor(np.arange(3), versioned=False)
    capsule = made.capsule()
    rename_capsule(capsule, "used_dltensor")
    with pytest.raises(ValueError, match="consumed already"):
        arrowdl.to_arrow_device(capsule)
    del capsule
    assert made.released == 0  # by its consumer, some day
    made.managed.deleter(made.address)


@pytest.mark.parametrize("version", [(0, 8), (2, 0), (1000, 0), (2**32 - 1, 2**32 - 1)])
def test_of_another_major_version_only_the_deleter_is_used(version):
    """Beyond the header nothing is there: reading on would be a bus error under ASan."""
    made = MadeTensor(np.arange(3), version=version)
    tensor = made.managed.dl_tensor
    ctypes.memset(ctypes.addressof(tensor), 0xFF, ctypes.sizeof(tensor))
    capsule = made.capsule()
    with pytest.raises(BufferError, match=rf"DLPack version {version[0]}\.{version[1]}"):
        arrowdl.to_arrow_device(capsule)
    del capsule
    assert made.released == 1


@pytest.mark.parametrize("minor", [0, 1, 2, 3, 99])
def test_every_minor_version_is_taken(minor):
    made = MadeTensor(np.arange(3), version=(1, minor))
    assert made.managed.version.minor == DLPackVersion(1, minor).minor
    assert values_of(made.capsule()) == [0, 1, 2]


@pytest.mark.parametrize("versioned", [True, False])
def test_a_null_deleter_means_nothing_to_free(versioned):
    made = MadeTensor(np.arange(3), versioned=versioned, deleter=False)
    assert values_of(made.capsule()) == [0, 1, 2]
    with pytest.raises(BufferError):
        arrowdl.to_arrow_device(
            MadeTensor(np.arange(3), dtype=(0, 4), versioned=versioned, deleter=False).capsule()
        )


@pytest.mark.parametrize("flags", [0, READ_ONLY, 1 << 40])
def test_flags_that_do_not_touch_the_bytes_are_fine(flags):
    assert values_of(MadeTensor(np.arange(3), flags=flags).capsule()) == [0, 1, 2]


def test_a_capsule_whose_memory_is_null_is_refused():
    made = MadeTensor(None, (3,), dtype="int8")
    with pytest.raises(ValueError, match="data is NULL"):
        arrowdl.to_arrow_device(made.capsule())
    assert made.released == 1


# ---------------------------------------------------------------- streams, and what is not a tensor


@pytest.mark.parametrize("stream", [0, 1, 2, 12345, "legacy", object()])
@pytest.mark.parametrize(
    "make",
    [
        torch.zeros,
        np.zeros,
        lambda n: MadeTensor(np.zeros(n)).capsule(),
        lambda n: {"a": np.zeros(n)},
    ],
    ids=["torch", "numpy", "capsule", "dict"],
)
def test_a_stream_is_refused_on_the_cpu(make, stream):
    tensor = make(3)
    with pytest.raises(BufferError, match="stream="):
        arrowdl.to_arrow_device(tensor, stream=stream)


def test_no_stream_is_what_cpu_tensors_have():
    assert values_of(torch.arange(3), stream=None) == [0, 1, 2]


@pytest.mark.parametrize(
    "thing",
    [None, 1, 1.5, "text", [1, 2], (1, 2), {1, 2}, dict, np.ndarray, range(3)],
    ids=repr,
)
def test_what_is_no_tensor_is_a_type_error(thing):
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device(thing)
    with pytest.raises(TypeError):
        arrowdl.to_arrow_device(object())


def test_the_type_error_says_what_is_needed():
    with pytest.raises(TypeError, match=r"type list: pass pyarrow\.array\(values\)"):
        arrowdl.to_arrow_device([1, 2])


def test_an_attribute_that_raises_is_an_error_and_not_an_absence():
    class Moody:
        @property
        def __dlpack__(self):
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        arrowdl.to_arrow_device(Moody())


# ---------------------------------------------------------------- exchange APIs by hand


class ExchangeHeader(ctypes.Structure):
    pass


ExchangeHeader._fields_ = (
    ("version", DLPackVersion),
    ("prev_api", ctypes.POINTER(ExchangeHeader)),
)

FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))


class ExchangeApi(ctypes.Structure):
    _fields_ = (
        ("header", ExchangeHeader),
        ("allocator", ctypes.c_void_p),
        ("from_object", FromObject),
        ("to_object", ctypes.c_void_p),
        ("borrow", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    )


def exchange_type(from_object: Any, version: tuple[int, int] = (1, 3), prev: Any = None) -> type:
    """A class with an exchange API of its own; its `__dlpack__` gives [7]."""
    api = ExchangeApi()
    api.header.version = DLPackVersion(*version)
    if prev is not None:
        api.header.prev_api = ctypes.pointer(prev.header)
    api.from_object = FromObject(from_object)

    class WithApi:
        kept = (api, prev)
        __dlpack_c_exchange_api__ = make_capsule(ctypes.addressof(api), "dlpack_exchange_api")

        def __dlpack__(self, **_):
            return MadeTensor(np.array([7])).capsule()

        def __dlpack_device__(self):
            return (1, 0)

    return WithApi


def test_an_exchange_api_is_used_before_the_method():
    made = MadeTensor(np.arange(3))

    def from_object(_, out):
        out[0] = made.address
        return 0

    array = arrowdl.to_arrow_device(exchange_type(from_object)())
    assert pa.array(array).to_pylist() == [0, 1, 2]
    del array
    assert made.released == 1


def test_an_exchange_api_of_another_major_version_is_walked_past():
    made = MadeTensor(np.arange(3))

    def from_object(_, out):
        out[0] = made.address
        return 0

    def never(*_):
        raise AssertionError

    old = ExchangeApi()
    old.header.version = DLPackVersion(1, 2)
    old.from_object = FromObject(from_object)
    new_first = exchange_type(never, version=(2, 0), prev=old)
    assert values_of(new_first()) == [0, 1, 2]
    new_only = exchange_type(never, version=(2, 0))
    assert values_of(new_only()) == [7]


def test_what_an_exchange_api_refuses_the_method_is_asked_for():
    assert values_of(exchange_type(lambda _, out: -1)()) == [7]


def test_an_exchange_api_that_fails_without_a_reason_or_a_method_is_a_buffer_error():
    producer = exchange_type(lambda _, out: -1)
    del producer.__dlpack__
    with pytest.raises(BufferError, match="without a reason"):
        arrowdl.to_arrow_device(producer())


@pytest.mark.parametrize("device", [(2, 0), (21, 0), (77, 0)])
def test_device_memory_of_an_exchange_api_without_a_runtime_is_asked_of_the_method(device):
    made = MadeTensor(np.arange(3), device=device)

    def from_object(_, out):
        out[0] = made.address
        return 0

    assert values_of(exchange_type(from_object)()) == [7]
    assert made.released == 1


def test_an_exchange_api_that_gives_no_device_is_refused_and_released():
    made = MadeTensor(np.arange(3), device=(-1, 0))

    def from_object(_, out):
        out[0] = made.address
        return 0

    with pytest.raises((BufferError, ValueError)):
        arrowdl.to_arrow_device(exchange_type(from_object)())
    assert made.released == 1


@pytest.mark.parametrize("api", [None, 42, "capsule"])
def test_an_exchange_api_that_is_no_capsule_is_passed_over(api):
    class Odd(Everything):
        __dlpack_c_exchange_api__ = api

    assert values_of(Odd()) == [0, 1, 2]


def test_an_exchange_api_on_the_instance_is_not_the_types():
    producer = Everything()
    producer.__dlpack_c_exchange_api__ = torch.Tensor.__dlpack_c_exchange_api__
    assert values_of(producer) == [0, 1, 2]


# ---------------------------------------------------------------- Arrow data in a tensor's place


@pytest.mark.parametrize(
    "make",
    [lambda: pa.table({"a": [1, 2]}), lambda: pd.DataFrame({"a": [1, 2]})],
    ids=["pyarrow table", "pandas data frame"],
)
def test_arrow_data_is_taken_as_it_is(make):
    data = make()
    array = arrowdl.to_arrow_device(data, mask=np.array([True, False]))
    assert pa.array(array).to_pylist() == [{"a": 1}, None]
    with pytest.raises(BufferError, match="copy=True"):
        arrowdl.to_arrow_device(data, copy=True)
    with pytest.raises(BufferError, match="stream=1"):
        arrowdl.to_arrow_device(data, stream=1)


def test_an_empty_dict_ignores_no_stream_either():
    with pytest.raises(BufferError, match="stream=1"):
        arrowdl.to_arrow_device({}, stream=1)
