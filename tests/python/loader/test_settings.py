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
import numpy
import pyarrow as pa
import pytest
from arrowdl import (
    Audio,
    Buckets,
    Image,
    Pack,
    Padded,
    Ranks,
    Report,
    Retries,
    Seed,
    Shuffle,
    Skip,
    Storage,
    Tokenize,
    Tokens,
)
from arrowdl.loader._loader import OPTIONS, OPTIONS_OF_MIX
from arrowdl.loader._settings.unknown import ADVICE, LOADER, OF_MIX
from helpers.options import group
from helpers.text import TOKENIZER
from pyarrow.fs import LocalFileSystem

TABLE = pa.table({"x": [1, 2, 3, 4], "n": [[1], [2, 3], [4], []]})

OBJECTS = [
    Audio(16_000, mono=False, backend="soundfile", threads=2),
    Buckets("n", window=64),
    Image((224, 192), mode="L", layout="HWC", crop="random", flip=True, threads=2),
    Pack("n", 8, "best_fit", buffer_size=4),
    Padded(-1, max_length=4, multiple=8),
    Ranks(1, 4, global_batch_size=Tokens(64), splits=8),
    Report(bar=True, every=60.0, function=print),
    Retries(3, deadline=5.0),
    Seed(7, transforms=False),
    Shuffle(1_000),
    Skip(10),
    Storage(cache="/cache", cache_bytes=100, retries=Retries(3), plan="share", memory_map=False),
    Tokenize(TOKENIZER, max_length=8, add_special_tokens=False),
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
    assert getattr(arrowdl, kind.__name__) is kind
    text = inspect.getdoc(kind) or ""
    documented = [
        name for line in re.findall(r"^([\w, ]+) : ", text, re.M) for name in line.split(", ")
    ]
    assert documented == [field.name for field in dataclasses.fields(value)]


def test_numbers_of_numpy() -> None:
    two, half = numpy.int64(2), numpy.float32(0.5)
    assert Retries(two, half, half, two) == Retries(2, 0.5, 0.5, 2)
    assert Report(every=half) == Report(every=0.5)
    assert Padded(numpy.float16(0.5), max_length=two) == Padded(0.5, max_length=2)
    assert Image((two, two), scale=(half, half)) == Image((2, 2), scale=(0.5, 0.5))
    assert Skip(two) == Skip(2)


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
        (lambda: Shuffle(True), 'Shuffle.buffer_size=True: expected "auto" or a number of rows'),
        (lambda: Seed("7"), "Seed.number='7': expected an int"),
        (lambda: Seed(7, transforms=0), "Seed.transforms=0: expected True or False"),
        (lambda: Padded("x"), "Padded.value='x': expected an int, a float or a bool"),
        (lambda: Padded(numpy.arange(2)), "Padded.value=array([0, 1]): expected an int, a float"),
        (lambda: Padded(numpy.str_("3")), "Padded.value=np.str_('3'): expected an int, a float"),
        (lambda: Padded(max_length=0), "Padded.max_length=0: expected an int of at least 1"),
        (lambda: Padded(multiple=1.5), "Padded.multiple=1.5: expected an int of at least 1"),
        (lambda: Buckets(3), "Buckets.column=3: give the name of a column"),
        (lambda: Buckets("n", window=-1), "Buckets.window=-1: expected an int of at least 1"),
        (
            lambda: Buckets("n", window=None),
            'Buckets.window=None: expected "auto" or a number of rows',
        ),
        (lambda: Audio("16k"), "Audio.sample_rate='16k': expected an int of at least 1"),
        (
            lambda: Audio(0),
            "Audio.sample_rate=0: expected an int of at least 1 and at most 1048576",
        ),
        (lambda: Audio(8_000, mono=1), "Audio.mono=1: expected True or False"),
        (lambda: Audio(8_000, backend="av"), "Audio.backend='av': expected 'auto' or 'torchcodec'"),
        (lambda: Audio(8_000, threads=0), "Audio.threads=0: expected an int of at least 1"),
        (lambda: Image(224), "Image.size=224: give (height, width)"),
        (lambda: Image((1, 2, 3)), "Image.size=(1, 2, 3): give (height, width)"),
        (lambda: Image("ab"), "Image.size='a': expected an int of at least 1"),
        (lambda: Image((0, 8)), "Image.size=0: expected an int of at least 1 and at most 65536"),
        (lambda: Image(mode="CMYK"), "Image.mode='CMYK': expected 'RGB' or 'RGBA' or 'L'"),
        (lambda: Image(layout="NCHW"), "Image.layout='NCHW': expected 'CHW' or 'HWC'"),
        (lambda: Image(dtype="float16"), "Image.dtype='float16': expected 'uint8' or 'float32'"),
        (lambda: Image((8, 8), crop="middle"), "expected 'center' or 'random' or None"),
        (lambda: Image(crop="random"), "Image.crop='random' makes images of Image.size: give it"),
        (lambda: Image((8, 8), scale=(0, 1)), "Image.scale=(0, 1): give the least and the most, "),
        (lambda: Image((8, 8), scale=(0.5, 2)), "two positive numbers, of at most 1"),
        (lambda: Image((8, 8), scale=0.5), "Image.scale=0.5: give the least and the most"),
        (lambda: Image((8, 8), ratio=(2, 1)), "Image.ratio=(2, 1): give the least and the most"),
        (lambda: Image((8, 8), ratio=("a", 1)), "Image.ratio=('a', 1): give the least and the"),
        (lambda: Image(flip=0.5), "Image.flip=0.5: expected True or False"),
        (lambda: Image(interpolation="box"), "expected 'bilinear' or 'bicubic'"),
        (lambda: Image(backend="cv2"), "Image.backend='cv2': expected 'auto' or 'torch' or"),
        (
            lambda: Image(backend="torch", mode="RGBA"),
            "Image.backend='torch', Image.mode='RGBA': torch does not weigh colours by alpha",
        ),
        (lambda: Image(threads=0), "Image.threads=0: expected an int of at least 1"),
        (lambda: Pack(3, 8), "Pack.column=3: give the name of a column"),
        (lambda: Pack("n", 0.5), "Pack.length=0.5: expected an int"),
        (lambda: Pack("n", 0), "Pack.length=0: expected an int of at least 1"),
        (lambda: Pack("n", 2**31), "Pack.length=2147483648: expected an int of at least 1 and at"),
        (lambda: Pack("n", 8, "worst"), "Pack.strategy='worst': expected 'concat' or 'best_fit'"),
        (lambda: Pack("n", 8, long="cut"), "Pack.long='cut': expected 'split' or 'truncate' or"),
        (lambda: Pack("n", 8, buffer_size=0), "Pack.buffer_size=0: expected an int of at least 1"),
        (
            lambda: Pack("n", 2**20, "best_fit", buffer_size=2**20),
            "Pack.buffer_size=1048576: expected an int of at least 1 and at most 4096",
        ),
        (lambda: Pack("n", 8, pad_value="x"), "Pack.pad_value='x': give an int, a float or a bool"),
        (lambda: Pack("n", 8, pad_value={"n": None}), "Pack.pad_value={'n': None}: give an int"),
        (lambda: Pack("n", 8, pad_value={3: 0}), "Pack.pad_value={3: 0}: give an int, a float"),
        (lambda: Pack("n", 8, add=["mask"]), "Pack.add='mask': expected 'position_ids' or"),
        (lambda: Pack("n", 8, lengths=""), "Pack.lengths='': give the name of a column"),
        (lambda: Storage(filesystem="s3"), "Storage.filesystem='s3': give a file system of pyar"),
        (lambda: Storage(filesystem=dict), "Storage.filesystem=<class 'dict'>: give a file system"),
        (
            lambda: Storage(filesystem="s3", options={"region": "eu"}),
            "Or leave it out, and give the source as URLs, such as s3://bucket/folder, with",
        ),
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
        (
            lambda: Storage(options={}, filesystem=LocalFileSystem()),
            "pass these to the object of Storage.filesystem",
        ),
        (lambda: Storage(retries=3), "Storage.retries=3: give an arrowdl.Retries(...)"),
        (lambda: Storage(cache="/a"), "Storage.cache='/a', Storage.cache_bytes=None: give both"),
        (lambda: Storage(cache=3, cache_bytes=3), "Storage.cache=3: give the path of a folder"),
        (lambda: Storage(cache="s3://a", cache_bytes=3), "give the path of a folder on a local"),
        (lambda: Storage(plan=3), "Storage.plan=3: give what Loader.plan() returned"),
        (lambda: Skip(-1), "Skip.max_rows=-1: expected an int of at least 0"),
        (lambda: Report(), "Report() shows nothing: give bar=True for a progress bar, or every="),
        (lambda: Report(every=0), "Report.every=0: give seconds, more than 0"),
        (lambda: Report(every=1, function=3), "Report.function=3: give a function that takes"),
        (lambda: Report(bar=True, function=print), "Report.function needs Report.every"),
        (lambda: Retries(0), "Retries.tries=0: expected an int of at least 1"),
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
            'Tokens(column="n"), Buckets("x"): rows are counted and sorted by the same column',
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
        ({"ranks": size, "batch_size": 2}, r"mix\(\) got .* 'batch_size': give ranks=Ranks"),
        (
            {"ranks": dataclasses.replace(size, splits=None)},
            "Ranks.splits=None: a mixture needs sequences",
        ),
        ({"ranks": size, "storage": Storage(plan="share")}, "Storage.plan is for one source"),
        ({"global_batch_size": 2}, r"mix\(\) got .* 'global_batch_size': give ranks=Ranks"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            arrowdl.Loader.mix(sources, weights, **options)


STATES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (
        {"batch_size": 2, "batching": Buckets("n", window=4)},
        {"batch_size": 2, "batching": Buckets("x", window=8), "drop_last": True},
        "batching=Buckets('n'), drop_last=False, Buckets.window=4",
        "batching=Buckets('x'), drop_last=True, Buckets.window=8",
    ),
    (
        {"batch_size": 2},
        {"batch_size": Tokens(8, column="n")},
        "a number of rows",
        "Tokens(column='n'), rows without padding",
    ),
    (
        {"ranks": Ranks(global_batch_size=Tokens(8), splits=1), "batching": Buckets("n")},
        {"batch_size": 2, "batching": Buckets("n"), "ranks": Ranks(splits=1)},
        "8 tokens of all ranks",
        "2 rows of all ranks",
    ),
    (
        {"batch_size": Tokens(8), "ragged": Padded()},
        {"batch_size": Tokens(8), "ragged": Padded(max_length=4, multiple=2)},
        "nothing more",
        "Padded.max_length=4, Padded.multiple=2",
    ),
    (
        {"batch_size": 2, "batching": Pack("n", 2)},
        {"batch_size": 2},
        "batching=Pack(column='n', length=2, strategy='concat', buffer_size=256, long='split')",
        "no batching=Pack(...)",
    ),
    (
        {"batch_size": 2, "shuffle": Shuffle(3)},
        {"batch_size": 2, "shuffle": Shuffle(4)},
        "another Shuffle.buffer_size (3, here 4)",
        "",
    ),
]


@pytest.mark.parametrize(("before", "now", "theirs", "ours"), STATES, ids=lambda own: str(own)[:40])
def test_errors_of_states_name_the_objects(
    before: dict[str, Any], now: dict[str, Any], theirs: str, ours: str
) -> None:
    state = arrowdl.Loader(TABLE, framework="numpy", **before).state_dict()
    with pytest.raises(ValueError, match="the state is of ") as error:
        arrowdl.Loader(TABLE, framework="numpy", **now).load_state_dict(state)
    text = str(error.value)
    then, _, here = text.partition(", and this Loader has ") if ours else (text, "", "")
    assert theirs in then
    assert ours in here
    assert not re.search(r"\b(bucket_by|global_batch_tokens|pad_to_multiple|padded=|\{')", text)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": Tokens(8, column="n")},
        {"batch_size": 2, "batching": Buckets("n")},
        {"batch_size": 2, "batching": Pack("n", 8)},
        {"batch_size": 2, "batching": Pack("l", 8, lengths="n")},
    ],
    ids=str,
)
def test_columns_of_lengths_are_read(options: dict[str, Any]) -> None:
    """They are not added in silence: a batch has the columns that were asked for."""
    table = TABLE.append_column("l", TABLE["n"])
    with pytest.raises(ValueError, match=r"\['x', 'l'\]: .* read with the rows, so name it in col"):
        arrowdl.Loader(table, columns=["x", "l"], framework="numpy", **options)


