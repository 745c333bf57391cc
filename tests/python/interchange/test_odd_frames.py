"""Frames of the interchange protocol without bytes, and objects that only claim to be frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from helpers.frames import (
    BOOL,
    CATEGORICAL,
    NON_NULLABLE,
    STRING,
    USE_BITMASK,
    USE_BYTEMASK,
    USE_NAN,
    USE_SENTINEL,
    MadeBuffer,
    MadeColumn,
    MadeFrame,
    OnlyDataFrame,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol is deprecated"),
    pytest.mark.filterwarnings("ignore:Constructing a Categorical"),  # and of nulls alone
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),  # pandas 3.1's own use
]


# ---------------------------------------------------------------- nothing to read

EMPTY: dict[str, list[str | None]] = {"no rows": [], "nulls": [None, None], "texts": ["", ""]}
TYPES = {
    "string": lambda values: pa.array(values, pa.string()),
    "large_string": lambda values: pa.array(values, pa.large_string()),
    "dictionary": lambda values: pa.array(values, pa.string()).dictionary_encode(),
}
SOURCES: dict[str, Callable[[pa.RecordBatch], Any]] = {
    "of pyarrow": lambda batch: batch,
    "of pandas": lambda batch: batch.to_pandas(),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("values", EMPTY)
def test_texts_without_bytes_come_in(values: str, kind: str, source: str) -> None:
    batch = pa.record_batch({"x": TYPES[kind](EMPTY[values])})
    read = pa.table(arrowdl.from_arrow(OnlyDataFrame(SOURCES[source](batch))))
    read.validate(full=True)
    assert read["x"].to_pylist() == EMPTY[values]


# ---------------------------------------------------------------- what is not a frame

NONSENSE = [None, "x", b"x", -1, 2**63, 2**70, 1.5, object(), (), (1, 2, 3), {}, {"a": 1}, int]


class Claims:
    """An object whose ``__dataframe__`` gives `value`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self._value


def columns() -> dict[str, MadeColumn]:
    """A column of each kind, and of each way to mark nulls."""
    categories = MadeColumn(np.array([5, 6]))
    return {
        "int": MadeColumn(np.arange(3, dtype="int32")),
        "string": MadeColumn(
            np.frombuffer(b"abcdef", "uint8"),
            dtype=(STRING, 8, "u", "="),
            size=3,
            offsets=np.array([0, 1, 3, 6], "int32"),
        ),
        "categorical": MadeColumn(
            np.array([0, 1, 0], "int8"),
            dtype=(CATEGORICAL, 8, "c", "="),
            categorical={"is_ordered": False, "is_dictionary": True, "categories": categories},
        ),
        "bytes": MadeColumn(np.arange(3.0), null=(USE_BYTEMASK, 0), validity=np.array([True] * 3)),
        "bits": MadeColumn(
            np.arange(3.0), null=(USE_BITMASK, 0), validity=np.array([5], "uint8"), null_count=1
        ),
        "sentinel": MadeColumn(np.arange(3), null=(USE_SENTINEL, 2)),
        "nan": MadeColumn(np.arange(3.0), null=(USE_NAN, None)),
    }


class Lies(MadeBuffer):
    """A buffer one of whose parts is `value`; its memory is reached by the address."""

    def __init__(self, buffer: MadeBuffer, name: str, value: Any) -> None:
        super().__init__(buffer.data, buffer.device, "address")
        self._part = name, value

    def __getattribute__(self, name: str) -> Any:
        part, value = object.__getattribute__(self, "__dict__").get("_part", (None, None))
        return value if name == part else object.__getattribute__(self, name)


