"""Codes of dictionaries in a `Loader`: nulls, NaN, narrow indices, and what `vocabulary` takes."""

import json
import math

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.faults import flip_value, open_checked, write_checked


def read(loader, column):
    """Return the values of the codes of `column`."""
    values = loader.vocabulary(column).to_pylist()
    return [values[code] for batch in loader for code in batch[column].tolist()]


def write(path, column):
    table = pa.table({"d": column})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


def encode(values, index=None, value_type=None):
    array = pa.array(values, value_type).dictionary_encode()
    return array.cast(pa.dictionary(index or pa.int32(), array.type.value_type))


@pytest.mark.parametrize("memory_map", [True, False])
def test_dictionaries_that_overflow_their_indices_together(tmp_path, memory_map):
    words = [[f"w{i}" for i in range(100)], [f"w{i}" for i in range(80, 200)]]
    paths = [write(tmp_path / f"{i}.arrow", encode(own, pa.int8())) for i, own in enumerate(words)]
    loader = arrowdl.Loader(
        paths, 64, storage=arrowdl.Storage(memory_map=memory_map), framework="numpy"
    )
    assert read(loader, "d") == words[0] + words[1]


@pytest.mark.parametrize("memory_map", [True, False])
def test_null_dictionary_values_are_nulls(tmp_path, memory_map):
    column = pa.DictionaryArray.from_arrays([0, 1, 2, None], pa.array(["a", None, "b"]))
    path = write(tmp_path / "x.arrow", column)
    loader = arrowdl.Loader(
        path, 4, storage=arrowdl.Storage(memory_map=memory_map), nulls="mask", framework="numpy"
    )
    codes, mask = next(iter(loader))["d"]
    assert (codes.tolist(), mask.tolist()) == ([0, 0, 1, 0], [True, False, True, False])
    assert loader.vocabulary("d").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("memory_map", [True, False])
def test_nan_is_a_value(tmp_path, memory_map):
    paths = [
        write(tmp_path / "0.arrow", encode([0.5, math.nan])),
        write(tmp_path / "1.arrow", encode([math.nan, 1.5])),
    ]
    loader = arrowdl.Loader(
        paths, 3, storage=arrowdl.Storage(memory_map=memory_map), framework="numpy"
    )
    assert [str(value) for value in read(loader, "d")] == ["0.5", "nan", "nan", "1.5"]


def test_nan_of_a_vocabulary():
    table = pa.table({"d": [0.5, math.nan]})
    loader = arrowdl.Loader(table, 2, vocabulary={"d": [math.nan, 0.5]}, framework="numpy")
    assert next(iter(loader))["d"].tolist() == [1, 0]


@pytest.mark.parametrize("type", [pa.timestamp("us"), pa.date32(), pa.duration("s")])
def test_dictionaries_of_times_in_decoded_files(tmp_path, type):
    paths = [
        write(tmp_path / "0.arrow", encode([1, 2], value_type=type)),
        write(tmp_path / "1.arrow", encode([3, 2], value_type=type)),
    ]
    loader = arrowdl.Loader(paths, 3, storage=arrowdl.Storage(memory_map=False), framework="numpy")
    assert read(loader, "d") == pa.array([1, 2, 3, 2], type).to_pylist()


@pytest.mark.parametrize("values", [{"a", "b"}, {"a": 1, "b": 0}, 5, "ab"])
def test_a_vocabulary_without_an_order_is_refused(values):
    table = pa.table({"d": ["a", "b"]})
    with pytest.raises(TypeError, match=r'"d".*give a list of them, in the order of their codes'):
        arrowdl.Loader(table, 2, vocabulary={"d": values})


def test_strings_are_not_parsed_as_values_of_a_vocabulary():
    table = pa.table({"d": ["1", "01"]})
    with pytest.raises(ValueError, match='"d" is of string, and its vocabulary of int64'):
        arrowdl.Loader(table, 2, vocabulary={"d": [1, 2]})


def test_a_vocabulary_of_no_column_of_a_stream_is_refused():
    loader = arrowdl.Loader(
        lambda: iter([pa.record_batch({"k": ["a"]})]), 2, vocabulary={"q": ["a"]}
    )
    with pytest.raises(ValueError, match="names \"q\", and the columns are \\['k'\\]"):
        next(iter(loader))


@pytest.mark.parametrize(
    "make",
    [
        lambda codes: pa.StructArray.from_arrays([codes], ["d"]),
        lambda codes: pa.ListArray.from_arrays(pa.array(range(len(codes) + 1), pa.int32()), codes),
    ],
    ids=["struct", "list"],
)
def test_transform_arrow_may_not_make_dictionaries_within_columns(make):
    table = pa.table({"s": ["a", "b", "b", "a"]})
    loader = arrowdl.Loader(
        table, 2, transform_arrow=lambda batch: {"c": make(batch["s"].dictionary_encode())}
    )
    with pytest.raises(ValueError, match=r"made a dictionary within a column.*codes as integers"):
        list(loader)


def test_transform_arrow_may_return_dictionaries_of_the_source():
    column = pa.StructArray.from_arrays([encode(["a", "b"])], ["d"])
    loader = arrowdl.Loader(
        pa.table({"s": column}), 1, transform_arrow=lambda batch: batch, framework="numpy"
    )
    assert [batch["s"]["d"].tolist() for batch in loader] == [[0], [1]]