def test_errors_of_calls_name_the_loader() -> None:
    """Also those of Python, of methods that private classes have."""
    loader = arrowdl.Loader(TABLE, 2)
    assert type(pickle.loads(pickle.dumps(loader))) is arrowdl.Loader
    for name in dir(arrowdl.Loader):
        own = getattr(arrowdl.Loader, name)
        if inspect.isfunction(own) and not name.startswith("_"):
            assert own.__qualname__ == f"Loader.{name}"
            assert pickle.loads(pickle.dumps(own)) is own
            with pytest.raises(TypeError, match=rf"^Loader\.{name}\(\) got an unexpected keyword"):
                own(loader, unknown_name=1)
    for kind in (*map(type, OBJECTS), arrowdl.Loader, arrowdl.loader.MapDataset):
        for name, own in vars(kind).items():
            if inspect.isfunction(own) and not name.startswith("_"):
                assert own.__qualname__.startswith(f"{kind.__name__}."), own


def test_the_loader_shares_no_name_with_private_classes() -> None:
    """A reader who looks for `Buckets` finds one class."""
    folder = Path(arrowdl.loader.__file__).parent
    public = set(arrowdl.loader.__all__)
    found = [
        name
        for path in folder.rglob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text(), re.M)
        if name in public
    ]
    assert sorted(found) == sorted(public)


