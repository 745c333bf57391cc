"""`DeviceStream.map`: a model over the batches of a stream, with NumPy."""

from __future__ import annotations

import _thread
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

ROWS = 10
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([i / 2 for i in range(ROWS)], pa.float32()),
        "name": [None if i == 3 else f"n{i}" for i in range(ROWS)],
    }
)
IDS = list(range(ROWS))


def run(model: Callable[[Any], Any], table: pa.Table = TABLE, **options: Any) -> Any:
    options = {"batch_size": 4, "framework": "numpy", **options}
    return arrowdl.from_arrow_stream(table).map(model, **options)


def double(x: Any) -> Any:
    return 2 * x


# ---------------------------------------------------------------- results


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_a_tensor_becomes_a_column_beside_the_others(prefetch: int) -> None:
    made = pa.table(run(double, columns="x", prefetch=prefetch))
    assert made.column_names == ["id", "x", "name", "output"]
    assert made.select(TABLE.column_names).equals(TABLE)
    assert made["output"].type == pa.float32()
    assert made["output"].to_pylist() == IDS
    assert [chunk.num_rows for chunk in made.to_batches()] == [4, 4, 2]


class Named(tuple):
    def _asdict(self) -> dict[str, Any]:
        return dict(zip("ab", self, strict=True))


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        (lambda x: {"b": x, "a": x > 1}, {}, {"b": pa.float32(), "a": pa.bool_()}),
        (lambda x: (x, -x), {"names": ["p", "q"]}, {"p": pa.float32(), "q": pa.float32()}),
        (lambda x: Named((x, x)), {}, {"a": pa.float32(), "b": pa.float32()}),
        (double, {"names": "y"}, {"y": pa.float32()}),
        (double, {"names": ["y"]}, {"y": pa.float32()}),
        (lambda x: x > 1, {"bool_as": "bool8"}, {"output": pa.bool8()}),
        (
            lambda x: np.stack([x, -x], 1),
            {},
            {"output": pa.fixed_shape_tensor(pa.float32(), [2])},
        ),
        (
            lambda x: np.stack([x, -x], 1),
            {"layout": "list"},
            {"output": pa.list_(pa.float32(), 2)},
        ),
        (lambda x: [f"<{i:g}>" for i in x], {}, {"output": pa.string()}),
        (lambda x: [None if i else [1] for i in x], {}, {"output": pa.list_(pa.int64())}),
        (lambda x: np.array(["a", "bc"] * 2)[: len(x)], {}, {"output": pa.string()}),
        (lambda x: [np.ones(int(i)) for i in x], {}, {"output": pa.large_list(pa.float64())}),
        (lambda x: [i.sum() for i in x], {}, {"output": pa.float32()}),
        (lambda x: pa.array(x).cast("string"), {}, {"output": pa.string()}),
        (lambda x: pa.record_batch({"z": pa.array(x)}), {}, {"z": pa.float32()}),
        (
            lambda x: (np.repeat(x, 2), 2 * np.arange(len(x) + 1)),
            {},
            {"output": pa.large_list(pa.float32())},
        ),
        (
            lambda x: {"r": (np.repeat(x, 2), 2 * np.arange(len(x) + 1, dtype="int32"))},
            {},
            {"r": pa.list_(pa.float32())},
        ),
        (
            lambda x: {"s": {"u": x, "v": x}},
            {},
            {"s": pa.struct({"u": pa.float32(), "v": pa.float32()})},
        ),
    ],
)
def test_what_a_model_may_return(
    model: Callable[[Any], Any], options: dict[str, Any], expected: dict[str, pa.DataType]
) -> None:
    made = pa.table(run(model, columns="x", keep=["id"], **options))
    assert dict(zip(made.schema.names, made.schema.types, strict=True)) == {
        "id": pa.int64(),
        **expected,
    }
    assert made["id"].to_pylist() == IDS
    made.validate(full=True)