def lies() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Frames in each of which one part is not what the protocol says."""
    for wrong in NONSENSE:
        yield f"__dataframe__() is {wrong!r:.20}", lambda wrong=wrong: Claims(wrong)
        for name in "column_names", "get_chunks", "get_column":

            def frame(wrong: Any = wrong, name: str = name) -> Any:
                made = MadeFrame(columns())
                chunk = made if name != "get_column" else MadeFrame(columns())
                made.get_chunks = lambda *_: [chunk]  # type: ignore[method-assign]
                setattr(chunk, name, lambda *_: wrong)
                return made

            if name == "get_chunks" and wrong in ((), {}):  # none: the frame is its own chunk
                continue
            if name == "column_names" and wrong == {"a": 1}:  # a name
                continue
            yield f"{name}() is {wrong!r:.20}", frame
        yield from lies_in_columns(wrong)


def lies_in_columns(wrong: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    for kind in columns():
        for part in "_size", "offset", "dtype", "describe_null", "num_chunks", "get_buffers":
            if part == "offset" and wrong is int:  # a method that gives 0
                continue

            def column(wrong: Any = wrong, kind: str = kind, part: str = part) -> Any:
                made = columns()[kind]
                is_method = part in ("num_chunks", "get_buffers")
                setattr(made, part, (lambda: wrong) if is_method else wrong)
                return MadeFrame({"x": made})

            yield f"{part} of {kind} is {wrong!r:.20}", column
        for name, pair in columns()[kind].buffers.items():
            if pair is not None and not (name == "validity" and wrong is None):
                yield from lies_in_buffers(wrong, kind, name)
    for key in "categories", None:

        def categorical(wrong: Any = wrong, key: str | None = key) -> Any:
            made = columns()["categorical"]
            made.categorical = wrong if key is None else {**made.categorical, key: wrong}
            return MadeFrame({"x": made})

        if wrong is not None and wrong != {}:
            yield f"describe_categorical[{key}] is {wrong!r:.20}", categorical


def lies_in_buffers(wrong: Any, kind: str, name: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    for part in "pair", "buffer", "dtype", "bufsize", "ptr", "__dlpack_device__":
        if part == "dtype" and name == "data" and kind != "categorical":  # it is not needed
            continue
        if part == "ptr" and wrong in (2**63, 2**70) and wrong != 2**70:  # might be one
            continue

        def frame(part: str = part) -> Any:
            made = columns()[kind]
            buffer, dtype = made.buffers[name]
            made.buffers[name] = {
                "pair": wrong,
                "buffer": (wrong, dtype),
                "dtype": (buffer, wrong),
            }.get(part, (Lies(buffer, part, wrong), dtype))
            if part == "__dlpack_device__":
                made.buffers[name] = (Lies(buffer, part, lambda: wrong), dtype)
            return MadeFrame({"x": made})

        yield f"{part} of the {name} of {kind} is {wrong!r:.20}", frame


def refuse(frame: Any) -> str:
    """What the refusal says; nothing where there is none."""
    try:
        arrowdl.from_arrow(frame)
    except (BufferError, TypeError, ValueError) as error:
        return str(error)
    return ""


def test_whatever_is_wrong_is_said() -> None:
    """No part is followed before it has been looked at: no error is Python's about None."""
    python_says = ["has no attribute", "not subscriptable", "unpack", "not iterable", "index out"]
    python_says += ["not callable", "incompatible function", "must be str", "indices must be"]
    count = 0
    for what, make in lies():
        said = refuse(make())
        assert said, f"{what}: taken"
        assert not any(words in said for words in python_says), (what, said)
        count += 1
    assert count > 1000


@pytest.mark.parametrize(
    ("null", "says"),
    [
        ((9, None), "which the protocol does not have"),
        ((USE_BITMASK, 2), "null in the mask is 2, expected 0 or 1"),
        ((USE_BYTEMASK, None), r"null in the mask \(USE_BYTEMASK\) is None, expected an integer"),
        ((USE_SENTINEL, None), "the null value None is not one of int64"),
        ((USE_SENTINEL, 2**70), "is not one of int64"),
        ((USE_SENTINEL, "x"), "the null value 'x' is not one of int64"),
        ((USE_NAN, None), "NaN stands for null in float16, float32 and float64 alone"),
        ((USE_BITMASK,), r"expected \(kind, value\)"),
    ],
)
def test_kinds_of_null_that_there_are_not(null: Any, says: str) -> None:
    column = MadeColumn(np.arange(3), null=(NON_NULLABLE, None))
    column.describe_null = null
    with pytest.raises((BufferError, TypeError, ValueError), match=says):
        arrowdl.from_arrow(MadeFrame({"x": column}))


def test_nulls_of_a_column_that_cannot_have_any_are_refused() -> None:
    """modin's from_arrow: numbers with nulls are float64 there, and said to be int64."""
    column = MadeColumn(
        np.array([1, np.nan]).view("int64"), null=(NON_NULLABLE, None), null_count=1
    )
    with pytest.raises(ValueError, match=r'column "x": .*NON_NULLABLE.* null_count is 1'):
        arrowdl.from_arrow(MadeFrame({"x": column}))


@pytest.mark.parametrize("address", [0, 5, -1, 2**64 - 8, 2**70])
def test_addresses_where_no_memory_is_are_not_read(address: int) -> None:
    column = columns()["int"]
    buffer, dtype = column.buffers["data"]
    column.buffers["data"] = Lies(buffer, "ptr", address), dtype
    with pytest.raises(
        ValueError, match=f"12 bytes at address {address}, which is not valid memory"
    ):
        arrowdl.from_arrow(MadeFrame({"x": column}))


def test_a_mask_of_no_bytes_marks_no_rows() -> None:
    column = columns()["bits"]
    buffer, dtype = column.buffers["validity"]
    column.buffers["validity"] = Lies(buffer, "bufsize", 0), dtype
    with pytest.raises(ValueError, match="its mask has no bytes for 3 rows"):
        arrowdl.from_arrow(MadeFrame({"x": column}))


def test_categories_of_categories() -> None:
    column = columns()["categorical"]
    column.categorical = {"is_ordered": False, "is_dictionary": True, "categories": column}
    with pytest.raises(BufferError, match="its categories are categorical"):
        arrowdl.from_arrow(MadeFrame({"x": column}))


def test_offsets_of_another_width() -> None:
    column = columns()["string"]
    buffer, _ = column.buffers["offsets"]
    column.buffers["offsets"] = buffer, (BOOL, 16, "s", "=")
    with pytest.raises(BufferError, match="its offsets have 16 bits, Arrow's have 32 or 64"):
        arrowdl.from_arrow(MadeFrame({"x": column}))


def test_what_a_producer_raises_is_its_own() -> None:
    class Broken(MadeFrame):
        def get_column(self, i: int) -> MadeColumn:
            raise LookupError("the producer's words")

    frame = MadeFrame(columns())
    frame.get_chunks = lambda *_: iter([Broken(columns())])  # type: ignore[method-assign]
    with pytest.raises(LookupError, match="the producer's words"):
        arrowdl.from_arrow(frame)