def test_flags_are_the_plain_objects() -> None:
    """`shuffle=True` is `Shuffle()`, and so on."""
    flags = {"shuffle": True, "seed": 3, "ragged": "padded", "on_error": "skip"}
    objects = {"shuffle": Shuffle(), "seed": Seed(3), "ragged": Padded(), "on_error": Skip()}
    one, two = (arrowdl.Loader(TABLE, 2, **own)._options for own in (flags, objects))
    for own in (one.columns, two.columns):
        assert (own.pads("x"), own.find_max_length("x"), own.pad_to_multiple) == (True, None, 1)
    assert dataclasses.replace(one, columns=two.columns) == two


def test_pinned_memory_is_a_device() -> None:
    """Torch pins its tensors itself; the other frameworks copy to that device."""
    target = arrowdl.Loader(TABLE, 2, device="cuda_host")._options.target
    assert (target.pin_memory, target.device) == (True, None)
    target = arrowdl.Loader(TABLE, 2, device="cuda_host", framework="numpy")._options.target
    assert (target.pin_memory, target.device) == (False, "cuda_host")


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
    with pytest.raises(ValueError, match=r'"a": Padded\.value=300 is not a value of uint8'):
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
    np = numpy
    assert Padded(np.float32(0.5)).value == 0.5
    assert Padded(np.bool_(True)).value == Padded(np.int8(1)).value == 1
    Pack("n", 8, pad_value={"n": np.float16(1)})
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