def test_values_of_ragged_results() -> None:
    def model(x: Any) -> Any:
        ends = np.cumsum([0, *(int(i) for i in x)])
        return {
            "pair": (np.arange(ends[-1]), ends),
            "tensors": [np.full(int(i), i) for i in x],
            "texts": ["t" * int(i) for i in x],
        }

    made = pa.table(run(model, columns="x", keep=()))
    lengths = [i // 2 for i in IDS]
    assert [len(row) for row in made["pair"].to_pylist()] == lengths
    assert made["tensors"].to_pylist() == [[i / 2] * n for i, n in zip(IDS, lengths, strict=True)]
    assert made["texts"].to_pylist() == ["t" * n for n in lengths]


def test_a_loaders_transform_is_a_model() -> None:
    def transform(batch: Any) -> Any:
        return {"id": batch["id"], "y": batch["x"] + batch["id"]}

    loaded = list(arrowdl.Loader(TABLE.drop(["name"]), 4, framework="numpy", transform=transform))
    made = list(run(transform, columns=["id", "x"], keep=["name"]))
    assert len(loaded) == len(made) == 3
    for batch, array in zip(loaded, made, strict=True):
        for name in ("id", "y"):
            np.testing.assert_array_equal(np.from_dlpack(array[name]), batch[name])


def test_conversions_are_those_of_the_loader() -> None:
    seen = []

    def model(batch: Any) -> Any:
        seen.append(batch)
        return batch["m"].sum(1)

    table = TABLE.append_column("k", pa.array([None, *IDS[1:]]))
    stack = {"m": ["x", "k"]}
    made = run(model, table, columns=["x", "k", "id"], stack=stack, dtype="float64", nulls="fill")
    expected = [i / 2 + (i if i else 0) for i in IDS]
    assert pa.table(made)["output"].to_pylist() == expected
    assert {name: value.dtype.name for name, value in seen[0].items()} == {
        "m": "float64",
        "id": "float64",
    }
    made = run(lambda matrix: matrix[:, 0], columns=["x", "id"], stack=True, dtype="float32")
    assert pa.table(made)["output"].to_pylist() == TABLE["x"].to_pylist()
    with pytest.raises(BufferError, match="null") as caught:
        list(run(lambda batch: batch["k"], table, columns=["k"]))
    assert caught.value.__notes__ == ["in map(), with rows 0 to 3"]


def test_arrays_are_the_batches_without_a_size() -> None:
    table = pa.Table.from_batches(TABLE.to_batches(max_chunksize=3))
    sizes: list[int] = []

    def model(batch: Any) -> Any:
        sizes.append(len(batch["x"]))
        return batch["x"]

    empty = TABLE.slice(0, 0)
    source = pa.concat_tables([empty, table, empty])
    made = pa.table(run(model, source, columns=["x"], keep=(), batch_size=None))
    assert made["output"].equals(table["x"])
    assert sizes == [3, 3, 3, 1]


def test_metadata_of_columns_stays() -> None:
    schema = pa.schema([pa.field("x", pa.int32(), nullable=False, metadata={"unit": "m"})])
    made = run(double, pa.table({"x": pa.array([1], pa.int32())}, schema=schema), columns="x")
    assert pa.schema(made.schema).field("x").equals(schema.field("x"), check_metadata=True)


# ---------------------------------------------------------------- memory


def test_a_model_may_write_to_what_it_gets() -> None:
    def model(x: Any) -> Any:
        x *= 0
        return x

    table = pa.table({"x": np.arange(8.0)})
    made = pa.table(run(model, table, columns="x"))
    assert made["output"].to_pylist() == [0] * 8
    assert made["x"].to_pylist() == table["x"].to_pylist() == list(range(8))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_model_may_reuse_the_memory_of_its_results(prefetch: int) -> None:
    buffer = np.zeros(5)

    def model(x: Any) -> Any:
        buffer[: len(x)] = x
        return {
            "whole": buffer[: len(x)],
            "rows": [buffer[i : i + 1] for i in range(len(x))],
            "arrow": pa.array(buffer[: len(x)]),
            "struct": {"field": buffer[: len(x)]},
            "pair": (buffer[: len(x)], np.arange(len(x) + 1)),
        }

    for size in (4, 1):
        arrays = list(run(model, columns="x", prefetch=prefetch, keep=(), batch_size=size))
        assert pa.concat_tables([pa.table(array) for array in arrays]).to_pydict() == {
            "whole": [i / 2 for i in IDS],
            "rows": [[i / 2] for i in IDS],
            "arrow": [i / 2 for i in IDS],
            "struct": [{"field": i / 2} for i in IDS],
            "pair": [[i / 2] for i in IDS],
        }


def test_memory_is_shared_if_nobody_writes() -> None:
    table = pa.table({"x": np.arange(8.0)})
    addresses = []

    def model(x: Any) -> Any:
        assert not x.flags.writeable
        addresses.append(x.__array_interface__["data"][0])
        return x

    made = next(run(model, table, columns="x", writable=False, batch_size=8))
    address = table["x"].chunk(0).buffers()[1].address
    assert addresses == [address]
    assert np.from_dlpack(made["output"]).__array_interface__["data"][0] == address


# ---------------------------------------------------------------- when and where


def test_the_model_is_called_once_for_each_batch_and_not_before_it_is_needed() -> None:
    calls: list[list[int]] = []

    def model(batch: Any) -> Any:
        calls.append(batch["id"].tolist())
        return batch["id"]

    stream = run(model, columns=["id"], prefetch=0)
    assert repr(stream) == "<arrowdl.DeviceStream, not opened>"
    assert calls == []
    assert [field.name for field in stream.schema.children] == [*TABLE.column_names, "output"]
    assert stream.device_type == 1
    assert calls == [IDS[:4]]
    assert "output: int64>, cpu>" in repr(stream)
    next(stream)
    assert calls == [IDS[:4]]
    assert [len(array) for array in stream] == [4, 2]
    assert calls == [IDS[:4], IDS[4:8], IDS[8:]]


def test_it_is_an_adaptor() -> None:
    source = arrowdl.from_arrow_stream(TABLE)
    made = source.map(double, columns="x", framework="numpy").select(["output"]).rebatch(3)
    with pytest.raises(ValueError, match="continue with what was made of it"):
        next(source)
    twice = made.map(double, columns="output", names="more", framework="numpy").slice(1, 5)
    assert pa.table(twice).to_pydict() == {
        "output": IDS[1:6],
        "more": [2 * i for i in IDS[1:6]],
    }


def test_the_model_runs_in_one_thread_of_the_stream() -> None:
    threads = set()

    def model(x: Any) -> Any:
        threads.add(threading.get_ident())
        return x

    stream = run(model, columns="x", batch_size=1)
    assert stream.schema is not None
    list(stream)
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    threads.clear()
    list(run(model, columns="x", batch_size=1, prefetch=0))
    assert threads == {threading.get_ident()}


def test_batches_are_read_and_results_taken_while_the_model_works() -> None:
    is_read, is_taken = threading.Event(), threading.Event()

    def read() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(TABLE.to_batches(max_chunksize=5)):
            if number:
                is_read.set()
            yield batch

    def model(x: Any) -> Any:
        assert is_read.wait(30), "the second batch was not read ahead"
        if x[0]:
            assert is_taken.wait(30), "the first result did not arrive"
        return x

    stream = arrowdl.from_arrow_stream(read()).map(model, columns="x", framework="numpy")
    assert len(next(stream)) == 5
    is_taken.set()
    assert [len(array) for array in stream] == [5]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_stream_that_is_abandoned_lets_go(prefetch: int) -> None:
    class Model:
        def __call__(self, x: Any) -> Any:
            return x

    threads = threading.active_count()
    for count in range(3):  # not opened, opened, read
        model = Model()
        known = weakref.ref(model)
        stream = run(model, columns="x", prefetch=prefetch)
        if count:
            assert stream.schema is not None
        if count > 1:
            next(stream)
        del model, stream
        gc.collect()
        assert known() is None
    assert threading.active_count() == threads


def test_an_interrupt_ends_the_wait_for_a_model() -> None:
    is_over = threading.Event()

    def model(x: Any) -> Any:
        if x[0]:
            _thread.interrupt_main()
            is_over.wait(30)
        return x

    stream = run(model, columns="x")
    try:
        with pytest.raises(KeyboardInterrupt):
            list(stream)
    finally:
        is_over.set()
    stream.close()


# ---------------------------------------------------------------- errors


class Broken(Exception):
    pass


def fail(x: Any) -> Any:
    if x[0] == 4:
        raise Broken("no such row") from KeyError("cause")
    return x


@pytest.mark.parametrize("prefetch", [0, 2])
def test_errors_of_the_model_have_its_rows(prefetch: int) -> None:
    stream = run(fail, columns="id", prefetch=prefetch)
    assert len(next(stream)) == 4
    with pytest.raises(Broken, match="no such row") as caught:
        next(stream)
    assert caught.value.__notes__ == ["in map(), with rows 4 to 7"]
    assert isinstance(caught.value.__cause__, KeyError)

    reader = pa.RecordBatchReader.from_stream(run(fail, columns="id", prefetch=prefetch))
    assert reader.read_next_batch().num_rows == 4
    with pytest.raises(OSError, match=r"(?s)Broken: no such row.*in map\(\), with rows 4 to 7"):
        reader.read_next_batch()


def test_an_error_of_the_first_batch_stays_one() -> None:
    stream = run(lambda x: 1 / 0, columns="x")
    with pytest.raises(ZeroDivisionError) as caught:
        assert stream.schema
    assert caught.value.__notes__ == ["in map(), with rows 0 to 3"]
    with pytest.raises(RuntimeError, match="its error was raised before"):
        next(stream)
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        assert stream.schema


def test_a_model_cannot_end_the_stream() -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        list(run(lambda x: next(iter(())), columns="x"))
    assert caught.value.__notes__ == ["in map(), with rows 0 to 3"]


def test_errors_of_the_source_are_its_own() -> None:
    def read() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise Broken("the disk")

    stream = arrowdl.from_arrow_stream(read()).map(double, columns="x", framework="numpy")
    assert len(next(stream)) == ROWS
    with pytest.raises(Broken, match="the disk") as caught:
        next(stream)
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("model", "error", "says"),
    [
        (lambda x: x[:3], ValueError, 'returned 3 rows in "output" for a batch of 4 rows'),
        (lambda x: {"a": x, "b": x[1:]}, ValueError, 'returned 3 rows in "b" for a batch of 4'),
        (lambda x: x.sum(), ValueError, "without dimensions"),
        (lambda x: None, TypeError, 'returned NoneType for "output": return a tensor'),
        (lambda x: {"a": "b"}, TypeError, 'returned str for "a"'),
        (lambda x: {}, TypeError, "returned no column"),
        (lambda x: {1: x}, TypeError, "key 1"),
        (lambda x: (x, x), ValueError, "returned 2 tensors, and names="),
        (lambda x: {"a": (x, x)}, TypeError, 'returned tuple for "a"'),
        (lambda x: {"x": x}, ValueError, 'makes a column "x", and the stream has one that is kept'),
        (lambda x: (x, np.array([0, 1, 2, 3, 99])), ValueError, "offset"),
        (lambda x: [np.ones(1), *[np.ones((1, 1))] * 3], ValueError, "dimensions"),
        (lambda x: np.zeros(4, "V4"), BufferError, "output"),
    ],
)
def test_results_that_are_no_columns(
    model: Callable[[Any], Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        list(run(model, columns="x"))
    assert says in "\n".join([str(caught.value), *caught.value.__notes__])
    assert caught.value.__notes__[-1] == "in map(), with rows 0 to 3"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            lambda x: x.astype("f8" if x[0] else "f4"),
            'returned float64 for "output", and those of rows 0 to 3 are float32',
        ),
        (
            lambda x: np.zeros((len(x), 2 if x[0] else 3)),
            'returned fixed_shape_tensor<float64>(2) for "output"',
        ),
        (
            lambda x: {"a" if x[0] else "b": x},
            "returned the columns ['a'], and those of rows 0 to 3 are ['b']",
        ),
    ],
)
def test_batches_have_one_schema(model: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(ValueError, match="a stream has one schema") as caught:
        list(run(model, columns="x"))
    assert says in str(caught.value)
    assert caught.value.__notes__ == ["in map(), with rows 4 to 7"]


def test_the_order_of_a_dict_is_that_of_the_first_batch() -> None:
    def model(x: Any) -> Any:
        made = {"a": x, "b": -x}
        return dict(reversed(made.items())) if x[0] else made

    made = pa.table(run(model, columns="x", keep=()))
    assert made.column_names == ["a", "b"]
    assert made["b"].to_pylist() == [-i / 2 for i in IDS]


# ---------------------------------------------------------------- the schema


def test_a_schema_is_known_before_the_model_is_called() -> None:
    calls = []

    def model(x: Any) -> Any:
        calls.append(len(x))
        return {"t": [None] * len(x) if x[0] == 0 else ["a"] * len(x), "y": x}

    schema = pa.schema({"y": pa.float32(), "t": pa.large_string()})
    stream = run(model, columns="x", keep=["id"], schema=schema)
    assert pa.schema(stream.schema) == pa.schema([("id", pa.int64()), *schema])
    assert calls == []
    made = pa.table(stream)
    assert made["t"].to_pylist() == [None] * 4 + ["a"] * 6
    assert calls == [4, 4, 2]
    kinds = pa.schema({"y": pa.binary(), "t": pa.large_string()})
    wrong = run(model, columns="x", schema=kinds, prefetch=0)
    with pytest.raises(ValueError, match="float32 is requested as binary") as caught:
        next(wrong)
    assert caught.value.__notes__[0] == 'in the column "y" that the model returned'
    kinds = pa.schema({"y": pa.int8(), "t": pa.large_string()})
    with pytest.raises(ValueError, match=r"row 1 of float32 is 0\.5, which int8 cannot hold"):
        next(run(model, columns="x", schema=kinds))
    wrong = run(model, columns="x", schema=pa.schema({"y": pa.float32()}), prefetch=0)
    with pytest.raises(ValueError, match=r"\['t', 'y'\], and schema= has \['y'\]"):
        next(wrong)


def test_results_are_cast_to_a_schema() -> None:
    schema = pa.schema({"m": pa.list_(pa.float64()), "n": pa.int64(), "b": pa.int8()})
    made = pa.table(
        run(
            lambda x: {"b": x.astype("i1"), "n": x.astype("i1"), "m": np.stack([x, -x], 1)},
            columns="x",
            keep=(),
            schema=schema,
        )
    )
    assert made.schema.equals(schema)
    assert made["m"].to_pylist() == [[i / 2, -i / 2] for i in IDS]
    assert made["n"].to_pylist() == [i // 2 for i in IDS]


def test_a_stream_without_rows() -> None:
    empty = TABLE.slice(0, 0)
    made = pa.table(run(lambda x: np.stack([x, x], 1), empty, columns="x"))
    assert made.num_rows == 0
    assert made.schema.field("output").type == pa.fixed_shape_tensor(pa.float32(), [2])
    with pytest.raises(IndexError) as caught:
        pa.table(run(fail, empty, columns="id"))
    assert "Give map() schema=" in caught.value.__notes__[-1]
    stream = run(fail, empty, columns="id", schema=pa.schema({"output": pa.int64()}))
    assert pa.table(stream).schema.names == [*TABLE.column_names, "output"]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"columns": ["y"]}, ValueError, 'columns= names "y", and the columns are'),
        ({"columns": "y"}, ValueError, 'columns= names "y"'),
        ({"columns": []}, ValueError, "at least one"),
        ({"columns": ["x", "x"]}, ValueError, "twice"),
        ({"keep": "x"}, TypeError, "give a list of names"),
        ({"keep": ["z"]}, ValueError, 'keep= names "z"'),
        ({"names": []}, ValueError, "at least one"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"prefetch": -1}, ValueError, "prefetch=-1"),
        ({"framework": "tf"}, ValueError, "framework='tf'"),
        ({"nulls": "drop"}, ValueError, "nulls='drop'"),
        ({"nulls": {"y": "fill"}}, ValueError, 'nulls= names "y"'),
        ({"columns": "x", "stack": True}, ValueError, "columns=['x']"),
        ({"writable": 1}, TypeError, "writable=1"),
        ({"layout": "rows"}, ValueError, "rows"),
        ({"schema": {"y": "int8"}}, TypeError, "give an Arrow schema"),
        ({"schema": pa.schema([])}, ValueError, "no columns"),
        ({"schema": pa.schema({"x": pa.int8()})}, ValueError, "that is kept"),
        ({"device": "gpu"}, ValueError, "gpu"),
        ({"depth": 1}, TypeError, r"map() got an unexpected keyword argument 'depth'"),
    ],
)
def test_options_are_checked_at_once(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    stream = arrowdl.from_arrow_stream(TABLE)
    with pytest.raises(error) as caught:
        stream.map(double, **{"framework": "numpy", **options})
    assert says in str(caught.value)
    assert len(next(stream)) == ROWS  # it was not consumed


def test_a_model_is_a_function_and_a_stream_has_columns() -> None:
    with pytest.raises(TypeError, match="give a function"):
        run("model")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not structs"):
        arrowdl.from_arrow_stream([pa.array([1])]).map(double)
