"""`Loader.schema`: what batches will have, beside what they have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from arrowdl.loader import BatchSchema, TensorSpec
from helpers.options import group

ROWS = 6
INTS = pa.array(range(ROWS), pa.int16())


def make_list(kind: pa.DataType) -> pa.Array:
    return pa.array([[1] * (i % 3) for i in range(ROWS)], kind)


# Every kind of column in the table of docs/concepts/dtypes.rst. None has more than 32 bits, which
# JAX refuses.
COLUMNS: dict[str, pa.Array] = {
    **{
        str(kind): INTS.cast(kind)
        for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32())
    },
    "float16": pa.array(np.zeros(ROWS, np.float16)),
    "float32": INTS.cast(pa.float32()),
    "bool": pa.array([True] * ROWS),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), INTS.cast(pa.int8())),
    "date32": INTS.cast(pa.int32()).cast(pa.date32()),
    "time32": INTS.cast(pa.int32()).cast(pa.time32("s")),
    "fixed list": pa.array([[1, 2]] * ROWS, pa.list_(pa.int32(), 2)),
    "nested fixed list": pa.array([[[1, 2, 3]] * 2] * ROWS, pa.list_(pa.list_(pa.int8(), 3), 2)),
    "empty fixed list": pa.array([[]] * ROWS, pa.list_(pa.int8(), 0)),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), (2, 3)),
        pa.array([[1.0] * 6] * ROWS, pa.list_(pa.float32(), 6)),
    ),
    "fixed binary": pa.array([b"abc"] * ROWS, pa.binary(3)),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16] * ROWS, pa.binary(16))),
    "dictionary": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
    "small dictionary": pa.array(["a"] * ROWS).cast(pa.dictionary(pa.int8(), pa.string())),
    "list": make_list(pa.list_(pa.int32())),
    "large list": make_list(pa.large_list(pa.float32())),
    "list view": make_list(pa.list_view(pa.int32())),
    "list of tensors": pa.array(
        [[[1, 2]] * (i % 3) for i in range(ROWS)], pa.list_(pa.list_(pa.int32(), 2))
    ),
    "string": pa.array(["ab", "c", ""] * 2),
    "large string": pa.array(["ab", "c", ""] * 2, pa.large_string()),
    "string view": pa.array(["ab", "c", ""] * 2, pa.string_view()),
    "binary": pa.array([b"ab", b"c", b""] * 2),
    "struct": pa.array(
        [{"a": 1, "b": [1, 2]}] * ROWS,
        pa.struct([("a", pa.int16()), pa.field("b", pa.list_(pa.int32()), nullable=False)]),
    ),
    "run ends": pa.RunEndEncodedArray.from_arrays([2, ROWS], pa.array([1, 2], pa.int32())),
    "required": INTS,
}
NESTED = {
    "lists of lists": pa.array([[[1], [2, 3]]] * ROWS, pa.list_(pa.list_(pa.int32()))),
    "lists of structs": pa.array([[{"a": 1}]] * ROWS, pa.list_(pa.struct([("a", pa.int8())]))),
    "map": pa.array([[("k", 1)]] * ROWS, pa.map_(pa.string(), pa.int32())),
}

TENSORS = {
    "bfloat16": torch.zeros(ROWS, dtype=torch.bfloat16),
    "complex64": torch.zeros(ROWS, 2, dtype=torch.complex64),
    "float8": torch.zeros(ROWS, dtype=torch.float8_e5m2),
    "float4": torch.zeros(ROWS, 2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "permuted": torch.zeros(ROWS, 3, 4, 5).to(memory_format=torch.channels_last),
}


def make_table(columns: dict[str, pa.Array]) -> pa.Table:
    fields = [pa.field(name, own.type, name != "required") for name, own in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def check(spec: Any, value: Any) -> None:
    """Compare what a schema says with what a batch has."""
    if isinstance(spec, dict):
        assert list(spec) == list(value)
        for name in spec:
            check(spec[name], value[name])
    elif isinstance(spec, tuple):
        assert len(spec) == len(value)
        for own, other in zip(spec, value, strict=True):
            check(own, other)
    else:
        assert isinstance(spec, TensorSpec)
        assert spec.dtype == value.dtype, (spec, value)
        assert len(spec.shape) == len(value.shape), (spec, value)
        assert spec.shape[0] is None
        for length, other in zip(spec.shape, value.shape, strict=True):
            assert length is None or length == other, (spec, value)


def compare(loader: arrowdl.Loader) -> BatchSchema:
    schema = loader.schema
    batch = next(iter(loader))
    check(dict(schema), batch if isinstance(batch, dict) else {"": batch})
    return schema


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
@pytest.mark.parametrize("name", [*COLUMNS, *NESTED, *TENSORS])
def test_every_kind_of_column(framework: Any, name: str) -> None:
    if name in TENSORS:
        table = pa.table(arrowdl.to_arrow_device({name: TENSORS[name]}))
    else:
        table = make_table({name: (COLUMNS | NESTED)[name]})
    for nulls in ("raise", "fill", "mask"):
        for ragged in ("jagged", "padded", "offsets"):
            loader = arrowdl.Loader(table, 4, framework=framework, nulls=nulls, ragged=ragged)
            try:
                expected = next(iter(loader))
            except BufferError as error:
                with pytest.raises(BufferError, match=re.escape(str(error))):
                    loader.schema  # noqa: B018
                continue
            schema = loader.schema
            check(dict(schema), expected)
            spec = schema[name]
            while isinstance(spec, tuple):
                spec = spec[0]
            if isinstance(spec, TensorSpec) and name not in TENSORS:
                assert spec.nulls == (None if name == "required" else nulls)


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float32"},
        {"dtype": {"i": "uint8"}},
        {"columns": ["f", "i"], "stack": True, "dtype": "float16"},
        {"columns": ["f", "i"], "stack": True, "dtype": "float32", "nulls": "mask"},
        {"columns": ["f", "i", "s"], "stack": {"x": ["f", "i"]}, "dtype": {"x": "float32"}},
        {"pad_last": True},
        {"pad_last": True, "nulls": "mask"},
        {"vocabulary": {"s": ["a", "b", "c"]}},
        {"columns": ["st.a", "i"]},
        {"columns": ["l"], "ragged": arrowdl.Padded(-1, max_length=2, multiple=8)},
        {"columns": ["l"], "pack": arrowdl.Pack("l", 4)},
        {"on_error": "skip"},
        {"shuffle": True},
        {
            "transform_arrow": lambda rows: {
                "y": pa.array([[1, 2]] * len(rows), pa.list_(pa.int8(), 2))
            }
        },
        {"transform": lambda batch: batch},
    ],
    ids=lambda options: "-".join(options),
)
def test_every_option(framework: Any, options: dict[str, Any], tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": INTS,
            "f": INTS.cast(pa.float32()),
            "s": ["a", "b", "a"] * 2,
            "st": [{"a": i} for i in INTS],
            "l": pa.array([[1], [2, 3, 4], [5]] * 2, pa.list_(pa.int32())),
        },
        pa.schema(
            [
                ("i", pa.int16()),
                ("f", pa.float32()),
                ("s", pa.string()),
                ("st", pa.struct([("a", pa.int16())])),
                ("l", pa.list_(pa.int32())),
            ]
        ),
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    batches = table.to_batches()
    sources: list[Any] = [table, str(tmp_path), lambda: iter(batches), iter(batches)]
    for source in sources:
        compare(arrowdl.Loader(source, 4, framework=framework, **group(**options)))


def test_a_mixture() -> None:
    table = make_table({"required": INTS})
    loader = arrowdl.Loader.mix(
        {"a": table, "b": table},
        {"a": 1, "b": 1},
        ranks=arrowdl.Ranks(global_batch_size=4, splits=1),
        origin="from",
    )
    assert list(compare(loader)) == ["required", "from"]


def test_global_arrays_of_jax() -> None:
    import jax

    devices = jax.sharding.Mesh(np.array(jax.devices()[:1]), "x")
    sharding = jax.sharding.NamedSharding(devices, jax.sharding.PartitionSpec("x"))
    compare(arrowdl.Loader(make_table({"a": INTS}), 4, framework="jax", device=sharding))


def test_widths_of_padded_rows_are_unknown_and_others_known() -> None:
    table = make_table({name: COLUMNS[name] for name in ("list of tensors", "empty fixed list")})
    schema = arrowdl.Loader(table, 4, ragged="padded", framework="numpy").schema
    assert schema["list of tensors"][0].shape == (None, None, 2)
    assert schema["list of tensors"][1] == TensorSpec(np.dtype("int64"), (None,))
    assert schema["empty fixed list"].shape == (None, 0)


def test_a_stream_for_one_pass_is_read_after_its_schema() -> None:
    table = make_table({"a": INTS})
    loader = arrowdl.Loader(iter(table.to_batches()), 4)
    assert list(loader.schema) == list(loader.schema) == ["a"]
    assert sum(len(batch["a"]) for batch in loader) == ROWS
    with pytest.raises(RuntimeError, match="good for one pass, and has been read"):
        loader.schema  # noqa: B018


def test_transform_arrow_is_called_without_rows_and_named_if_it_fails() -> None:
    def first(rows: pa.RecordBatch) -> Any:
        return {"x": [rows["a"][0].as_py()] * len(rows)}

    loader = arrowdl.Loader(make_table({"a": INTS}), 4, transform_arrow=first)
    with pytest.raises(IndexError) as caught:
        loader.schema  # noqa: B018
    assert "in transform_arrow, with a batch without rows" in caught.value.__notes__[0]
    assert len(list(loader)) == 2


def test_texts() -> None:
    table = make_table({name: COLUMNS[name] for name in ("int16", "required", "string", "struct")})
    schema = arrowdl.Loader(table, 4, framework="numpy").schema
    assert str(schema).splitlines() == [
        "int16: int16 (None,), nulls: raise",
        "required: int16 (None,)",
        "string: (uint8 (None,), nulls: raise; int32 (None,))",
        "struct: {a: int16 (None,), nulls: raise; b: (int32 (None,), nulls: raise; int32 (None,))}",
    ]
    assert repr(schema) == "<arrowdl.loader.BatchSchema of int16, required, string, struct>"
    assert "<tr><th>required</th><td>int16 (None,)</td></tr>" in schema._repr_html_()
    with pytest.raises(AttributeError):
        schema["int16"].dtype = None