@pytest.mark.parametrize("framework", ["numpy", "jax"])
@pytest.mark.parametrize("pad_last", [True, False])
def test_transform_arrow_may_reuse_its_memory(framework, pad_last):
    memory = np.zeros(2, np.float32)

    def fill(batch):
        memory[:] = batch["x"].to_numpy()
        return {"x": memory, "y": memory}

    loader = arrowdl.Loader(
        pa.table({"x": range(8)}),
        2,
        transform_arrow=fill,
        prefetch=4,
        framework=framework,
        pad_last=pad_last,
    )
    batches = list(loader)
    assert [batch["x"].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    if framework == "numpy":
        batches[0]["x"] += 1
        assert batches[0]["y"].tolist() == [0, 1]


def write_struct(path):
    table = pa.table({"s": [{"x": 1}, None]})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return path
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_a_field_with_nulls_is_not_reported_as_missing(tmp_path, name):
    loader = arrowdl.Loader(write_struct(tmp_path / name), 2, columns=["s.x"])
    with pytest.raises(BufferError, match=r'"s.x".* has nulls') as error:
        next(iter(loader))
    assert "lacks this column" not in str(error.value)


def test_a_column_of_transform_arrow_is_not_reported_as_missing(tmp_path):
    loader = arrowdl.Loader(
        write_struct(tmp_path / "x.parquet"), 2, transform_arrow=lambda batch: {"y": [1, None]}
    )
    with pytest.raises(BufferError, match=r'"y".* has nulls') as error:
        next(iter(loader))
    assert "lacks this column" not in str(error.value)


def test_a_schema_that_changes_in_nullability_says_so():
    fields = iter([pa.field("y", pa.int64()), pa.field("y", pa.int64(), nullable=False)])

    def change(batch):
        return pa.record_batch([pa.array([1])], schema=pa.schema([next(fields)]))

    with pytest.raises(ValueError, match='"y" is int64 not null, and was int64'):
        list(arrowdl.Loader(pa.table({"x": [1, 2]}), 1, transform_arrow=change))


@pytest.mark.parametrize("memory_map", [True, False])
def test_values_that_pyarrow_does_not_compare_have_a_vocabulary(tmp_path, memory_map):
    column = pa.DictionaryArray.from_arrays([0, 1, 0], pa.array([{"a": 1}, {"a": 2}]))
    path = write(tmp_path / "x.arrow", column)
    loader = arrowdl.Loader(
        path, 3, storage=arrowdl.Storage(memory_map=memory_map), framework="numpy"
    )
    assert read(loader, "d") == [{"a": 1}, {"a": 2}, {"a": 1}]


@pytest.mark.parametrize("values", [[{"a": 1}], ["a", 1]])
def test_values_of_a_vocabulary_that_cannot_be_compared_are_refused(values):
    with pytest.raises(TypeError, match='the values of "d" cannot be compared'):
        arrowdl.Loader(pa.table({"d": ["a"]}), 2, vocabulary={"d": values})


def test_an_empty_vocabulary_has_no_value():
    with pytest.raises(ValueError, match="has the value 'a', which its vocabulary lacks"):
        arrowdl.Loader(pa.table({"d": ["a"]}), 2, vocabulary={"d": []})


def test_a_state_of_dictionaries_that_could_not_be_read(tmp_path):
    """Without some values, others have other codes: a state says which were missing."""
    for i, kinds in enumerate(["ab", "cd", "ef"]):
        values = pa.array([kinds[j % 2] for j in range(100)])
        table = pa.table({"id": range(100), "kind": values.dictionary_encode()})
        write_checked(tmp_path / f"{i}.parquet", table, 50)

    def open_skipping():
        source = open_checked(tmp_path)
        return arrowdl.Loader(source, 10, framework="numpy", on_error="skip")

    sound = (tmp_path / "1.parquet").read_bytes()
    whole = open_skipping()
    assert "unread_dictionaries" not in whole.state_dict()
    flip_value(tmp_path / "1.parquet", 0, 1)
    loader = open_skipping()
    state = json.loads(json.dumps(loader.state_dict()))
    assert loader.vocabulary("kind").to_pylist() == list("abcdef")
    assert "unread_dictionaries" in state, "the codes of c and d come from another row group"
    open_skipping().load_state_dict(state)
    with pytest.raises(ValueError, match=r"dictionaries of 50 rows \(\w+\) could not be read, and"):
        whole.load_state_dict(state)
    with pytest.raises(ValueError, match="dictionaries of no rows could not be read, and now"):
        loader.load_state_dict(whole.state_dict())
    sources = {"x": open_checked(tmp_path), "y": table}
    mixture = arrowdl.Loader.mix(
        sources,
        weights={"x": 1, "y": 1},
        framework="numpy",
        on_error="skip",
        ranks=arrowdl.Ranks(global_batch_size=10),
    )
    assert mixture.state_dict()["unread_dictionaries"].startswith("x: 50 rows (")
    (tmp_path / "1.parquet").write_bytes(sound)
    mended = open_skipping()
    with pytest.raises(ValueError, match="codes have other meanings"):
        mended.load_state_dict(state)
    mended.load_state_dict(whole.state_dict())
