"""The value objects of a Loader: their checks, pickles, contradictions, and unknown keywords."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arrowdl
import arrowdl.loader
import pyarrow as pa
import pytest
from arrowdl import Buckets, Pack, Padded, Ranks, Report, Seed, Shuffle, Skip, Storage, Tokens
from arrowdl.loader import Retries
from arrowdl.loader._settings.unknown import ADVICE
from helpers.options import group

TABLE = pa.table({"x": [1, 2, 3, 4], "n": [[1], [2, 3], [4], []]})

OBJECTS = [
    Buckets("n", window=64),
    Pack("n", 8, "best_fit", buffer_size=4),
    Padded(-1, max_length=4, multiple=8),
    Ranks(1, 4, global_batch_size=Tokens(64), splits=8),
    Report(bar=True, every=60.0, function=print),
    Retries(3, deadline=5.0),
    Seed(7, transforms=False),
    Shuffle(1_000),
    Skip(10),
    Storage(cache="/cache", cache_bytes=100, retries=Retries(3), plan="share", memory_map=False),
    Tokens(64, column="n"),
]


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_objects_are_plain_values(value: Any) -> None:
    kind = type(value)
    assert pickle.loads(pickle.dumps(value)) == value
    assert not hasattr(value, "__dict__"), "a misspelled field is an error"
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 1)
    assert getattr(arrowdl.loader, kind.__name__) is kind
    assert kind is Retries or getattr(arrowdl, kind.__name__) is kind
    text = inspect.getdoc(kind) or ""
    documented = [
        name for line in re.findall(r"^([\w, ]+) : ", text, re.M) for name in line.split(", ")
    ]
    assert documented == [field.name for field in dataclasses.fields(value)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tokens(0), "Tokens.number=0: expected an int of at least 1"),
        (lambda: Tokens(2.5), "Tokens.number=2.5: expected an int"),
        (lambda: Tokens(8, column=""), "Tokens.column='': give the name of a column"),
        (lambda: Shuffle(0), "Shuffle.buffer_size=0: expected an int of at least 1"),
        (
            lambda: Shuffle("all"),
            "Shuffle.buffer_size='all': expected \"auto\" or a number of rows",
        ),
        (lambda: Shuffle(True), "Shuffle.buffer_size=True: expected an int"),
        (lambda: Seed("7"), "Seed.number='7': expected an int"),
        (lambda: Seed(7, transforms=0), "Seed.transforms=0: expected True or False"),
        (lambda: Padded("x"), "Padded.value='x': expected an int, a float or a bool"),
        (lambda: Padded(max_length=0), "Padded.max_length=0: expected an int of at least 1"),
        (lambda: Padded(multiple=1.5), "Padded.multiple=1.5: expected an int of at least 1"),
        (lambda: Buckets(3), "Buckets.column=3: give the name of a column"),
        (lambda: Buckets("n", window=-1), "Buckets.window=-1: expected an int of at least 1"),
        (lambda: Pack(3, 8), "Pack.column=3: give the name of a column"),
        (lambda: Pack("n", 0.5), "Pack.length=0.5: expected an int"),
        (lambda: Ranks(1), "Ranks(rank=1, world_size=None): they belong together, give both or"),
        (lambda: Ranks(2, 2), "Ranks(rank=2, world_size=2): ranks count from 0 to 1"),
        (lambda: Ranks(0, 0), "Ranks.world_size=0: expected an int of at least 1"),
        (lambda: Ranks(global_batch_size=0), "Ranks.global_batch_size=0: expected an int"),
        (
            lambda: Ranks(splits="all"),
            "Ranks.splits='all': expected a number of sequences, \"auto\"",
        ),
        (lambda: Ranks(splits=0), "Ranks.splits=0: expected an int of at least 1"),
        (lambda: Storage(decoder="duckdb"), "Storage.decoder='duckdb': expected 'pyarrow' or"),
        (lambda: Storage(memory_map=1), "Storage.memory_map=1: expected True or False"),
        (lambda: Storage(options=["a"]), "Storage.options is a list: give a mapping"),
        (lambda: Storage(options={}, filesystem=object()), "give those of Storage.filesystem to"),
        (lambda: Storage(retries=3), "Storage.retries=3: give an arrowdl.loader.Retries"),
        (lambda: Storage(cache="/a"), "Storage.cache='/a', Storage.cache_bytes=None: give both"),
        (lambda: Storage(cache=3, cache_bytes=3), "Storage.cache=3: give the path of a folder"),
        (lambda: Storage(cache="s3://a", cache_bytes=3), "give the path of a folder on a local"),
        (lambda: Storage(plan=3), "Storage.plan=3: give what Loader.plan() returned"),
        (lambda: Skip(-1), "Skip.max_rows=-1: expected an int of at least 0"),
        (lambda: Report(), "Report() shows nothing: give bar=True for a progress bar, or every="),
        (lambda: Report(every=0), "Report.every=0: give seconds, more than 0"),
        (lambda: Report(every=1, function=3), "Report.function=3: give a function that takes"),
        (lambda: Report(bar=True, function=print), "Report.function needs Report.every"),
        (lambda: Retries(0), "Retries.tries=0: give a number of tries, from 1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_object_is_checked_when_it_is_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give batch_size=, the rows of a batch on this rank, or batch_size=Tokens(...)"),
        (
            {"batch_size": 2, "ranks": Ranks(global_batch_size=2)},
            "batch_size=2 and ranks=Ranks(global_batch_size=2): give one of them",
        ),
        (
            {"batch_size": Tokens(8), "ranks": Ranks(global_batch_size=Tokens(8))},
            "batch_size=Tokens(8) and ranks=Ranks(global_batch_size=Tokens(8)): give one of them",
        ),
        (
            {"batch_size": Tokens(8, column="n"), "batching": Buckets("x")},
            'Tokens(column="n"), Buckets("x"): rows are counted and sorted by one column',
        ),
        (
            {"batch_size": Tokens(8), "batching": Pack("n", 8)},
            "batching=Pack(...) and batch_size=Tokens(8): blocks have one length",
        ),
        ({"batch_size": Tokens(8), "pad_last": True}, "batch_size=Tokens(8): pad_last=True pads"),
        (
            {"batch_size": 2, "shuffle": Shuffle(8), "batching": Buckets("n", window=9)},
            "shuffle=Shuffle(8), batching=Buckets(window=9): the window is the shuffle buffer",
        ),
        (
            {"batch_size": 2, "ragged": {"n": Padded(multiple=8), "x": Padded()}},
            "the columns of a batch are padded to one multiple, give the same Padded.multiple",
        ),
        ({"batch_size": 2, "ranks": Ranks(0, 1, splits=4)}, "Ranks.splits=4 does not divide a"),
        ({"batch_size": 2, "ranks": 3}, "ranks=3: expected arrowdl.Ranks(...)"),
        ({"batch_size": 2, "storage": "a"}, "storage='a': expected arrowdl.Storage(...)"),
        (
            {"batch_size": 2, "batching": Shuffle(3)},
            "batching=Shuffle(buffer_size=3): expected arrowdl.Pack(...) or arrowdl.Buckets(...)",
        ),
        (
            {"batch_size": 2, "shuffle": Seed(3)},
            "shuffle=Seed(number=3, transforms=True): expected",
        ),
        ({"batch_size": 2, "seed": Shuffle(3)}, "seed=Shuffle(buffer_size=3): expected an int"),
        ({"batch_size": 2, "progress": 60}, "progress=60: expected True or False"),
        ({"batch_size": 2, "on_error": "warn"}, "on_error='warn': expected 'raise' or 'skip' or "),
        ({"batch_size": 2, "ragged": "long"}, "'offsets' or arrowdl.Padded(...)"),
    ],
    ids=str,
)
def test_objects_that_contradict_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        arrowdl.Loader(TABLE, **options)


def test_a_mixture_takes_the_same_objects() -> None:
    sources, weights = {"a": TABLE}, {"a": 1}
    size = Ranks(global_batch_size=2)
    loader = arrowdl.Loader.mix(sources, weights, ranks=size, shuffle=Shuffle(8), seed=Seed(3))
    assert len(loader) == 2
    for options, message in (
        ({}, r"give ranks=Ranks\(global_batch_size=...\)"),
        ({"ranks": Ranks(splits=2)}, r"give ranks=Ranks\(global_batch_size=...\)"),
        ({"ranks": size, "batch_size": 2}, "batch_size=2: a mixture has the same steps"),
        ({"ranks": dataclasses.replace(size, splits=None)}, "Ranks.splits=None: a mixture has"),
        ({"ranks": size, "storage": Storage(plan="share")}, "Storage.plan is of one source"),
        ({"global_batch_size": 2}, r"mix\(\) got .* 'global_batch_size': give ranks=Ranks"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            arrowdl.Loader.mix(sources, weights, **options)


def test_flags_are_the_plain_objects() -> None:
    """`shuffle=True` is `Shuffle()`, and so on."""
    flags = {"shuffle": True, "seed": 3, "ragged": "padded", "on_error": "skip"}
    objects = {"shuffle": Shuffle(), "seed": Seed(3), "ragged": Padded(), "on_error": Skip()}
    one, two = (arrowdl.Loader(TABLE, 2, **own)._options for own in (flags, objects))
    for own in (one.columns, two.columns):
        assert (own.pads("x"), own.find_max_length("x"), own.pad_to_multiple) == (True, None, 1)
    assert dataclasses.replace(one, columns=two.columns) == two


def test_pinned_memory_is_a_device() -> None:
    """Of torch, which pins its tensors itself; the others copy to that device."""
    options = arrowdl.Loader(TABLE, 2, device="cuda_host")._options
    assert (options.pin_memory, options.device) == (True, None)
    options = arrowdl.Loader(TABLE, 2, device="cuda_host", framework="numpy")._options
    assert (options.pin_memory, options.device) == (False, "cuda_host")


def test_columns_are_padded_in_their_own_ways() -> None:
    table = pa.table({"a": [[1], [2, 3, 4]], "b": [[5, 6], []], "c": [[7], [8]]})
    ragged = {"a": Padded(-1, max_length=2), "b": Padded(9), "c": "offsets"}
    (batch,) = arrowdl.Loader(table, 2, framework="numpy", ragged=ragged)
    assert batch["a"][0].tolist() == [[1, -1], [2, 3]]
    assert batch["b"][0].tolist() == [[5, 6], [9, 9]]
    assert batch["c"][0].tolist() == [7, 8]
    (batch,) = arrowdl.Loader(table, 2, framework="numpy", ragged=Padded(0.0, multiple=4))
    assert {batch[name][0].shape for name in "abc"} == {(2, 4)}


def test_a_value_that_a_column_cannot_hold() -> None:
    table = pa.table({"a": pa.array([[1], [2, 3]], pa.list_(pa.uint8()))})
    with pytest.raises(ValueError, match=r'"a": Padded\.value=300 is no value of uint8'):
        list(arrowdl.Loader(table, 2, framework="numpy", ragged=Padded(300)))


def test_streams_take_padded_lists() -> None:
    stream = arrowdl.from_arrow_stream(pa.table({"a": [[1], [2, 3]]}))
    made = stream.map(lambda batch: batch["a"][0], framework="numpy", ragged={"a": Padded(9)})
    assert pa.table(made)["output"].to_pylist() == [[1, 9], [2, 3]]
    with pytest.raises(ValueError, match=r"ragged='long': expected one of .* or arrowdl\.Padded"):
        stream.map(len, ragged="long")  # type: ignore[arg-type]


def test_secrets_of_storage_are_not_shown() -> None:
    assert "hunter2" not in repr(Storage(options={"secret_key": "hunter2"}))


def test_numbers_of_numpy_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    ranks = Ranks(np.int64(0), np.int64(2), global_batch_size=np.int32(8), splits=np.int8(4))
    assert ranks == Ranks(0, 2, global_batch_size=8, splits=4)
    assert all(type(value) is int for value in dataclasses.astuple(ranks))
    assert type(Tokens(np.int64(8)).number) is type(Shuffle(np.int64(8)).buffer_size) is int
    assert type(Skip(np.int64(8)).max_rows) is type(Seed(np.int64(8)).number) is int


def test_the_signature_fits_a_screen() -> None:
    parameters = inspect.signature(arrowdl.Loader).parameters
    named = [name for name, own in parameters.items() if own.kind is not own.VAR_KEYWORD]
    assert len(named) == 26
    text = inspect.getdoc(arrowdl.Loader)
    assert text is not None
    assert re.findall(r"^(\w+) :", text.partition("Raises\n---")[0], re.M) == named
    assert len(text.splitlines()) <= 120, "two screens"


@pytest.mark.parametrize("name", ADVICE)
def test_an_unknown_keyword_names_ours(name: str) -> None:
    """What the table says to write is what a Loader has."""
    ours = {*inspect.signature(arrowdl.Loader).parameters, "weights"}
    assert name not in ours - {"source"}
    message = f"Loader() got an unexpected keyword argument '{name}': give {ADVICE[name]}"
    with pytest.raises(TypeError, match=re.escape(message)):
        arrowdl.Loader(TABLE, 2, **{name: 1})
    advised = re.sub(r"\w+\(.*\)", lambda call: call[0].partition("(")[0], ADVICE[name])
    for option in re.findall(r"\b(\w+)=", advised):
        assert option in ours, option
    for call in re.findall(r"\b([A-Z]\w+)\(([^()]*)", ADVICE[name]):
        kind = getattr(arrowdl, call[0], None) or getattr(arrowdl.loader, call[0])
        known = inspect.signature(kind).parameters
        assert all(field in known for field in re.findall(r"(\w+)=", call[1])), call


def test_other_unknown_keywords() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'shuffles': give shuffle="):
        arrowdl.Loader(TABLE, 2, shuffles=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'x1': give one of batch_size=, batching=, columns="):
        arrowdl.Loader(TABLE, 2, x1=True)  # type: ignore[call-arg]
    both = "arguments 'workers': give num_workers=; 'rank': give ranks=Ranks"
    with pytest.raises(TypeError, match=both):
        arrowdl.Loader(TABLE, 2, workers=2, rank=0)  # type: ignore[call-arg]


def test_a_table_of_flat_names_is_grouped() -> None:
    """`helpers.options.group`, by which tables in tests stay readable."""
    flat = {"splits": 4, "shuffle": True, "buffer_size": 8, "max_skipped_rows": 3, "nulls": "fill"}
    grouped = group(**flat, on_error="skip", ragged={"n": "padded"}, pad_value={"n": 3})
    assert grouped == {
        "ranks": Ranks(splits=4),
        "shuffle": Shuffle(8),
        "on_error": Skip(3),
        "nulls": "fill",
        "ragged": {"n": Padded(3)},
    }
    assert group(**grouped) == grouped


def test_objects_have_a_page() -> None:
    folder = Path(__file__).parents[3] / "docs/settings"
    index = (folder / "index.rst").read_text()
    for value in OBJECTS:
        name = type(value).__name__
        page = (folder / f"{name.lower()}.rst").read_text()
        assert re.search(rf"^\.\. autoclass:: [\w.]*\b{name}$", page, re.M), name
        assert f"   {name.lower()}\n" in index, name