def check_advice(advice: str, ours: set[str]) -> None:
    """Whether all keywords, and all fields of objects, that advice names are there."""
    text = re.sub(r"\w+\(.*\)", lambda call: call[0].partition("(")[0], advice)
    for option in re.findall(r"\b(\w+)=", text):
        assert option in ours, option
    for call in re.findall(r"\b([A-Z]\w+)\(([^()]*)", advice):
        kind = getattr(arrowdl, call[0], None) or getattr(arrowdl.loader, call[0])
        known = inspect.signature(kind).parameters
        assert all(field in known for field in re.findall(r"(\w+)=", call[1])), call


def say(advice: str) -> str:
    return advice if advice.startswith("leave it out: ") else f"give {advice}"


@pytest.mark.parametrize("name", ADVICE)
def test_an_unknown_keyword_names_ours(name: str) -> None:
    """What the table says to write is what a Loader has."""
    ours = {*inspect.signature(arrowdl.Loader).parameters}
    assert name not in ours - {"source"}
    message = f"Loader() got an unexpected keyword argument '{name}': {say(ADVICE[name])}"
    with pytest.raises(TypeError, match=re.escape(message)):
        arrowdl.Loader(TABLE, 2, **{name: 1})
    check_advice(ADVICE[name], ours)


@pytest.mark.parametrize("name", OF_MIX)
def test_an_unknown_keyword_of_a_mixture_names_its_own(name: str) -> None:
    assert name not in OPTIONS_OF_MIX
    message = f"Loader.mix() got an unexpected keyword argument '{name}': {say(OF_MIX[name])}"
    with pytest.raises(TypeError, match=re.escape(message)):
        arrowdl.Loader.mix({"a": TABLE}, {"a": 1}, **{name: 1})
    check_advice(OF_MIX[name], set(OPTIONS_OF_MIX))


