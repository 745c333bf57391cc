"""A caller's code. It never runs: `make types` checks that arrowdl says what its types are.

An expected error is a `type: ignore` with its code; mypy refuses the ones it does not need.
"""

from __future__ import annotations

from typing import Any, assert_type

import arrowdl
import numpy as np
from arrowdl import Device, DeviceArray, DeviceStream, Schema
from arrowdl.typing import DeviceLike, SupportsArrowStream, SupportsDLPack
from typing_extensions import CapsuleType


def functions(tensor: SupportsDLPack, table: SupportsArrowStream) -> None:
    assert_type(arrowdl.__version__, str)
    assert_type(arrowdl.to_arrow_device(tensor), DeviceArray)
    assert_type(arrowdl.to_arrow_device(tensor, copy=True, layout="list"), DeviceArray)
    assert_type(arrowdl.to_arrow_device(tensor, bool_as="bits", mask=b"\x01"), DeviceArray)
    assert_type(arrowdl.from_arrow(table), DeviceArray)
    # Frameworks are not dependencies, so their tensors have no type here.
    assert_type(arrowdl.to_torch(table), Any)
    assert_type(arrowdl.to_arrow_device(tensor, extensions=False), DeviceArray)
    assert_type(arrowdl.to_jax(table, nulls="nan", stack=True), Any)
    assert_type(arrowdl.to_jax(table, nulls={"x": -1, "y": "mask"}, dtype="timestamp[us]"), Any)
    assert_type(arrowdl.to_numpy(table, nulls="fill", ragged="padded"), Any)
    assert_type(arrowdl.to_numpy(table, nulls={"x": "fill"}, dtype={"x": "float32"}), Any)
    assert_type(arrowdl.to_torch(table, ragged="padded", pad_value=-1, max_length=4), Any)
    median = np.float32(1.5)
    assert_type(arrowdl.to_torch(table, nulls={"x": median}, pad_value=np.int64(-1)), Any)
    arrowdl.Loader(table, nulls=median, ragged=arrowdl.Padded(median))
    matrix = arrowdl.to_torch(table, nulls="mask", stack=True)
    assert_type(matrix, tuple[Any, Any])
    values, valid = arrowdl.to_torch(table, nulls="mask")
    assert_type((values, valid), tuple[Any, Any])
    assert_type(arrowdl.from_arrow(table, copy=False), DeviceArray)


def structs(table: SupportsArrowStream) -> None:
    from arrowdl import c_data

    assert_type(c_data.import_array(1, 2), DeviceArray)
    assert_type(c_data.import_device_array(array=1, schema=2), DeviceArray)
    assert_type(c_data.import_schema(2), Schema)
    assert_type(c_data.import_device_stream(3), DeviceStream)
    c_data.export_device_array(table, 1, 2)
    c_data.export_stream([table], 3)
    c_data.import_array("1", 2)  # type: ignore[arg-type]
    c_data.import_array(1)  # type: ignore[call-arg]


def arguments(table: SupportsArrowStream) -> None:
    arrowdl.to_torch(table, nulls="drop")  # type: ignore[call-overload]
    arrowdl.to_torch(table, nulls={"x": "drop"})  # type: ignore[dict-item]
    arrowdl.to_torch(table, ragged="nested")  # type: ignore[call-overload]
    arrowdl.to_torch(table, "fill")  # type: ignore[call-overload]
    arrowdl.to_arrow_device(table, layout="tensor")  # type: ignore[arg-type]
    arrowdl.to_arrow_device(table, bool_as="bytes")  # type: ignore[arg-type]
    arrowdl.from_arrow(obj=table)  # type: ignore[call-arg]


def loaders(table: SupportsArrowStream) -> None:
    batches = arrowdl.Loader(
        table,
        arrowdl.Tokens(4096),
        shuffle=arrowdl.Shuffle(1_000),
        ranks=arrowdl.Ranks(0, 2, splits=4),
        ragged={"x": arrowdl.Padded(-1, max_length=8)},
        storage=arrowdl.Storage(decoder="polars"),
        on_error=arrowdl.Skip(10),
        progress=arrowdl.Report(every=60),
    )
    assert_type(batches, arrowdl.Loader)
    assert_type(batches.schema, arrowdl.loader.BatchSchema)
    assert_type(batches.explain().rows, int | None)
    assert_type(batches.stats("last"), arrowdl.loader.Stats)
    batches.stats("first")  # type: ignore[arg-type]
    arrowdl.Loader(table, 8, workers=2)  # type: ignore[call-arg]
    arrowdl.Loader(table, 8, rank=0)  # type: ignore[call-arg]
    arrowdl.Loader(table, 8, seed="1")  # type: ignore[arg-type]
    arrowdl.Ranks(0, 2, 8)  # type: ignore[call-arg]