def test_a_mixture_lists_what_it_takes() -> None:
    with pytest.raises(TypeError, match="'x1': give one of ") as error:
        arrowdl.Loader.mix({"a": TABLE}, {"a": 1}, x1=1)
    listed = set(re.findall(r"(\w+)=", str(error.value)))
    assert listed == OPTIONS_OF_MIX
    assert {"stop", "origin", "weights", "sources"} < listed
    assert not {"batch_size", "source"} & listed
    with pytest.raises(TypeError, match=r"'x1': .*; 'x2': .*; 'x3': "):
        arrowdl.Loader.mix({"a": TABLE}, {"a": 1}, x1=1, x2=2, x3=3)


def test_objects_are_called_by_the_names_of_their_fields() -> None:
    assert set(OPTIONS) == LOADER
    calls: list[tuple[Any, tuple[int, ...], dict[str, Any], str]] = [
        (Report, (60,), {}, "takes none of its values without a name, got 1: give bar=, every="),
        (Padded, (0, 512), {}, "takes 1 (value=) of its values without a name, got 2: give max_le"),
        (Shuffle, (1, 2), {}, "Shuffle() takes 1 (buffer_size=) of its values without a name, got"),
        (
            Shuffle,
            (),
            {"seed": 3},
            "'seed': it is an option of the Loader, give Loader(seed=...); Shuffle",
        ),
        (Padded, (), {"splits": 3}, "'splits': give the Loader ranks=Ranks(splits=...); Padded"),
        (Padded, (), {"pad_value": 3}, "'pad_value': give value=; Padded has value=, max_length="),
        (Padded, (), {"max_lenghts": 3}, "'max_lenghts': give max_length=; Padded has value=, "),
        (Seed, (), {"x1": 3, "x2": 1}, "arguments 'x1': there is no such field; 'x2': there is"),
        (Tokens, (), {}, "missing 1 required positional argument: 'number'"),
        (Tokens, (1,), {"number": 2}, "multiple values for argument 'number'"),
    ]
    for kind, values, given, message in calls:
        with pytest.raises(TypeError, match=re.escape(message)):
            kind(*values, **given)


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