def devices(array: DeviceArray) -> None:
    device = array.device
    assert_type(device, Device)
    assert_type(device.type, int)
    assert_type(device.id, int)
    assert_type(device.name, str)
    device_type, device_id = device
    assert_type((device_type, device_id), tuple[int, int])
    assert_type(device == Device("cuda", 1), bool)
    assert_type(array.__dlpack_device__(), tuple[int, int])
    assert_type(arrowdl.DeviceType(1), arrowdl.DeviceType)
    assert_type(Device(arrowdl.DeviceType.cpu), Device)
    named: list[DeviceLike] = ["cuda:1", ("cuda", 1), (arrowdl.DeviceType.cuda, None), device]
    assert_type([array.to(name) for name in named], list[DeviceArray])
    device.id = 2  # type: ignore[misc]
    arrowdl.DeviceType.gpu  # type: ignore[attr-defined]  # noqa: B018
    array.to(1.5)  # type: ignore[arg-type]


def settings() -> None:
    arrowdl.config.num_threads = 2
    assert_type(arrowdl.config.staging_limit, int)
    assert_type(arrowdl.config.blocking_release, bool)
    arrowdl.config.threads = 2  # type: ignore[attr-defined]
    arrowdl.lauder  # type: ignore[attr-defined]  # noqa: B018


def streams(table: SupportsArrowStream) -> None:
    stream = arrowdl.from_arrow_stream(table).rebatch(64, drop_last=True).shard(2, 0)
    assert_type(stream.shuffle(1000, seed=1), DeviceStream)
    packed = stream.pack("tokens", 2048, "best_fit", long="raise", pad_value={"labels": -100})
    assert_type(packed, DeviceStream)
    assert_type(arrowdl.flatten_cu_seqlens(next(packed)["cu_seqlens"]), DeviceArray)
    stream.pack("tokens", 2048, "first_fit")  # type: ignore[arg-type]
    for array in stream.to("cuda", pin_memory=False).prefetch():
        assert_type(array, DeviceArray)
    arrowdl.from_arrow_stream(1)  # type: ignore[arg-type]


def training(table: SupportsArrowStream) -> None:
    for batch in arrowdl.Loader(table, batch_size=64, shuffle=True):
        assert_type(batch, Any)


def arrays(array: DeviceArray) -> None:
    assert_type(array.type, str)
    assert_type(array.shape, tuple[int, ...])
    assert_type(array.dtype, str | None)
    assert_type(array.nbytes, int)
    assert_type(array.null_count, int)
    assert_type(len(array), int)
    assert_type(array[1:2], DeviceArray)
    assert_type(array["x"], DeviceArray)
    assert_type(array.field(0), DeviceArray)
    assert_type(array.field_names, list[str])
    assert_type(array.values, DeviceArray)
    assert_type(array.offsets, DeviceArray)
    assert_type(array.indices, DeviceArray)
    assert_type(array.dictionary, DeviceArray)
    if (validity := array.validity) is not None:
        assert_type(validity, DeviceArray)
    assert_type(array.is_released, bool)
    with_one_row = array[0]  # type: ignore[index]
    array.validity.shape  # type: ignore[union-attr]  # noqa: B018
    assert_type(with_one_row, DeviceArray)


def schemas(array: DeviceArray) -> None:
    schema = array.schema
    assert_type(schema, Schema)
    assert_type(schema.name, str)
    assert_type(schema.format, str)
    assert_type(schema.nullable, bool)
    assert_type(schema.metadata, dict[bytes, bytes])
    assert_type(schema.children, list[Schema])
    assert_type(schema.dictionary, Schema | None)


def protocols(array: DeviceArray) -> None:
    assert_type(array.__arrow_c_schema__(), CapsuleType)
    assert_type(array.__arrow_c_array__(), tuple[CapsuleType, CapsuleType])
    assert_type(array.__arrow_c_device_array__(), tuple[CapsuleType, CapsuleType])
    assert_type(array.__dlpack__(max_version=(1, 3), copy=False), CapsuleType)
    assert_type(DeviceArray.__dlpack_c_exchange_api__, CapsuleType)
